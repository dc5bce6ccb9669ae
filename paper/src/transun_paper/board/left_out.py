"""Leave one table out: a setting is chosen by the validation rows of the other tables and judged on the one left out.

A default that was chosen on some tables looks better on them than it is. Here every table is judged with a setting that
it had no part in choosing, so that the mean over tables estimates what the way of choosing is worth on a table that
nobody has seen.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from transun_paper.board.summary import GeometricMean, geometric_mean
from transun_paper.lab.compare import Difference, seed_mean

_COLUMNS = ("config", "table", "seed", "valid_nrmse", "test_nrmse", "pgr", "seconds")


@dataclass(frozen=True)
class LeftOut:
    """The result for one table.

    Args:
        table: the one that was left out.
        config: the setting chosen by the validation rows of the others.
        test: its test NRMSE on this table, a geometric mean over seeds.
        to_reference: ln(test / test of the reference setting), with the error of the seeds.
        best: the setting of least test NRMSE on this table, which nobody could have known.
        to_best: ln(test / test of that setting).
        pgr: predicted / actual total of the chosen setting.
        seconds: of fitting it.

    """

    table: str
    config: str
    test: float
    to_reference: Difference
    best: str
    to_best: Difference
    pgr: float
    seconds: float


class Candidates:
    """Results of candidate settings: rows with config, table, seed, valid_nrmse, test_nrmse, pgr and seconds.

    Every setting must have been run on every table with the same seeds, because settings are compared by means over
    tables.

    Args:
        rows: the results.
        reference: the setting that others are compared with; the first one by default.

    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], reference: str | None = None) -> None:
        for number, row in enumerate(rows):
            missing = [column for column in _COLUMNS if column not in row]
            if missing:
                raise ValueError(f"row {number} has no {missing[0]!r}: a row has {', '.join(_COLUMNS)}")
        self.configs = list(dict.fromkeys(str(row["config"]) for row in rows))
        self.tables = list(dict.fromkeys(str(row["table"]) for row in rows))
        self.reference = self.configs[0] if reference is None and self.configs else str(reference)
        self._cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in sorted(rows, key=lambda row: row["seed"]):
            self._cells.setdefault((str(row["config"]), str(row["table"])), []).append(row)
        self._require_complete()

    def _require_complete(self) -> None:
        if len(self.tables) < 2:
            raise ValueError(f"leaving one table out needs two tables or more, got {len(self.tables)}")
        if self.reference not in self.configs:
            raise ValueError(f"no row has the reference {self.reference!r} as its config")
        for table in self.tables:
            seeds = [row["seed"] for row in self._cells.get((self.reference, table), [])]
            for config in self.configs:
                own = [row["seed"] for row in self._cells.get((config, table), [])]
                if own != seeds:
                    raise ValueError(
                        f"config {config!r} on table {table!r} has seeds {own} and {self.reference!r} has {seeds}: "
                        "run every config on every table with the same seeds"
                    )

    def chosen(self, tables: Sequence[str]) -> str:
        """The setting whose validation NRMSE has the least geometric mean over tables; the first of equals."""
        return min(
            self.configs, key=lambda config: fmean(fmean(self._logs(config, table, "valid_nrmse")) for table in tables)
        )

    def left_out(self, table: str) -> LeftOut:
        """The result for a table of the setting that all other tables choose."""
        config = self.chosen([other for other in self.tables if other != table])
        best = min(self.configs, key=lambda other: fmean(self._logs(other, table, "test_nrmse")))
        rows = self._cells[config, table]
        return LeftOut(
            table,
            config,
            math.exp(fmean(self._logs(config, table, "test_nrmse"))),
            self._ratio(config, self.reference, table),
            best,
            self._ratio(config, best, table),
            fmean(row["pgr"] for row in rows),
            fmean(row["seconds"] for row in rows),
        )

    def to_reference(self, config: str) -> GeometricMean:
        """The geometric mean over tables of a setting's test NRMSE over that of the reference."""
        return geometric_mean(self._ratio(config, self.reference, table) for table in self.tables)

    def _logs(self, config: str, table: str, column: str) -> list[float]:
        return [math.log(row[column]) for row in self._cells[config, table]]

    def _ratio(self, first: str, second: str, table: str) -> Difference:
        """ln of the ratio of test NRMSE, paired by seed; the noise of the test rows is not in these rows."""
        pairs = zip(self._logs(first, table, "test_nrmse"), self._logs(second, table, "test_nrmse"), strict=True)
        value, error = seed_mean([a - b for a, b in pairs])
        return Difference(value, error, math.nan)


def left_out_summary(rows: Sequence[Mapping[str, Any]], reference: str | None = None) -> dict[str, Any]:
    """Every table left out once, the mean over tables, and every setting's own mean, as plain values.

    >>> rows = [
    ...     {"config": c, "table": t, "seed": 0, "valid_nrmse": v, "test_nrmse": v, "pgr": 1.0, "seconds": 1.0}
    ...     for c, t, v in [("a", "x", 1.0), ("a", "y", 1.0), ("b", "x", 2.0), ("b", "y", 0.9)]
    ... ]
    >>> [(line["table"], line["config"]) for line in left_out_summary(rows)["tables"]]  # x is judged by y, y by x
    [('x', 'b'), ('y', 'a')]
    """
    candidates = Candidates(rows, reference)
    results = [candidates.left_out(table) for table in candidates.tables]
    return {
        "reference": candidates.reference,
        "chosen": candidates.chosen(candidates.tables),
        "tables": [asdict(result) for result in results],
        "to_reference": asdict(geometric_mean(result.to_reference for result in results)),
        "to_best": asdict(geometric_mean(result.to_best for result in results)),
        "configs": [
            {
                "config": config,
                "to_reference": asdict(candidates.to_reference(config)),
                "chosen": sum(result.config == config for result in results),
            }
            for config in candidates.configs
        ],
    }
