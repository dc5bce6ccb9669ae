"""Numbers of an assessment are those of their definitions; biased segments are found and fair ones are not."""

import numpy as np
import pytest

from transun import metrics
from transun.data.table import read_table
from transun.diagnosis import diagnose
from transun.diagnosis.assessment import assess, requirement_names
from transun.diagnosis.certification import whole_part
from transun.metrics import STANDARD, STRE

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
    return {estimate.name: estimate.value for estimate in assessment.metrics}


def segments(assessment, column):
    (table,) = [table for table in assessment.segments if table.column == column]
    return table.segments


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
    assert list(found) == [metric.name for metric in STANDARD]


def test_a_requirement_may_name_every_metric(rows):
    assert set(whole_part(assess(*rows[:2])).names()) == set(requirement_names())


def test_rows_in_memory_and_in_a_table_get_the_same_numbers(rows):
    """`evaluate` assesses arrays and `diagnose` streams a table: same sums, intervals, segments and verdict."""
    pred, y, weight, country = rows
    assessment = assess(pred, y, weight, read_table({"country": country}))
    diagnosis = diagnose(y, pred, by={"country": country}, weight=weight, progress=False)
    assert assessment.metrics == diagnosis.metrics
    assert assessment.levels == diagnosis.levels
    assert (assessment.rows, assessment.predicted) == (diagnosis.rows, diagnosis.predicted)
    for ours, theirs in zip(segments(assessment, "country"), segments(diagnosis, "country"), strict=True):
        assert (ours.value, ours.rows, ours.p_value) == (theirs.value, theirs.rows, theirs.p_value)
        assert ours.metric("PGR") == theirs.metric("PGR")


def test_a_metric_that_joins_the_standard_list_is_computed(rows, monkeypatch):
    pred, y, weight, country = rows
    monkeypatch.setattr(metrics, "STANDARD", (*metrics.STANDARD, metrics.SMRE, metrics.NDCG))
    assessment = assess(pred, y, weight, read_table({"country": country}))
    diagnosis = diagnose(y, pred, weight=weight, progress=False)
    for metric in (metrics.SMRE, metrics.NDCG):
        expected = pytest.approx(metric(pred, y, weight))
        assert assessment.metric(metric.name).value == expected
        assert diagnosis.metric(metric.name).value == expected
        assert {metric.name.lower(), f"{metric.name.lower()}_low"} <= set(requirement_names())
        inside = country == "FR"
        (french,) = [one for one in segments(assessment, "country") if one.value == "FR"]
        assert french.metric(metric.name).value == pytest.approx(metric(pred[inside], y[inside], weight[inside]))
    assert assessment.metric("SMRE").low < 0.0  # a signed metric may be negative


def test_the_biased_segment_is_found_and_no_other(rows):
    pred, y, _, country = rows
    found = segments(assess(pred, y, None, read_table({"country": country})), "country")
    assert {segment.value for segment in found if segment.biased} == {"FR"}
    assert {segment.value: segment.rows for segment in found} == {
        name: int((country == name).sum()) for name in ("IT", "FR", "DE", "ES")
    }
    (french,) = [segment for segment in found if segment.value == "FR"]
    inside = country == "FR"
    for metric in STANDARD:
        assert french.metric(metric.name).value == pytest.approx(metric(pred[inside], y[inside])), metric.name
    assert french.share == pytest.approx(y[inside].sum() / y.sum())


def test_numbers_are_segments_by_value_or_by_range(rows):
    pred, y, weight, _ = rows
    table = read_table({"few": weight.astype(int), "many": np.arange(len(y), dtype=float)})
    assessment = assess(pred, y, None, table)
    assert {segment.value for segment in segments(assessment, "few")} == {"0", "1", "2", "3"}
    ranges = segments(assessment, "many")
    assert len(ranges) == 10
    assert sum(segment.rows for segment in ranges) == len(y)


def test_levels_and_their_mean_slope(rows):
    pred, y, weight, _ = rows
    kappa = 1.0 / (pred + 1.0)
    levels = assess(pred, y, weight, None, kappa).levels
    assert len(levels) == 10
    for index, level in enumerate(levels):
        top = levels[index + 1].lowest if index + 1 < len(levels) else np.inf
        inside = (pred >= level.lowest) & (pred < top) & (weight > 0.0)
        assert level.rows == inside.sum()
        assert weight[inside].sum() == pytest.approx(weight.sum() / 10, rel=0.02)
        assert level.stre.value == pytest.approx(STRE(pred[inside], y[inside], weight[inside]))
        assert level.stre.low < level.stre.value < level.stre.high
        assert level.kappa == pytest.approx((weight * kappa)[inside].sum() / weight[inside].sum())
    assert {level.kappa for level in assess(pred, y).levels} == {None}


def test_a_total_that_is_not_positive_has_no_ratio():
    assessment = assess(np.array([-1.0, 0.5, -2.0]), np.array([1.0, -1.0, -3.0]))
    pgr, tre = assessment.metric("PGR"), assessment.metric("TRE")
    assert np.isnan([pgr.value, pgr.high, tre.low]).all()
    assert np.isfinite(assessment.metric("NMAE").value)
    assert assessment.verdict.kind == "undefined"
    assert "not above 0" in assessment.verdict.text


def test_the_verdict_follows_from_the_99_per_cent_interval(rows):
    """Of 400 fair sets about 1 % are called biased, those whose interval leaves 1 out."""
    pred, y, _, _ = rows
    assert assess(0.8 * pred, y).verdict.biased
    assert not assess(np.full(50, 7.0) * (1 + 1e-7), np.full(50, 7.0)).verdict.biased
    rng = np.random.default_rng(3)
    biased = 0
    for _ in range(400):
        mean = rng.uniform(1.0, 9.0, 150)
        found = assess(mean, mean * rng.gamma(2.0, 0.5, 150))
        pgr = found.metric("PGR")
        assert found.verdict.biased == (not pgr.low <= 1.0 <= pgr.high)
        biased += found.verdict.biased
    # A binomial bound of four standard errors and a little for the approximation.
    assert biased <= 14


def test_weights_say_how_much_a_row_counts_and_not_how_often(rows):
    """Twice the weight of every row changes nothing; every row twice narrows the interval by √2."""
    pred, y, _, _ = rows
    once, heavy = assess(pred, y).metric("PGR"), assess(pred, y, np.full(len(y), 2.0)).metric("PGR")
    assert (heavy.value, heavy.low, heavy.high) == pytest.approx((once.value, once.low, once.high))
    twice = assess(np.tile(pred, 2), np.tile(y, 2)).metric("PGR")
    assert (once.high - once.low) / (twice.high - twice.low) == pytest.approx(np.sqrt(2.0), rel=0.02)


def test_a_diverged_model_is_an_error():
    with pytest.raises(ValueError, match="row 1 is nan: the training diverged"):
        assess(np.array([1.0, np.nan]), np.ones(2))
