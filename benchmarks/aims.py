"""The aims and whether they are met, read from benchmarks/results/*.json: the first table of docs/speed.md."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

STEEP = 1.15  # log-log slope, over a factor of ten and measured with noise, up to which growth counts as n·log n


@dataclass(frozen=True)
class Aim:
    """Numbers of one result that should all be on one side of a limit.

    Args:
        what: the aim in words.
        of: the name of the result.
        value: the number in a row; None where the aim does not concern the row.
        limit: the limit.
        unit: the unit of the numbers.
        keeps: whether a number keeps the limit; by default it may be at most the limit.

    """

    what: str
    of: str
    value: Callable[[Row], float | None]
    limit: float
    unit: str = ""
    keeps: Callable[[float, float], bool] = operator.le

    def cells(self, rows: Sequence[Row]) -> list[str]:
        """The aim, the numbers and whether they meet it, as cells of a table; an aim without numbers is not met."""
        values = sorted(value for row in rows if (value := self.value(row)) is not None)
        side = "at most" if self.keeps is operator.le else "at least"
        aim = f"{side} {self.limit:g}{self.unit}"
        if not values:
            return [self.what, aim, "not measured", "**no**"]
        ends = " to ".join(f"{value:.3g}" for value in dict.fromkeys((values[0], values[-1])))
        met = sum(self.keeps(value, self.limit) for value in values)
        answer = "yes" if met == len(values) else f"**in {met} of {len(values)}**" if met else "**no**"
        return [self.what, aim, f"{ends}{self.unit}", answer]


def where(column: str, **cells: Any) -> Callable[[Row], float | None]:
    """The number in a column of rows whose other cells, spaces written as underscores, are these."""
    wanted = {name.replace("_", " "): cell for name, cell in cells.items()}
    return lambda row: row[column] if all(row[name] == cell for name, cell in wanted.items()) else None


def starting(column: str, **cells: str) -> Callable[[Row], float | None]:
    """The number in a column of rows whose other cells start with these texts."""
    return lambda row: row[column] if all(row[name].startswith(cell) for name, cell in cells.items()) else None


def branch(what: str, of: str, value: Callable[[int], Callable[[Row], float | None]], limit: float) -> tuple[Aim, Aim]:
    """The cost of the bias branch where the embedding is shared, as in the paper, and where all stages are."""
    return (
        Aim(f"{what} with the bias branch, embedding shared", of, value(1), limit, " % more"),
        Aim("the same, all stages shared", of, value(4), limit, " % more"),
    )


def epoch(length: int, limit: float) -> Aim:
    value = starting("seconds", what=f"an epoch, LogSUN(shared=1), history {length}")
    return Aim(f"industrial epoch, history {length}, embedding shared", "gpu", value, limit, " s")


def training(what: str, who: str, limit: float) -> Aim:
    value = starting("times slower than RowWise", who=who)
    return Aim(f"CPU training against {what}", "training", value, limit, " times", operator.ge)


def served_trees(name: str, rows: int) -> Callable[[Row], float | None]:
    """The time of an estimator as an ONNX file over that of one LightGBM through scikit-learn."""
    this, over = f"{name} of LightGBM, ONNX", "one LightGBM, its own predict"
    return where("ratio of means", this=this, over=over, rows_a_call=rows)


AIMS = (
    *branch("training step, CPU,", "overhead", lambda shared: where("overhead %", shared_stages=shared), 6),
    *branch("training step, GPU,", "gpu", lambda shared: starting("overhead %", what=f"LogSUN(shared={shared})"), 3),
    *branch("prediction, mean,", "prediction", lambda shared: where("mean, more %", shared_stages=shared), 2),
    Aim("the same, 99th percentile", "prediction", where("p99, more %", shared_stages=4), 2, " % more"),
    epoch(20, 20),
    epoch(50, 40),
    training("a plain loop, a row at a time", "plain loop, a row", 5),
    training("DeepCTR-Torch", "DeepCTR", 5),
    training("Lightning", "Lightning", 2),
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
    Aim("growth of time, log-log slope; n·log n has 1.07", "growth", lambda row: row["slope of time"], STEEP),
    Aim("growth of memory, log-log slope", "growth", lambda row: row["slope of memory"], STEEP),
    Aim("memory of `transun fit` on a large folder", "folder", lambda row: row["peak MiB"] / 1024, 2, " GiB"),
    Aim(
        "time of a row streamed to `transun fit` against one in memory",
        "streamed_fit",
        where("times in memory", rows_are="streamed"),
        1.3,
        " times",
    ),
    Aim(
        "`import transun` after torch",
        "startup",
        where("CPU seconds over torch", what="import torch; import transun"),
        0.3,
        " s",
    ),
    Aim("`transun --help`", "startup", where("seconds, median", what="transun --help"), 0.5, " s"),
    Aim(
        "ONNX file of a network, bias branch on the last layer, against none; 1 and 4,096 rows",
        "serving",
        where("ratio of means", over="LogMSE, ONNX"),
        1.03,
        " times",
    ),
    *(
        Aim(f"{name} by ONNX against one LightGBM, {words} a call", "serving", served_trees(name, rows), 1, " times")
        for name in ("GTSRegressor", "compact GTSRegressor")
        for rows, words in ((1, "one row"), (4096, "4,096 rows"))
    ),
    Aim("`transun serve`, 1,000 requests a second, p99", "serve", where("p99 ms", requests_a_second="1000"), 50, " ms"),
)


def aims(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of all aims that have a result."""
    lines = ["| what | aim | found | met |", "| :-- | :-- | :-- | :-- |"]
    for aim in AIMS:
        if aim.of in results:
            columns, rows = (results[aim.of][part] for part in ("columns", "rows"))
            cells = aim.cells([dict(zip(columns, row, strict=True)) for row in rows])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
