"""Simulated years of `transun.watching`: how often it cries wolf, how soon it sees a change, and what it calls it.

A day has orders of log-normal amounts in four segments; labels arrive after a geometric delay. In quiet years nothing
changes. In other years one thing changes from a random day on.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transun.watching import PredictedRows, watch
from transun_paper.lab.computation import Computation

HISTORY, YEAR, ORDERS, DELAY = 180, 365, 150, 5.0
SEGMENTS = ("A", "B", "C", "D")
# (1.960 + 1.645)²: a two-sided test of level 5 % with known day of change and spread σ of the daily ratio has a power
# of 95 % after so many days times σ²/0.05².
FIXED = 12.995
# Part of every key: a change of how a result is computed must change it.
_VERSION = 1
_YEARS = 50


def simulate(seed: int, spread: float, kind: str, at: int, size: float) -> PredictedRows:
    """A history and a year of orders.

    Args:
        seed: of everything random.
        spread: the standard deviation of ln(amount).
        kind: what changes: "nothing", "amounts", "delay" or "inputs".
        at: the day of the year since when it changes.
        size: by which share amounts or inputs grow; a delay doubles.

    """
    rng = np.random.default_rng(seed)
    days = HISTORY + YEAR
    period = np.repeat(np.arange(days), rng.poisson(ORDERS, days))
    changed = period >= HISTORY + at
    pred = rng.lognormal(3.0, 0.5, len(period)) * np.where(changed & (kind == "inputs"), 1.0 + size, 1.0)
    noise = rng.lognormal(-(spread**2) / 2.0, spread, len(period))
    amount = pred * noise * np.where(changed & (kind == "amounts"), 1.0 + size, 1.0)
    wait = rng.geometric(1.0 / (1.0 + np.where(changed & (kind == "delay"), 2.0 * DELAY, DELAY))) - 1
    codes = rng.integers(0, len(SEGMENTS), len(period))
    rows = np.arange(len(period))
    return PredictedRows(period, pred, rows, wait, amount, days - 1, {"segment": (codes, SEGMENTS)})


def computations(years: int, spread: float, kind: str, size: float) -> list[Computation]:
    """So many years, in parts that can be interrupted."""
    arguments = {"spread": spread, "kind": kind, "size": size, "version": _VERSION}
    firsts = range(0, years, _YEARS)
    return [
        Computation("watching", {"first": first, "years": min(_YEARS, years - first), **arguments}) for first in firsts
    ]


def compute(arguments: Mapping[str, Any], cache: Path) -> list[dict[str, Any]]:
    """For every year what was called changed, the days until the alarm of the total, and the spread of daily ratios."""
    results = []
    for seed in range(arguments["first"], arguments["first"] + arguments["years"]):
        at = int(np.random.default_rng((seed, 1)).integers(0, 120))
        result = watch(simulate(seed, arguments["spread"], arguments["kind"], at, arguments["size"]), HISTORY, YEAR)
        total = result.series[0]
        alarm = total.evidence.alarm
        calm = (total.actual / total.expected - 1.0)[:at]
        results.append(
            {
                "changed": sorted({series.what for series in result.series if series.changed}),
                "days": None if alarm is None else int(total.periods[alarm]) - HISTORY - at + 1,
                "variance": float(np.var(calm)) if len(calm) > 30 else None,
            }
        )
    return results


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """About as long as so many rows of a network."""
    return 1e5 * float(arguments["years"])
