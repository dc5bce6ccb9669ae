"""Numbers of an assessment are those of their definitions; biased segments are found and fair ones are not."""

import numpy as np
import pytest

from transun.data.table import read_table
from transun.diagnosis.assessment import NAMES, assess
from transun.metrics import bin_by_prediction

pytest.importorskip("scipy")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 4000
    mean = rng.uniform(1.0, 20.0, n)
    y = mean * rng.gamma(2.0, 0.5, n)  # E = mean
    country = rng.choice(["IT", "FR", "DE", "ES"], n)
    pred = np.where(country == "FR", 0.6, 1.0) * mean
    return pred, y, rng.integers(0, 4, n).astype(float), country


def values(assessment):
    return {one.name: one.value for one in assessment.metrics}


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_by_definition(rows, weighted):
    pred, y, weight, _ = rows
    w = weight if weighted else np.ones(len(y))
    found = values(assess(pred, y, weight if weighted else None))
    total = (w * pred).sum()
    mean = (w * y).sum() / w.sum()
    assert found["TRE"] == pytest.approx(abs((w * (pred - y)).sum() / total))
    assert found["STRE"] == pytest.approx((w * (pred - y)).sum() / total)
    assert found["PGR"] == pytest.approx(total / (w * y).sum())
    assert found["MRE"] == pytest.approx(abs((w * (pred - y) / pred).sum() / w.sum()))
    assert found["NRMSE"] == pytest.approx(np.sqrt((w * (pred - y) ** 2).sum() / w.sum()) / mean)
    assert found["NMAE"] == pytest.approx((w * np.abs(pred - y)).sum() / w.sum() / mean)
    assert {name for name in NAMES if not name.endswith(("_low", "_high"))} == {name.lower() for name in found}


def test_names_of_a_requirement_are_there(rows):
    assert set(assess(*rows[:2]).part().names()) == set(NAMES)


def test_the_biased_segment_is_found_and_no_other(rows):
    pred, y, _, country = rows
    found = assess(pred, y, None, read_table({"country": country}))
    assert {one.value for one in found.segments if one.biased} == {"FR"}
    assert {one.value: one.rows for one in found.segments} == {
        name: int((country == name).sum()) for name in ("IT", "FR", "DE", "ES")
    }
    (french,) = [one for one in found.segments if one.value == "FR"]
    own = country == "FR"
    assert {one.name: one.value for one in french.metrics}["PGR"] == pytest.approx(pred[own].sum() / y[own].sum())


def test_numbers_are_segments_by_value_or_by_range(rows):
    pred, y, weight, _ = rows
    table = read_table({"few": weight.astype(int), "many": np.arange(len(y), dtype=float)})
    found = assess(pred, y, None, table)
    assert {one.value for one in found.segments if one.column == "few"} == {"0", "1", "2", "3"}
    ranges = [one for one in found.segments if one.column == "many"]
    assert len(ranges) == 10
    assert sum(one.rows for one in ranges) == len(y)


def test_bins_and_their_mean_slope(rows):
    pred, y, weight, _ = rows
    slope = 1.0 / (pred + 1.0)
    found = assess(pred, y, weight, None, slope).bins
    table = bin_by_prediction(pred, y, weight)
    assert [one.stre for one in found] == pytest.approx(table.stre.tolist())
    for index, one in enumerate(found):
        top = table.edges[index + 1] if index + 1 < len(found) else np.inf
        inside = (pred >= table.edges[index]) & (pred < top)
        assert one.slope == pytest.approx((weight * slope)[inside].sum() / weight[inside].sum())
    assert {one.slope for one in assess(pred, y).bins} == {None}


def test_a_total_that_is_not_positive_has_no_ratio():
    found = {one.name: one for one in assess(np.array([-1.0, 0.5, -2.0]), np.array([1.0, -1.0, -3.0])).metrics}
    assert np.isnan([found["PGR"].value, found["PGR"].high, found["TRE"].low]).all()
    assert np.isfinite(found["NMAE"].value)


def test_the_total_is_judged_at_99_per_cent(rows):
    """Of 400 fair sets about 1 % are called biased, and 5 % have 95 % intervals that leave 1 out."""
    pred, y, _, _ = rows
    assert assess(0.8 * pred, y).biased
    assert not assess(np.full(50, 7.0) * (1 + 1e-7), np.full(50, 7.0)).biased
    rng = np.random.default_rng(3)
    strict = loose = 0
    for _ in range(400):
        mean = rng.uniform(1.0, 9.0, 150)
        found = assess(mean, mean * rng.gamma(2.0, 0.5, 150))
        pgr = next(one for one in found.metrics if one.name == "PGR")
        strict += found.biased
        loose += not pgr.low <= 1.0 <= pgr.high
    # Binomial bounds of four standard errors and a little for the approximation.
    assert strict <= 14
    assert 6 <= loose <= 40


def test_a_diverged_model_is_told():
    with pytest.raises(ValueError, match="row 1 is nan: the training diverged"):
        assess(np.array([1.0, np.nan]), np.ones(2))
