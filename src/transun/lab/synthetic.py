"""The paper's synthetic tables: heads with a constant input on eight distributions, by its own protocol."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor

from transun.averaging import Tail
from transun.data import DISTRIBUTIONS, Distribution
from transun.heads import MSE, Head, PointHead, TranSUN
from transun.lab.constants import Judge, best_rate, one_thread, own_loss, squared_error, train_constants
from transun.lab.published import published
from transun.lab.store import Store
from transun.progress import Progress
from transun.spec import dumps
from transun.transforms import Affine, Log1p, Power, Transform


@dataclass(frozen=True)
class Protocol:
    """The paper's appendix: N draws, one epoch, the best of seven learning rates, ten seeds.

    The best rate is the one of least cost on the training rows, so nothing peeks at the true mean. Seeds begin at 2025:
    on seeds 0 to 9 the Gamma draws themselves average 3.6 standard errors above their mean, which no method can undo.
    """

    rows: int = 1_000_000
    batch: int = 1024
    seeds: int = 10
    first_seed: int = 2025
    rates: tuple[float, ...] = (0.1, 0.01, 0.001, 0.5, 0.05, 0.005, 0.0005)
    averaged: float = 0.5

    def draw(self, distribution: Distribution) -> Tensor:
        """The training targets, (seeds, rows)."""
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        return torch.stack([distribution.sample(self.rows, seed).float() for seed in seeds])


FULL, QUICK = Protocol(), Protocol(rows=100_000, batch=256, seeds=5)


@dataclass(frozen=True)
class Method:
    """A row of a table: a head under the paper's name.

    `limit` is what it converges to, relative to the mean; `judge` the cost by which its learning rate is chosen.
    """

    name: str
    transform: str
    head: Head
    limit: Callable[[Distribution], float]
    judge: Judge


def unbiased(distribution: Distribution) -> float:
    """The limit of a method that learns the mean: no relative error."""
    return 0.0


def retransformed(transform: Transform) -> Callable[[Distribution], float]:
    """The limit of T-MSE: the relative error of T⁻¹(E[T(y)]), by quadrature."""

    def limit(distribution: Distribution) -> float:
        point = torch.tensor(distribution.expect(transform), dtype=torch.float64)
        return float(transform.inverse(point)) / distribution.mean - 1.0

    return limit


def debiasing_methods() -> list[Method]:
    """T-MSE against TranSUN under the paper's three transforms, after plain MSE."""
    methods = [Method("MSE", "-", MSE(), unbiased, own_loss)]
    for name, transform in {"0.5y": Affine(0.5), "ln(y+1)": Log1p(), "y^2": Power(2.0)}.items():
        methods.append(Method("T-MSE", name, PointHead(transform), retransformed(transform), own_loss))
        methods.append(Method("TranSUN", name, TranSUN(transform), unbiased, squared_error))
    return methods


@dataclass(frozen=True)
class Cell:
    """One method on one distribution: signed relative errors (ŷ - E[y]) / E[y], one per seed.

    `average` is of the weights averaged over the second half of training, `last` of the last step, each at the learning
    rate of its own least training loss; `limit` is the value by quadrature, `noise` the standard error of the mean of
    one sample.
    """

    method: str
    transform: str
    distribution: str
    average: list[float]
    average_rate: float
    last: list[float]
    last_rate: float
    limit: float
    noise: float
    paper: float | None

    @property
    def sre(self) -> float:
        """The mean over seeds."""
        return fmean(self.average)

    @property
    def error(self) -> float:
        """The standard error of that mean."""
        return stdev(self.average) / math.sqrt(len(self.average)) if len(self.average) > 1 else math.nan


def run_table(
    table: str, methods: Sequence[Method], protocol: Protocol, store: Store, show: bool | None = None
) -> list[Cell]:
    """Every cell of a table; cells finished earlier are read back from the store."""
    cells: list[Cell] = []
    with one_thread(), Progress(f"table {table}", len(DISTRIBUTIONS) * len(methods), show) as bar:
        for distribution in DISTRIBUTIONS:
            draws = _Draws(protocol, distribution)
            for method in methods:
                result = store.run(
                    f"{dumps(method.head)} on {distribution.name} by {protocol}",
                    partial(_train, method, draws),
                )
                limit, noise = method.limit(distribution), math.sqrt(distribution.variance / protocol.rows)
                paper = published(table, method.name, method.transform, distribution.name)
                context = (method.name, method.transform, distribution.name)
                cells.append(Cell(*context, **result, limit=limit, noise=noise / distribution.mean, paper=paper))
                bar.advance(len(cells), f"{distribution.name} {method.name} {method.transform}")
    return cells


class _Draws:
    """The samples of one distribution, drawn when the first missing cell asks for them."""

    def __init__(self, protocol: Protocol, distribution: Distribution) -> None:
        self.protocol, self.distribution = protocol, distribution
        self._targets: Tensor | None = None

    @property
    def targets(self) -> Tensor:
        if self._targets is None:
            self._targets = self.protocol.draw(self.distribution)
        return self._targets


def _train(method: Method, draws: _Draws) -> dict[str, Any]:
    protocol, y, mean = draws.protocol, draws.targets, draws.distribution.mean
    prepared = method.head.prepare(y.flatten())
    trained = train_constants(prepared, y, protocol.rates, protocol.batch, Tail(protocol.averaged))
    result: dict[str, Any] = {}
    for name, raw in trained._asdict().items():
        best = best_rate(method.judge, prepared, raw, y, protocol.rates, protocol.batch)
        predictions = prepared(raw).view(protocol.seeds, len(protocol.rates))[:, best]
        result |= {name: (predictions / mean - 1.0).tolist(), f"{name}_rate": protocol.rates[best]}
    return result


def summary(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The cells as plain values, with the mean over seeds and its standard error."""
    return [asdict(cell) | {"sre": cell.sre, "error": cell.error, "sre_last": fmean(cell.last)} for cell in cells]
