"""What was aimed at and what was found, read from benchmarks/results/*.json: the first table of docs/speed.md."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Aim:
    """Numbers of one result that shall all be on one side of a limit.

    Args:
        what: in words.
        of: the result's name.
        value: the number of a row; None where the row is of something else.
        limit: the aim.
        unit: of the numbers.
        keeps: compares a number with the limit; at most it, unless said otherwise.

    """

    what: str
    of: str
    value: Callable[[Row], float | None]
    limit: float
    unit: str = ""
    keeps: Callable[[float, float], bool] = operator.le

    def judge(self, rows: Sequence[Row]) -> list[str]:
        """The aim, what was found, and whether that is it, as cells of a table; what was not measured is not met."""
        found = sorted(value for row in rows if (value := self.value(row)) is not None)
        side = "at most" if self.keeps is operator.le else "at least"
        aim = f"{side} {self.limit:g}{self.unit}"
        if not found:
            return [self.what, aim, "not measured", "**no**"]
        ends = " to ".join(f"{value:.3g}" for value in dict.fromkeys((found[0], found[-1])))
        met = sum(self.keeps(value, self.limit) for value in found)
        verdict = "yes" if met == len(found) else f"**in {met} of {len(found)}**" if met else "**no**"
        return [self.what, aim, f"{ends}{self.unit}", verdict]


def where(column: str, **cells: Any) -> Callable[[Row], float | None]:
    """The number in a column of rows whose other cells, spaces written as underscores, are these."""
    wanted = {name.replace("_", " "): cell for name, cell in cells.items()}
    return lambda row: row[column] if all(row[name] == cell for name, cell in wanted.items()) else None


def starting(column: str, **cells: str) -> Callable[[Row], float | None]:
    """The number in a column of rows whose other cells start so."""
    return lambda row: row[column] if all(row[name].startswith(cell) for name, cell in cells.items()) else None


def overhead(shared: int) -> Callable[[Row], float | None]:
    """The per cent in the words of a row about the GPU."""

    def value(row: Row) -> float | None:
        found = re.match(r"overhead (\S+) %", row["found"] or "")
        return float(found[1]) if found and row["what"].startswith(f"LogSUN(shared={shared})") else None

    return value


def times_faster(who: str) -> Callable[[Row], float | None]:
    return starting("times slower than RowWise", who=who)


AIMS = (
    Aim(
        "training step with the bias branch, CPU, embedding shared",
        "overhead",
        where("overhead %", shared_stages=1),
        6,
        " % more",
    ),
    Aim("the same, all stages shared", "overhead", where("overhead %", shared_stages=4), 6, " % more"),
    Aim("training step with the bias branch, GPU, embedding shared", "gpu", overhead(1), 3, " % more"),
    Aim("the same, all stages shared", "gpu", overhead(4), 3, " % more"),
    Aim(
        "prediction with the bias branch, mean, embedding shared",
        "prediction",
        where("mean, more %", shared_stages=1),
        2,
        " % more",
    ),
    Aim("the same, all stages shared", "prediction", where("mean, more %", shared_stages=4), 2, " % more"),
    Aim("the same, 99th percentile", "prediction", where("p99, more %", shared_stages=4), 2, " % more"),
    Aim(
        "industrial epoch, history 20, embedding shared",
        "gpu",
        starting("seconds", what="an epoch, LogSUN(shared=1), history 20"),
        20,
        " s",
    ),
    Aim(
        "industrial epoch, history 50, embedding shared",
        "gpu",
        starting("seconds", what="an epoch, LogSUN(shared=1), history 50"),
        40,
        " s",
    ),
    Aim(
        "CPU training against a plain loop, a row at a time",
        "training",
        times_faster("plain loop, a row"),
        5,
        " times",
        operator.ge,
    ),
    Aim("CPU training against DeepCTR-Torch", "training", times_faster("DeepCTR"), 5, " times", operator.ge),
    Aim("CPU training against Lightning", "training", times_faster("Lightning"), 2, " times", operator.ge),
    Aim(
        "XAUC of 10⁷ rows against kendalltau",
        "xauc",
        where("ratio", what="XAUC, float64", rows=10**7),
        3,
        " times",
        operator.ge,
    ),
    Aim("NDCG against scikit-learn", "xauc", where("ratio", what="NDCG, float64"), 1, " times", operator.ge),
    Aim("XAUC of 10⁸ rows on a GPU", "gpu_metrics", where("seconds, median", number=10**8), 10, " s"),
    Aim("sketch of XAUC, its bound", "sketch", lambda row: row["bound at 99.9 %"], 1e-3),
    Aim("sketch of XAUC, its size", "sketch", lambda row: row["bytes"] / 2**20, 1, " MiB"),
    Aim("growth of time, log-log slope; n·log n has 1.07", "growth", lambda row: row["slope of time"], 1.15),
    Aim("growth of memory, log-log slope", "growth", lambda row: row["slope of memory"], 1.15),
    Aim(
        "`import transun` after torch",
        "startup",
        where("CPU seconds over torch", what="import torch; import transun"),
        0.3,
        " s",
    ),
    Aim("`transun --help`", "startup", where("seconds, median", what="transun --help"), 0.5, " s"),
)


def aims(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of all aims whose results are there."""
    lines = ["| what | aim | found | met |", "| :-- | :-- | :-- | :-- |"]
    for aim in AIMS:
        if aim.of in results:
            columns, rows = (results[aim.of][part] for part in ("columns", "rows"))
            cells = aim.judge([dict(zip(columns, row, strict=True)) for row in rows])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
