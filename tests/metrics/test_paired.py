"""Paired differences: their value by definition, their interval by its coverage."""

import numpy as np
import pytest

from transun.metrics import NRMSE, PGR, STANDARD
from transun.metrics.paired import paired_differences

pytest.importorskip("scipy")


def test_values_are_differences_of_the_metrics():
    rng = np.random.default_rng(0)
    y, weight = rng.lognormal(0.0, 1.0, 300), rng.integers(1, 4, 300).astype(float)
    preds = {name: y * rng.lognormal(0.0, 0.3, 300) for name in "abc"}
    differences = paired_differences(preds, y, weight)
    assert [(pair.model, pair.against, pair.metric) for pair in differences] == [
        (model, "a", metric.name) for model in "bc" for metric in STANDARD
    ]
    for pair, metric in zip(differences, [*STANDARD, *STANDARD], strict=True):
        expected = metric(preds[pair.model], y, weight) - metric(preds["a"], y, weight)
        assert pair.value == pytest.approx(expected)
        assert pair.low <= pair.value <= pair.high


def test_a_model_does_not_differ_from_itself():
    y = np.random.default_rng(0).lognormal(0.0, 1.0, 100)
    for pair in paired_differences({"a": y, "b": y.copy()}, y + 1.0):
        assert (pair.value, pair.low, pair.high, pair.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_interval_and_the_p_value_hold_their_level():
    """Totals of two unbiased predictions differ by 0 in truth.

    So 95 % of 300 p-values are above 0.05, ± 3 standard errors, and the 99 % interval holds 0 where p is above 0.01.
    """
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        mean = rng.uniform(1.0, 9.0, 200)
        y = mean * rng.gamma(2.0, 0.5, 200)
        preds = {name: mean * rng.gamma(8.0, 1 / 8.0, 200) for name in "ab"}
        (pair,) = paired_differences(preds, y, metrics=[PGR])
        held += pair.p > 0.05
        assert (pair.low <= 0.0 <= pair.high) == (pair.p > 0.01)
    assert abs(held / 300 - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 300)


def test_metrics_that_are_infinite_for_both_models_have_no_difference():
    zeros, ones = np.zeros(4), np.ones(4)
    (difference,) = paired_differences({"a": ones, "b": 2 * ones}, zeros, metrics=[NRMSE])
    assert NRMSE(ones, zeros) == np.inf
    assert np.isnan([difference.value, difference.low, difference.high, difference.p]).all()


def test_one_row_has_no_interval():
    with pytest.raises(ValueError, match="give two rows or more"):
        paired_differences({"a": np.ones(1), "b": np.ones(1)}, np.ones(1))


def test_pairing_sees_what_separate_intervals_cannot():
    rng = np.random.default_rng(2)
    mean = rng.uniform(1.0, 9.0, 500)
    y = mean * rng.lognormal(0.0, 1.0, 500)
    (pair,) = paired_differences({"a": mean, "b": 1.02 * mean}, y, metrics=[PGR])
    assert pair.p < 0.01
    assert PGR.standard_error(mean, y) > 5 * (pair.high - pair.low) / 4
    (error,) = paired_differences({"a": mean, "b": 8.0 * mean}, y, metrics=[NRMSE])
    assert error.low > 0.0
