"""The table of online tests as a simulation: what LogSUN gains where the truth is known, and what a test sees of it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from transun.support.extras import need
from transun_paper.lab.computation import Computation
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store
from transun_paper.online.ranking_test import PAIRS, SCENARIOS, computation
from transun_paper.tables.findings import NO, NOT_RUN, UNDECIDED, YES, Answer, Finding
from transun_paper.tables.table import Keys, table_report

_SIZES = {"orders": 60_000, "users": 100_000, "items": 500, "candidates": 20, "shown": 5, "epochs": 3}
_FULL = {"repetitions": 10, "visits": 200_000}
_QUICK = {"repetitions": 2, "visits": 20_000}
_DECISIVE = "uncapped, adjusted"
# Everything in per cent.
_GAIN, _GMV, _GMVPI, _WIDTH = "true gain, %", "GMV, %", "GMVPI, %", "± of one test"
_POWER, _SHOWN, _BEST = "planned power, %", "shown, %", "best possible gain, %"
_COLUMNS = (_GAIN, _GMV, _GMVPI, _WIDTH, _POWER, _SHOWN, _BEST)
# A gain below this changes no decision: the smallest that the paper reports is 0.75 %.
_SMALL = 0.25

Tests = Sequence[Mapping[str, Any]]


class OnlineTable:
    """GMV and GMV per impression of rankings by LogSUN against those by LogMAE and LogMSE."""

    name = "online"
    title = "The online A/B test as a simulation: what ranking by LogSUN gains"

    def datasets(self, available: Iterable[str]) -> list[str]:
        """None: the market is simulated."""
        return []

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None: a test trains its own models."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """One test a scenario and repetition, and one measurement of speed."""
        return [*(test for tests in _computations(quick).values() for test in tests), _speed(quick)]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Our tests, the paper's, and the answers."""
        results = {
            scenario: [store.read(test.text) for test in tests if test.text in store]
            for scenario, tests in _computations(quick).items()
        }
        tables, claims = [], []
        for scenario, repetitions in results.items():
            rows = [_row(repetitions, f"{new} vs. {base}", base) for new, base in PAIRS]
            tables.append({"dataset": f"{scenario}: {SCENARIOS[scenario].title}", "rows": rows})
            claims += _claims(repetitions, scenario)
        everything = [result for repetitions in results.values() for result in repetitions]
        claims += _validity(everything)
        speed = _speed(quick)
        statement = _statement(quick, store.read(speed.text) if speed.text in store else None)
        noise = "of the repetitions, each with a market, training and users of its own"
        return table_report(self.name, self.title, statement, _COLUMNS, tables, claims, ("online_ab",), noise)


ONLINE = OnlineTable()


def _computations(quick: bool) -> dict[str, list[Computation]]:
    setting = _QUICK if quick else _FULL
    sizes = _SIZES | {"visits": setting["visits"]}
    return {name: [computation(name, seed, sizes) for seed in range(setting["repetitions"])] for name in SCENARIOS}


