"""Cells of the paper's synthetic tables: heads with a constant input on eight distributions, by its protocol."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor

from transun.heads import Head
from transun.models.spec import dumps
from transun.training.averaging import Tail
from transun_paper.datasets.distributions import DISTRIBUTIONS, Distribution
from transun_paper.lab.constants import best_rate, one_thread, train_constants
from transun_paper.lab.progress import ProgressLog, WriteLine, to_stderr
from transun_paper.lab.published import published
from transun_paper.lab.store import Store
from transun_paper.lab.synthetic_methods import SyntheticMethod


@dataclass(frozen=True)
class SyntheticProtocol:
    """The protocol of the paper's appendix: N draws, one epoch, the best of seven learning rates, ten seeds.

    Training starts from zero, as in the paper, or from the head's initial outputs, as in `fit`: a tree of classifiers
    or a gated mixture does not get far enough from zero in one epoch to show what it converges to.

    The best rate is the one of least cost on the training rows, so the true mean chooses nothing. Draws have a mean of
    their own, which no method can undo: on seeds 0 to 9 that of the Gamma draws is 3.6 standard errors high. So a
    method is judged against the mean of the draws it was trained on, and no seeds need to be chosen.
    """

    rows: int = 1_000_000
    batch: int = 1024
    seeds: int = 10
    first_seed: int = 0
    rates: tuple[float, ...] = (0.1, 0.01, 0.001, 0.5, 0.05, 0.005, 0.0005)
    averaged: float = 0.5
    prepared_start: bool = False

    def draw(self, distribution: Distribution) -> Tensor:
        """The training targets, (seeds, rows)."""
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        return torch.stack([distribution.sample(self.rows, seed).float() for seed in seeds])


FULL_PROTOCOL, QUICK_PROTOCOL = SyntheticProtocol(), SyntheticProtocol(rows=100_000, batch=256, seeds=5)
# A training that starts at the optimum does not depend on a good rate: two rates and half of the seeds show the noise.
STARTED = replace(FULL_PROTOCOL, prepared_start=True, seeds=5, rates=(0.1, 0.01))
STARTED_QUICK = replace(STARTED, rows=100_000, batch=256)
# A row costs a wide head a hundred times as much, so it gets a fifth of the rows.
WIDE = replace(STARTED, rows=200_000, seeds=3, rates=(0.1,))
WIDE_QUICK = replace(STARTED_QUICK, seeds=2, rates=(0.1,))


@dataclass(frozen=True)
class SyntheticCell:
    """One method on one distribution: signed relative errors (ŷ - E[y]) / E[y], one per seed.

    `average` is of the weights averaged over the second half of training, `last` of the last step, each at the learning
    rate of its own least cost; `limit` is the value by quadrature, None where noise decides; `noise` is the standard
    error of the mean of one sample.
    """

    method: str
    label: str
    distribution: str
    average: list[float]
    average_rate: float
    last: list[float]
    last_rate: float
    sample: list[float]
    """The signed relative error of the mean of each seed's own draws."""
    limit: float | None
    noise: float
    paper: float | None

    @property
    def gap(self) -> float:
        """The mean over seeds of (ŷ - the mean of its own draws) / E[y]: 0 for a method that learns the mean."""
        return fmean(a - b for a, b in zip(self.average, self.sample, strict=True))

    @property
    def gap_error(self) -> float:
        """The standard error of that mean."""
        gaps = [a - b for a, b in zip(self.average, self.sample, strict=True)]
        return stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan

    @property
    def sre(self) -> float:
        """The mean over seeds."""
        return fmean(self.average)

    @property
    def error(self) -> float:
        """The standard error of that mean."""
        return stdev(self.average) / math.sqrt(len(self.average)) if len(self.average) > 1 else math.nan


def run_table(
    table: str | None,
    methods: Sequence[SyntheticMethod],
    protocol: SyntheticProtocol,
    store: Store,
    write: WriteLine = to_stderr,
) -> list[SyntheticCell]:
    """Every cell of a table, by its LaTeX label, None for one that the paper lacks; finished cells are in the store."""
    pairs = [(distribution, method) for distribution in DISTRIBUTIONS for method in methods]
    cells: list[SyntheticCell] = []
    draws: _Draws | None = None
    log = ProgressLog(f"table {table or 'of our own'}", len(pairs), write)
    with one_thread():
        for distribution, method in pairs:
            head = method.head_for(distribution.name)
            if draws is None or draws.distribution is not distribution:
                draws = _Draws(protocol, distribution)
            if head is not None:
                text = f"{dumps(head)} on {distribution.name} by {protocol}"
                result = store.run(text, partial(_train, head, method, draws))
                noise = math.sqrt(distribution.variance / protocol.rows) / distribution.mean
                paper = None if table is None else published(table, method.name, method.label, distribution.name)
                cells.append(
                    SyntheticCell(method.name, method.label, distribution.name, **result, noise=noise, paper=paper)
                )
            log.advance(1, f"{distribution.name} {method.name} {method.label}")
    return cells


class _Draws:
    """The samples of one distribution, drawn when the first missing cell needs them."""

    def __init__(self, protocol: SyntheticProtocol, distribution: Distribution) -> None:
        self.protocol, self.distribution = protocol, distribution

    @cached_property
    def targets(self) -> Tensor:
        """(seeds, rows)."""
        return self.protocol.draw(self.distribution)


def _train(head: Head, method: SyntheticMethod, draws: _Draws) -> dict[str, Any]:
    protocol, distribution, y = draws.protocol, draws.distribution, draws.targets
    # Bins and bounds come from one sample of N draws, as in the paper; all seeds share them.
    prepared = head.prepare(y[0])
    start = prepared.initial_outputs(y[0])
    if not protocol.prepared_start:
        start = tuple(map(torch.zeros_like, start))
    trained = train_constants(prepared, y, start, protocol.rates, protocol.batch, Tail(protocol.averaged))
    own_means = y.double().mean(1) / distribution.mean - 1.0
    result: dict[str, Any] = {"limit": method.limit(distribution, prepared), "sample": own_means.tolist()}
    for name, raw in trained._asdict().items():
        best = best_rate(method.rate_cost, prepared, raw, y, protocol.rates, protocol.batch)
        predictions = prepared.eval()(raw).view(protocol.seeds, len(protocol.rates))[:, best]
        errors = predictions / distribution.mean - 1.0
        result |= {name: errors.tolist(), f"{name}_rate": protocol.rates[best]}
    return result


def summary(cells: Sequence[SyntheticCell]) -> list[dict[str, Any]]:
    """The cells as plain values, with the mean over seeds and its standard error."""
    return [
        asdict(cell)
        | {"sre": cell.sre, "error": cell.error, "sre_last": fmean(cell.last)}
        | {"gap": cell.gap, "gap_error": cell.gap_error}
        for cell in cells
    ]
