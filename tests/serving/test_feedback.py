"""Totals of labelled rows: the ratio and its interval by the delta method, and the memory of predictions."""

import math

import numpy as np
import pytest

from transun.experiments.sequence import always_valid_errors
from transun.serving.feedback import Feedback, MadePredictions


def test_the_interval_is_that_of_a_ratio_of_means():
    rng = np.random.default_rng(0)
    pred = rng.lognormal(0.0, 1.0, 500)
    actual = pred * rng.exponential(1.0, 500)
    feedback = Feedback()
    for part in np.split(np.arange(500), 5):
        feedback.update(pred[part], actual[part])
    ratio = pred.sum() / actual.sum()
    errors = pred - ratio * actual
    error = errors.std(ddof=1) / math.sqrt(500) / actual.mean()
    half = always_valid_errors(500) * error
    assert feedback.pgr == pytest.approx(ratio)
    assert (feedback.interval.low, feedback.interval.high) == pytest.approx((ratio - half, ratio + half))


def test_few_rows_have_no_interval_and_none_no_ratio():
    feedback = Feedback()
    assert math.isnan(feedback.pgr)
    feedback.update(np.ones(99), np.ones(99))
    assert feedback.pgr == 1.0
    assert math.isnan(feedback.interval.low)


def test_the_last_predictions_are_remembered_once():
    made = MadePredictions(kept=3)
    old = made.add([1.0, 2.0])
    new = made.add([3.0, 4.0, 5.0, 6.0])
    assert made.take([new[3], new[1]]).tolist() == [6.0, 4.0]
    for wrong in (old[0], new[0], new[1], f"{new[0].partition('-')[0]}-99", "", "-", 7, None, f"{old[0]}{'9' * 5_000}"):
        with pytest.raises(ValueError, match="ids, row 1"):
            made.take([new[2], wrong])
    assert made.take([new[2]]).tolist() == [5.0]  # the refused requests have not taken it


def test_ids_of_another_server_are_unknown():
    (id_,) = MadePredictions(9).add([1.0])
    other = MadePredictions(9)
    other.add([1.0])
    with pytest.raises(ValueError, match="none of the last 9 predictions"):
        other.take([id_])
