import math

import numpy as np
import pytest

from transun.metrics import FLOORED, MRE, NEGATIVE, SMRE, Meter
from transun.metrics.relative import FlooredShare, MeanRelativeError, SignedMeanRelativeError


def by_hand(pred, y, weight, floor=1e-6):
    delta = 2.0 ** math.floor(math.log2(floor * np.average(np.abs(y), weights=weight)))
    divisor = np.where(np.abs(pred) < delta, delta, pred)
    return np.average((pred - y) / divisor, weights=weight), np.average(np.abs(pred) < delta, weights=weight)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1000.0, 1e12])
def test_the_unit_of_the_target_does_not_matter(unit):
    """One prediction of zero in a thousand, which a floor in units of the target would let decide everything."""
    unit = 2.0 ** round(math.log2(unit))
    y = np.full(1000, 1.5) * unit
    pred = np.where(np.arange(1000) == 0, 0.0, y)
    assert MRE(pred, y) == pytest.approx(1.5 / 2.0**-20 / 1000)  # 2^-20 is the power of two below 1.5e-6
    assert FLOORED(pred, y) == pytest.approx(1 / 1000)


@pytest.mark.parametrize("floor", [1e-6, 0.1, 3.0])
def test_against_a_loop_over_rows(floor):
    rng = np.random.default_rng(0)
    y, weight = rng.gamma(0.3, 5.0, 400), rng.gamma(1.0, 1.0, 400)
    pred = rng.normal(size=400) * 10.0 ** rng.uniform(-9, 3, 400)
    pred[:20] = 0.0
    mean, share = by_hand(pred, y, weight, floor)
    assert SignedMeanRelativeError(floor)(pred, y, weight) == pytest.approx(mean, rel=1e-12)
    assert MeanRelativeError(floor)(pred, y, weight) == pytest.approx(abs(mean), rel=1e-12)
    assert FlooredShare(floor)(pred, y, weight) == pytest.approx(share, rel=1e-12)


def test_shards_merge_although_no_shard_knows_the_floor():
    y = np.array([1e-3, 1e-3, 4e6])  # alone, the first rows would not be floored
    pred = np.array([1e-2, 1e-2, 4e6])
    meter = Meter(SMRE, MRE, FLOORED)
    for row in range(3):
        meter.update(pred[[row]], y[[row]])
    mean, share = by_hand(pred, y, np.ones(3))
    assert meter.compute() == {"SMRE": pytest.approx(mean), "MRE": pytest.approx(abs(mean)), "FLOORED": share}
    assert share == pytest.approx(2 / 3)


def test_negative_predictions_keep_their_sign():
    assert SMRE([-2.0], [2.0]) == pytest.approx(2.0)
    assert NEGATIVE([0.0, 1e-7, -1e-7, -5.0, 1.0], [1.0] * 5) == pytest.approx(2 / 5)


def test_zeros_everywhere():
    assert SMRE([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert FLOORED([0.0, 2.0], [0.0, 0.0]) == 0.5


def test_extreme_predictions_stay_finite():
    pred = [1e-300, 1e-70, 1e300]
    assert MRE(pred, [1.0, 1.0, 1.0]) > 0.0
    assert math.isfinite(MRE(pred, [1.0, 1.0, 1.0]))
