import numpy as np
import pytest

from transun.metrics import PGR, STRE, bin_by_prediction, bin_by_target
from transun.metrics.binned import BinTable


def sample(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    pred = rng.gamma(2, 1, n)
    return pred, pred * rng.exponential(1, n)


@pytest.mark.parametrize(("make", "key"), [(bin_by_prediction, 0), (bin_by_target, 1)])
def test_bins_are_equal_in_frequency_and_hold_their_edges(make, key):
    data = sample()
    table = make(*data, bins=8)
    assert table.count.tolist() == [125] * 8
    np.testing.assert_allclose(table.edges[:-1], np.sort(data[key])[::125])
    assert table.edges[-1] == data[key].max()
    for b in range(8):
        last = data[key] <= table.edges[-1] if b == 7 else data[key] < table.edges[b + 1]
        inside = (data[key] >= table.edges[b]) & last
        pred, y = data[0][inside], data[1][inside]
        assert table.pred[b] == pytest.approx(pred.mean())
        assert table.y[b] == pytest.approx(y.mean())
        assert table.stre[b] == pytest.approx(STRE(pred, y))
        assert table.pgr[b] == pytest.approx(PGR(pred, y))
        assert table.stre_error[b] == pytest.approx(STRE.standard_error(pred, y))


def test_prediction_bins_of_a_calibrated_model_are_unbiased_and_target_bins_are_not():
    pred, y = sample(20_000)
    calibrated, by_target = bin_by_prediction(pred, y), bin_by_target(pred, y)
    # Ten standard normal numbers stay below 4.5 but for one seed in 15 000.
    assert np.abs(calibrated.stre / calibrated.stre_error).max() < 4.5
    assert by_target.stre[0] > 0.5
    assert by_target.stre[-1] < -0.5


def test_ties_are_never_split():
    y = np.r_[np.zeros(600), np.arange(1, 401)]
    table = bin_by_target(y, y, bins=10)
    assert table.count[0] == 600
    assert table.count.sum() == 1000
    assert len(np.unique(table.edges)) == len(table) + 1


def test_a_tie_across_a_border_goes_where_most_of_it_lies():
    y = [0.0] * 4 + [1.0] * 5 + [2.0]
    assert bin_by_target(y, y, bins=2).count.tolist() == [4, 6]


def test_fewer_values_than_bins():
    table = bin_by_prediction([1.0, 1.0, 2.0], [1.0, 3.0, 2.0], bins=10)
    assert isinstance(table, BinTable)
    assert len(table) == 2
    assert table.edges.tolist() == [1.0, 2.0, 2.0]
    assert table.y.tolist() == [2.0, 2.0]
    assert np.isnan(table.stre_error[1])
    assert len(bin_by_prediction([1.0], [1.0])) == 1


@pytest.mark.parametrize("make", [bin_by_prediction, bin_by_target])
def test_weight_two_is_the_row_twice_and_order_does_not_matter(make):
    pred, y = (x.round(1) for x in sample(200))
    times = np.random.default_rng(1).integers(0, 4, 200)
    order = np.random.default_rng(2).permutation(200)
    a = make(pred[order], y[order], times[order], bins=7)
    b = make(np.repeat(pred, times), np.repeat(y, times), bins=7)
    for name in ("edges", "weight", "pred", "y", "stre", "pgr"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12)


def test_no_bins_is_an_error():
    with pytest.raises(ValueError, match="`bins` is 0"):
        bin_by_target([1.0], [1.0], bins=0)
