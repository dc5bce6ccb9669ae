"""Simulated years of `transun.watching`: how often it cries wolf, how soon it sees a change, and what it calls it.

A day has orders of log-normal amounts in four segments; labels arrive after a geometric delay. In quiet years nothing
changes. In other years one thing changes from a random day on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transun.watching import PredictedRows, watch
from transun_paper.lab.computation import Computation
from transun_paper.lab.store import Store

HISTORY, YEAR, ORDERS, DELAY = 180, 365, 150, 5.0
SEGMENTS = ("A", "B", "C", "D")
# What may change, and what is watched.
KINDS, WATCHED = ("amounts", "delay", "inputs"), ("total", "segment", "delay", "inputs")
# Standard deviations of ln(amount).
SPREADS = (0.5, 1.0)
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
        total = result.total
        alarm = total.evidence.alarm
        calm = (total.actual / total.expected - 1.0)[:at]
        results.append(
            {
                "changed": sorted({kind for kind, _, series in result.series() if series.changed}),
                "days": None if alarm is None else int(total.periods[alarm]) - HISTORY - at + 1,
                "variance": float(np.var(calm)) if len(calm) > 30 else None,
            }
        )
    return results


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """About as long as so many rows of a network."""
    return 1e5 * float(arguments["years"])


@dataclass(frozen=True)
class Simulation:
    """How many years of each kind are simulated.

    Args:
        quiet: years in which nothing changes.
        changed: years in which amounts grow by 5 %, for each spread.
        apart: years in which amounts or inputs grow by a fifth or the delay doubles.

    """

    quiet: int = 1_000
    changed: int = 100
    apart: int = 20

    @property
    def parts(self) -> dict[str, list[Computation]]:
        """The computations of each question."""
        parts = {"quiet": computations(self.quiet, 1.0, "nothing", 0.0)}
        parts |= {f"changed {spread}": computations(self.changed, spread, "amounts", 0.05) for spread in SPREADS}
        return parts | {kind: computations(self.apart, 1.0, kind, 0.2) for kind in KINDS}


def summarise(simulation: Simulation, store: Store) -> dict[str, Any]:
    """The report: false alarms, days until a change is found, what a change is called, and whether the claims hold."""
    years = {name: [year for each in work for year in store.read(each.text)] for name, work in simulation.parts.items()}
    alarms = sum(bool(year["changed"]) for year in years["quiet"])
    share = alarms / len(years["quiet"])
    error = float(np.sqrt(max(share, 1.0 / len(years["quiet"])) * (1.0 - share) / len(years["quiet"])))
    days = [_days(spread, years[f"changed {spread}"]) for spread in SPREADS]
    apart = {
        kind: {what: sum(what in year["changed"] for year in years[kind]) for what in WATCHED}
        | {"years": len(years[kind])}
        for kind in KINDS
    }
    slowest = max(days, key=lambda line: float(line["ratio"]))
    claims = [
        {
            "text": "at most 5 % of quiet years have any alarm, in the total, a segment, the delay or the inputs",
            "holds": share <= 0.05,
            "evidence": f"{alarms} of {len(years['quiet']):,} years, {share:.1%} ± {error:.1%}",
        },
        {
            "text": "a change of 5 % is found within 1.5 times the days of a fixed test that knows when to look",
            "holds": slowest["ratio"] <= 1.5,
            "evidence": f"at most {slowest['ratio']:.2f} times (median of {slowest['years']} years, spread "
            f"{slowest['spread']})",
        },
        {
            "text": "a change of the inputs or of the amounts is never called one of the delay",
            "holds": apart["amounts"]["delay"] == 0 and apart["inputs"]["delay"] == 0,
            "evidence": f"{apart['amounts']['delay']} and {apart['inputs']['delay']} of {simulation.apart} years each",
        },
    ]
    quiet = {"years": len(years["quiet"]), "alarms": alarms, "share": share, "error": error}
    return {"claims": claims, "quiet": quiet, "found": days, "apart": apart}


def _days(spread: float, years: list[dict[str, Any]]) -> dict[str, float]:
    """The median of the days until the alarm, and those of the fixed test, which has to wait for the labels, too."""
    days = float(np.median([YEAR if year["days"] is None else year["days"] for year in years]))
    variance = float(np.mean([year["variance"] for year in years if year["variance"] is not None]))
    fixed = FIXED * variance / 0.05**2 + DELAY
    early = sum(year["days"] is not None and year["days"] <= 0 for year in years)
    return {
        "spread": spread,
        "years": len(years),
        "days": days,
        "fixed_days": fixed,
        "ratio": days / fixed,
        "before_the_change": early,
    }
