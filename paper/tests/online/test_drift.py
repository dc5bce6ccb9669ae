"""Totals under drift: the calibrator's arithmetic, the world's level, and the figure."""

import json
from pathlib import Path

import numpy as np
import pytest

from transun_paper.lab.computation import Computation
from transun_paper.lab.store import Store
from transun_paper.online.drift import DRIFT, METHODS, calibrated_totals, level_of_day
from transun_paper.pages.figures import draw


def day(predicted, actual, true=None):
    return {"predicted": predicted, "actual": actual, "true": actual if true is None else true}


def test_a_calibrator_uses_the_three_days_before():
    days = [day([1.0], [value]) for value in (1.0, 2.0, 4.0, 8.0, 16.0)]
    totals, _ = calibrated_totals(days, calibrated=True)
    factors = [1.0, 1.0, 1.5, 7 / 3, 14 / 3]
    assert totals.tolist() == pytest.approx(
        [factor / value for factor, value in zip(factors, (1, 2, 4, 8, 16), strict=True)]
    )
    assert calibrated_totals(days, calibrated=False)[0].tolist() == [1.0, 0.5, 0.25, 0.125, 0.0625]


def test_one_factor_cannot_mend_two_parts():
    days = [day([1.0, 1.0], [1.0, 3.0])] * 4
    totals, parts = calibrated_totals(days, calibrated=True)
    assert totals[1:].tolist() == [1.0] * 3
    assert parts[1:].tolist() == [[2.0, pytest.approx(2 / 3)]] * 3


def test_the_sale_is_a_fifth_off():
    levels = np.array([level_of_day(number, 60) for number in range(60)])
    trend = np.exp(-0.005 * np.arange(60))
    assert np.round(levels / trend, 9).tolist() == [0.8 if 20 <= number < 26 else 1.0 for number in range(60)]


def test_true_and_actual_totals_agree_and_the_figure_draws(tmp_path):
    small = {"seed": 0, "orders": 2_000, "days": 4, "daily": 4_000}
    result = Computation("drift", small).compute(Path())
    for days in result["sums"].values():
        actual, true = (np.array([day[key] for day in days]).sum() for key in ("actual", "true"))
        assert actual == pytest.approx(true, rel=0.06)  # 16,000 orders whose deviation is 1.6 times their mean: 1.3 %
    store = Store(tmp_path)
    for work in DRIFT.computations({}, quick=True):
        store.keep(work.text, result)
    report = DRIFT.report(store, {}, quick=True)
    assert set(report["panels"][0]["days"]) == set(METHODS)
    chart = json.dumps(draw(report).to_dict())
    assert all(method in chart for method in METHODS)
    # Equal seeds leave no doubt: what is nearer is nearer.
    assert {claim["holds"] for claim in report["claims"]} <= {"yes", "no"}
