"""A table of the paper as rows of methods: its studies, its report, its claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

import transun
from transun.corrections import Correction
from transun.heads import Head
from transun.training.optimisers import Adam
from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.boards import FULL, QUICK, Board
from transun_paper.lab.compare import Reports, paired_t
from transun_paper.lab.methods import METHODS
from transun_paper.lab.protocol import Protocol, Study
from transun_paper.lab.published import notes, printed
from transun_paper.lab.run import Run
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.jobs import Job
from transun_paper.tables.judge import Answer, Rows, TestRows, able

# Session dwell, order value and watch time: what stands in for the paper's data. Ablations leave the others out.
DATASETS = ("globo", "online_retail", "kuairand")
OTHERS = tuple(name for name in PUBLIC if name not in DATASETS)
# Ablations of many rows leave globo out as well: its tables make one row cost as much as ten elsewhere.
COSTLY = (*OTHERS, "globo")
ERRORS = ("TRE", "MRE", "NRMSE", "NMAE")
FIVE = (*ERRORS, "XAUC")
# The rate of every ablation: the paper has one for all, and tuning each variant would compare luck.
RATE = 1e-3

Keys = Mapping[str, str]
Found = Mapping[tuple[str, str], Reports]
Recipe = Callable[[Protocol, str, "Row"], Study]


@dataclass(frozen=True)
class Row:
    """A method under the paper's name and label."""

    method: str
    label: str
    head: Head = field(compare=False)
    correction: Correction | None = field(default=None, compare=False)

    @property
    def id(self) -> tuple[str, str]:
        """What a table finds it by."""
        return self.method, self.label


def tuned(protocol: Protocol, key: str, row: Row) -> Study:
    """The leaderboard's own study of this method: a rate chosen on validation rows, then all seeds."""
    return protocol.study(key, row.head, row.correction)


def fixed(protocol: Protocol, key: str, row: Row) -> Study:
    """The same training at one rate for all."""
    run = Run(key, row.head, protocol.training_for(key, Adam(RATE)), correction=row.correction)
    return Study((run,), tuple(range(protocol.seeds)))


STATEMENTS: dict[Recipe, Callable[[Protocol], str]] = {
    tuned: lambda protocol: protocol.statement,
    fixed: lambda protocol: (
        f"One recipe for all rows, as in the paper: Adam {RATE:g}, {protocol.seeds} seeds; everything else as on the "
        "leaderboard (weights averaged, the best look at the validation rows kept). No rate is tuned."
    ),
}


def board_of(quick: bool) -> Board:
    """Whose protocol and rows are used; runs of the leaderboard are then shared."""
    return QUICK if quick else FULL


def kept(keys: Keys, skipped: Sequence[str]) -> list[str]:
    """Names of the data sets that are not skipped; all of them if none is left."""
    return [name for name in keys if name not in skipped] or list(keys)


def listed(method: str, label: str, name: str) -> Row:
    """A method of the leaderboard, under the paper's name."""
    found = next(found for found in METHODS if found.name == name)
    return Row(method, label, found.head, found.correction)


@dataclass(frozen=True)
class PaperTable:
    """A table on real data.

    Args:
        name: of its report.
        title: for people.
        printed: LaTeX labels of what the paper prints.
        rows: the methods.
        columns: metrics.
        claims: answers from the reports of one data set, by row; the second argument is the data set's name.
        recipe: `tuned` or `fixed`.
        looked_at: test or training rows.
        against: the row that a row is tested against, seed by seed.
        skipped: data sets left out because of what they cost, unless there are no others.

    """

    name: str
    title: str
    printed: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    claims: Callable[[Found, str], list[Answer]]
    recipe: Recipe = tuned
    looked_at: Rows = TestRows()
    against: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """The runs it needs on these data sets."""
        protocol = board_of(quick).protocol
        return [self.recipe(protocol, keys[name], row) for name in self._present(keys) for row in self.rows]

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """Nothing besides runs."""
        return []

    def found(self, store: Store, key: str, quick: bool = False) -> dict[tuple[str, str], Reports]:
        """The reports of every row on one data set; empty where a run is missing."""
        protocol = board_of(quick).protocol
        return {row.id: self.recipe(protocol, key, row).reports(store) for row in self.rows}

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Our numbers, the paper's, and the answers; plain values."""
        tables, claims = [], []
        for name in self._present(keys):
            found = self.found(store, keys[name], quick)
            tables.append({"dataset": name, "rows": [self._entry(row, found) for row in self.rows]})
            claims += self.claims(found, name)
        statement = STATEMENTS[self.recipe](board_of(quick).protocol)
        noise = self.looked_at.noise
        return framed(self.name, self.title, statement, self.columns, tables, claims, self.printed, noise)

    def _present(self, keys: Keys) -> list[str]:
        return kept(keys, self.skipped)

    def _entry(self, row: Row, found: Found) -> dict[str, Any]:
        return entry(row.id, found, self.columns, self.looked_at, self.against.get(row.id))


def entry(
    name: tuple[str, str], found: Found, columns: Sequence[str], rows: Rows, against: tuple[str, str] | None = None
) -> dict[str, Any]:
    """One row of a table: per column the mean over seeds, its standard error, every seed and the paired test."""
    reports = found[name]
    start: dict[str, Any] = {"method": name[0], "label": name[1]}
    if not able(reports):
        return start | {"failed": next((report["failed"] for report in reports), "not run yet")}
    values = {column: rows.values(reports, column) for column in columns}
    whole = [column for column in columns if None not in values[column]]
    start["cells"] = {column: rows.spread(reports, column) for column in whole}
    start["seeds"] = values
    start["data"] = reports[0].get("data")
    if against is not None and able(found[against]) and len(reports) == len(found[against]) > 1:
        start["against"] = list(against)
        start["p"] = {column: _paired(rows, reports, found[against], column) for column in whole}
    return start


def framed(
    name: str,
    title: str,
    statement: str,
    columns: Sequence[str],
    tables: Sequence[Mapping[str, Any]],
    claims: Sequence[Answer],
    labels: Sequence[str],
    noise: str,
) -> dict[str, Any]:
    """A report: what all tables have in common."""
    report = {
        "name": name,
        "title": title,
        "version": transun.__version__,
        "torch": torch.__version__,
        "protocol": statement,
        "columns": list(columns),
        "noise": noise,
        "tables": tables,
        "claims": [asdict(claim) for claim in claims],
        "paper": [printed(label) for label in labels],
        "notes": [note for label in labels for note in notes(label)],
    }
    plain: dict[str, Any] = rounded(report, 5)
    return plain


def _paired(rows: Rows, first: Reports, second: Reports, column: str) -> float | None:
    a, b = rows.values(first, column), rows.values(second, column)
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return paired_t([x for x, _ in pairs], [y for _, y in pairs]) if len(pairs) == len(a) else None
