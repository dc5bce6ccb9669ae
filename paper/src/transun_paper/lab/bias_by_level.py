"""Bias by level where the truth is known: trees around log-normal noise whose spread depends on x."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transun.corrections import BinnedSmearing
from transun.estimators import AmplificationWarning, CorrectedRegressor, GTSRegressor, UnbiasedRegressor
from transun.schemes import PowerVariance
from transun.support.extras import need
from transun.support.progress import Progress
from transun_paper.lab.store import Store, rounded

Array = NDArray[np.float64]

# Two features of six values: cells that trees can learn, so that what is left is the method's own bias.
_LEVELS = 6
PARTS = 10
# A 95 % interval for ten parts at once, by Bonferroni.
WIDE = 2.807


@dataclass(frozen=True)
class Simulation:
    """How often, and from how many rows.

    Args:
        repeats: independent samples; their scatter gives the interval.
        rows: training rows of each.

    """

    repeats: int = 20
    rows: int = 20_000


FULL, QUICK = Simulation(), Simulation(4, 4_000)

METHODS: Mapping[str, Callable[[Any], Any]] = {
    "log target": lambda base: CorrectedRegressor(base(), bias_correction=None, random_state=0),
    "smearing": lambda base: CorrectedRegressor(base(), bias_correction="smearing", random_state=0),
    "binned smearing": lambda base: CorrectedRegressor(base(), bias_correction=BinnedSmearing(), random_state=0),
    "MSE": lambda base: base(),
    "Poisson": lambda base: base(objective="poisson"),
    "GTS in-sample": lambda base: GTSRegressor(base(), slope=PowerVariance(2.0), cv=None),
    "GTS, p = 1": lambda base: GTSRegressor(base(), slope=PowerVariance(1.0), random_state=0),
    "GTS, p = 2": lambda base: GTSRegressor(base(), slope=PowerVariance(2.0), random_state=0),
    "UnbiasedRegressor": lambda base: UnbiasedRegressor(base(), random_state=0),
}


def decile_table(store: Store, simulation: Simulation = FULL, show: bool | None = None) -> list[dict[str, Any]]:
    """Per method and tenth of the true mean: the mean relative bias over the repeats, and its standard error."""
    entries: list[dict[str, Any]] = []
    with Progress("bias by level", len(METHODS) * simulation.repeats, show) as bar:
        for method in METHODS:
            found = []
            for seed in range(simulation.repeats):
                text = f"bias by tenth of the true mean, {method}, {simulation.rows} rows, seed {seed}, version 1"
                found.append(store.run(text, partial(_biases, method, simulation.rows, seed)))
                bar.advance(len(entries) * simulation.repeats + seed + 1, method)
            biases = np.asarray(found)
            error = biases.std(axis=0, ddof=1) / np.sqrt(simulation.repeats)
            entries.append(
                rounded({"method": method, "bias": biases.mean(axis=0).tolist(), "error": error.tolist()}, 5)
            )
    return entries


def claims(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Whether cross-fitted GTS is inside its interval at every level, and constant smearing is not."""
    furthest = {entry["method"]: _furthest(entry) for entry in entries}
    wanted = {"GTS, p = 1": True, "GTS, p = 2": True, "smearing": False, "log target": False}
    return [
        {
            "text": f"{method} is {'inside' if inside else 'outside'} its 95 % interval "
            f"{'at every level' if inside else 'at some level'}",
            "holds": (furthest[method] <= WIDE) == inside,
            "evidence": f"largest bias is {furthest[method]:.1f} standard errors; the interval ends at {WIDE}",
        }
        for method, inside in wanted.items()
    ]


def _furthest(entry: Mapping[str, Any]) -> float:
    return max(float(abs(bias) / error) for bias, error in zip(entry["bias"], entry["error"], strict=True))


def draw(rows: int, seed: int) -> tuple[Array, Array, Array]:
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
        warnings.simplefilter("ignore", AmplificationWarning)
        pred = METHODS[method](_base).fit(x, y).predict(fresh)
    parts = np.array_split(np.argsort(mean, kind="stable"), PARTS)
    return [float(pred[part].sum() / mean[part].sum() - 1.0) for part in parts]


def _base(**given: Any) -> Any:
    return need("lightgbm").LGBMRegressor(n_jobs=1, verbose=-1, random_state=0, **given)