def _speed(quick: bool) -> Computation:
    visits = (_QUICK if quick else _FULL)["visits"]
    return Computation("ranking speed", _SIZES | {"visits": visits, "orders": visits // 20, "epochs": 1})


def _row(results: Tests, pair: str, base: str) -> dict[str, Any]:
    row: dict[str, Any] = {"method": pair, "label": "-"}
    if not results:
        return row | {"failed": "not run yet"}
    tests = [result["tests"][pair] for result in results]
    gmv, per_impression = (_effects(tests, outcome) for outcome in ("gmv per user", "gmv per impressions"))
    best = [result["true_values"]["truth"] / result["true_values"][base] - 1.0 for result in results]
    values = {
        _GAIN: [100.0 * test["gain"] for test in tests],
        _GMV: [100.0 * effect["change"] for effect in gmv],
        _GMVPI: [100.0 * effect["change"] for effect in per_impression],
        _WIDTH: [100.0 * 0.5 * (effect["high"] - effect["low"]) for effect in gmv],
        _POWER: [100.0 * test["power"] for test in tests],
        _SHOWN: [100.0 * float(effect["p_value"] < 0.05 and effect["change"] > 0.0) for effect in gmv],
        _BEST: [100.0 * share for share in best],
    }
    cells = {name: (float(np.mean(column)), _error(column)) for name, column in values.items()}
    totals = [result["totals"] for result in results]
    return row | {"cells": cells, "seeds": values, "totals": totals}


def _effects(tests: Tests, outcome: str) -> list[Mapping[str, Any]]:
    """The effect that decides, of every test."""
    return [
        next(effect for effect in test["effects"] if (effect["outcome"], effect["how"]) == (outcome, _DECISIVE))
        for test in tests
    ]


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _claims(results: Tests, scenario: str) -> list[Answer]:
    answers = []
    for new, base in PAIRS:
        pair = f"{new} vs. {base}"
        gains = [100.0 * result["tests"][pair]["gain"] for result in results]
        totals = [np.mean([result["totals"][name] for result in results]) for name in (new, base)] if results else []
        if SCENARIOS[scenario].noise is None:
            claim, finding = f"{pair}: the true gain is above 0", _above(gains)
        else:
            claim, finding = f"{pair}: the true gain is below {_SMALL} %, though totals differ", _small(gains)
        if results:
            evidence = f"{finding.evidence}; predicted / true total {totals[0]:.2f} vs. {totals[1]:.2f}"
            finding = Finding(finding.holds, evidence)
        answers.append(Answer.of(claim, scenario, finding))
    same = all(result["same_order"] for result in results)
    visits = "LogMSE and twice LogMSE rank all visits alike" if same else "some visits are ranked otherwise"
    answers.append(
        Answer.of(
            "A constant factor changes no order, so that a calibrated total alone gains nothing",
            scenario,
            Finding(YES if same else NO, visits) if results else NOT_RUN,
        )
    )
    return answers


def _above(values: Sequence[float]) -> Finding:
    if len(values) < 2:
        return NOT_RUN
    mean, half = float(np.mean(values)), _half(values)
    holds = YES if mean - half > 0.0 else NO if mean + half < 0.0 else UNDECIDED
    return Finding(holds, f"{mean:+.2f} % ± {half:.2f}, repetitions: {len(values)}")


def _small(values: Sequence[float]) -> Finding:
    if len(values) < 2:
        return NOT_RUN
    mean, half = float(np.mean(values)), _half(values)
    holds = YES if abs(mean) + half < _SMALL else NO if abs(mean) - half > _SMALL else UNDECIDED
    return Finding(holds, f"{mean:+.2f} % ± {half:.2f}, repetitions: {len(values)}")


def _half(values: Sequence[float]) -> float:
    """Half the width of Student's 95 % interval of the mean."""
    return float(need("scipy.special").stdtrit(len(values) - 1, 0.975)) * _error(values)


def _validity(results: Tests) -> list[Answer]:
    """Whether tests see the true gain: intervals cover it, and as many tests show it as were planned."""
    pairs = [test for result in results for test in result["tests"].values()]
    if not pairs:
        return []
    covered = [
        low["low"] <= test["gain"] <= low["high"]
        for outcome in ("gmv per user", "gmv per impressions")
        for test, low in zip(pairs, _effects(pairs, outcome), strict=True)
    ]
    significant = [effect["p_value"] < 0.05 for effect in _effects(pairs, "gmv per user")]
    expected = [test["power"] for test in pairs]
    noise = math.sqrt(sum(p * (1.0 - p) for p in expected))
    widths = [
        {effect["how"]: effect["error"] for effect in test["effects"] if effect["outcome"] == "gmv per user"}
        for test in pairs
    ]
    saved = 1.0 - float(np.mean([(width[_DECISIVE] / width["uncapped"]) ** 2 for width in widths]))
    # Tests of one repetition share an arm, and both outcomes their users: the noise is that of a quarter as many.
    coverage, deviation = float(np.mean(covered)), math.sqrt(0.05 * 0.95 / (len(covered) / 4.0))
    return [
        Answer.of(
            "95 % intervals of GMV and GMVPI cover the true gain",
            "all scenarios",
            Finding(
                YES if abs(coverage - 0.95) <= 2.0 * deviation else NO,
                f"{sum(covered)} of {len(covered)} intervals, {coverage:.1%}",
            ),
        ),
        Answer.of(
            "As many tests of GMV are significant as the plan before the test expects",
            "all scenarios",
            Finding(
                YES if abs(sum(significant) - sum(expected)) <= 3.0 * noise + 1.0 else NO,
                f"{sum(significant)} of {len(significant)}, expected {sum(expected):.1f} ± {noise:.1f}",
            ),
        ),
        Answer.of(
            "The past and the model's prediction narrow the intervals of GMV per user",
            "all scenarios",
            Finding(YES if saved > 0.0 else NO, f"they explain {saved:.0%} of the variance, which saves as many users"),
        ),
    ]


def _statement(quick: bool, measured: Mapping[str, float] | None) -> str:
    setting = _QUICK if quick else _FULL
    speed = ""
    if measured is not None:
        seconds, impressions = measured["seconds"], measured["impressions"]
        speed = (
            f" To rank, show and sell takes {1e7 * seconds / impressions:.0f} seconds of one core for 10⁷ impressions, "
            f"measured on {impressions:,.0f}."
        )
    return (
        f"Users of a simulated market (`transun_paper.online.market`) see the {_SIZES['shown']} of "
        f"{_SIZES['candidates']} items with the largest P(click) · P(order) · predicted amount, click, buy, and pay "
        "amounts of the simulated order log. All rankings use the true probabilities and differ by the predicted "
        f"amount alone: LogSUN, LogMAE or LogMSE on {_SIZES['orders']:,} orders. {setting['repetitions']} repetitions "
        f"a scenario, each with {setting['visits'] * _SIZES['shown']:,} impressions of {_SIZES['users']:,} users "
        "before the test and as many in it; users are assigned by a hash. The tests are those of `transun abtest`, "
        "adjusted by value and prediction of the time before. The true gain is the expected value of the rankings of "
        "the same visits; “shown” is the share of tests with a significant gain of GMV, and “planned power” what the "
        f"log before the test promised for the true gain. “Best possible” ranks by the true E[y|x].{speed}"
    )
