"""Bias by level where the truth is known: boosted trees on log-normal noise whose spread depends on x."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from transun.corrections import BinnedSmearing
from transun.estimators import CorrectedRegressor, FitWarning, GTSRegressor, UnbiasedRegressor
from transun.schemes import PowerVariance
from transun.support.arrays import Floats
from transun.support.extras import need
from transun_paper.lab.compare import Claim
from transun_paper.lab.progress import ProgressLog, WriteLine, to_stderr
from transun_paper.lab.store import Store, rounded

# Two features of six values make cells that trees can learn, so that the bias that is left is that of the method.
_LEVELS = 6
_PARTS = 10
# Standard errors that a 95 % interval for ten parts at once extends to, by Bonferroni.
INTERVAL_ERRORS = 2.807


@dataclass(frozen=True)
class Simulation:
    """How many samples are drawn, and of how many rows.

    Args:
        repeats: independent samples; their scatter gives the interval.
        rows: training rows of each.

    """

    repeats: int = 20
    rows: int = 20_000


FULL_SIMULATION, QUICK_SIMULATION = Simulation(), Simulation(4, 4_000)

METHODS: Mapping[str, Callable[[Any], Any]] = {
    "log target": lambda base: CorrectedRegressor(base(), bias_correction=None, random_state=0),
    "smearing": lambda base: CorrectedRegressor(base(), bias_correction="smearing", random_state=0),
    "binned smearing": lambda base: CorrectedRegressor(base(), bias_correction=BinnedSmearing(), random_state=0),
    "MSE": lambda base: base(),
    "Poisson": lambda base: base(objective="poisson"),
    "GTS in-sample": lambda base: GTSRegressor(base(), slope=PowerVariance(2.0), emphasis=0.0, cv=None),
    "GTS, p = 1": lambda base: GTSRegressor(base(), slope=PowerVariance(1.0), emphasis=0.0, random_state=0),
    "GTS, p = 2": lambda base: GTSRegressor(base(), slope=PowerVariance(2.0), emphasis=0.0, random_state=0),
    "UnbiasedRegressor": lambda base: UnbiasedRegressor(base(), random_state=0),
}


def bias_by_level_table(
    store: Store, simulation: Simulation = FULL_SIMULATION, write: WriteLine = to_stderr
) -> list[dict[str, Any]]:
    """Per method and tenth of the true mean: the mean relative bias over the repeats, and its standard error."""
    entries: list[dict[str, Any]] = []
    log = ProgressLog("bias by level", len(METHODS) * simulation.repeats, write)
    for method in METHODS:
        samples = []
        for seed in range(simulation.repeats):
            text = f"bias by tenth of the true mean, {method}, {simulation.rows} rows, seed {seed}, version 1"
            samples.append(store.run(text, partial(_biases, method, simulation.rows, seed)))
            log.advance(1, method)
        biases = np.asarray(samples)
        error = biases.std(axis=0, ddof=1) / np.sqrt(simulation.repeats)
        entries.append(rounded({"method": method, "bias": biases.mean(axis=0).tolist(), "error": error.tolist()}, 5))
    return entries


def level_claims(entries: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Whether cross-fitted GTS is inside its interval at every level, and constant smearing is not."""
    largest = {entry["method"]: largest_in_errors(entry) for entry in entries}
    expected = {"GTS, p = 1": True, "GTS, p = 2": True, "smearing": False, "log target": False}
    return [
        Claim(
            f"{method} is {'inside' if inside else 'outside'} its 95 % interval "
            f"{'at every level' if inside else 'at some level'}",
            (largest[method] <= INTERVAL_ERRORS) == inside,
            f"largest bias is {largest[method]:.1f} standard errors; the interval ends at {INTERVAL_ERRORS}",
        )
        for method, inside in expected.items()
    ]


def largest_in_errors(entry: Mapping[str, Any]) -> float:
    """The bias furthest from zero, in standard errors.

    >>> largest_in_errors({"bias": [0.02, -0.03], "error": [0.01, 0.01]})
    3.0
    """
    return max(float(abs(bias) / error) for bias, error in zip(entry["bias"], entry["error"], strict=True))


def draw(rows: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Features (n, 2), targets and true means (n,).

    ln y is normal around 2 + 0.5·a - 0.3·b with standard deviation 0.3 + 0.18·b for a, b in 0..5: the noise is largest
    where the amount is smallest, so one factor for all rows cannot be right.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, _LEVELS, size=(rows, 2)).astype(np.float64)
    centre, spread = 2.0 + 0.5 * x[:, 0] - 0.3 * x[:, 1], 0.3 + 0.18 * x[:, 1]
    return x, np.exp(centre + spread * rng.standard_normal(rows)), np.exp(centre + spread**2 / 2.0)


def _biases(method: str, rows: int, seed: int) -> list[float]:
    x, y, _ = draw(rows, seed)
    fresh, _, mean = draw(36_000, 10_000 + seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        pred = METHODS[method](_base).fit(x, y).predict(fresh)
    parts = np.array_split(np.argsort(mean, kind="stable"), _PARTS)
    return [float(pred[part].sum() / mean[part].sum() - 1.0) for part in parts]


def _base(**options: Any) -> Any:
    return need("lightgbm").LGBMRegressor(n_jobs=1, verbose=-1, random_state=0, **options)
