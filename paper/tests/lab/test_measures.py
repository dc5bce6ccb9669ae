import numpy as np
import pytest
import torch
from scipy import stats

from transun.metrics import PGR, XAUC
from transun.metrics.paired import jackknife_error, leave_out
from transun_paper.lab.compare import difference, mean_with_error, paired_t
from transun_paper.lab.measures import TEST_METRICS, Predictions, measure_predictions


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(0).lognormal(size=50)
    left_out = [(values.sum() - value) / 49 for value in values]
    assert jackknife_error(left_out) == pytest.approx(stats.sem(values))


def test_blocks_take_every_twentieth_row():
    pred, y = torch.arange(1.0, 41.0), torch.ones(40)
    found = leave_out([PGR], pred, y)["PGR"]
    assert len(found) == 20
    kept = [row for row in range(40) if row % 20 != 3]
    assert found[3] == pytest.approx(np.mean([row + 1.0 for row in kept]))


def test_the_jackknife_agrees_with_the_formula():
    draw = torch.Generator().manual_seed(0)
    y = torch.randn(4000, generator=draw).exp()
    pred = y * torch.randn(4000, generator=draw).exp()
    left_out = leave_out([PGR, XAUC], pred, y)
    for metric in (PGR, XAUC):
        # A standard deviation of 20 numbers has a relative error of 1/√38 = 0.16.
        assert jackknife_error(left_out[metric.name]) == pytest.approx(metric.standard_error(pred, y), rel=0.6)


def test_an_assessment_has_every_metric(encoded):
    pred = Predictions(encoded.train.y * 0.5, encoded.valid.y * 0.5, encoded.test.y * 0.5)
    found = measure_predictions(pred, encoded)
    assert found["metrics"]["STRE"] == pytest.approx(-1.0)
    assert found["train"]["MRE"] == pytest.approx(1.0)
    assert found["metrics"]["XAUC"] == found["metrics"]["TopXAUC"] == found["metrics"]["NDCG"] == 1.0
    assert {metric.name for metric in TEST_METRICS} == set(found["errors"]) == set(found["left_out"])
    assert found["bins"]["prediction"]["stre"] == pytest.approx([-1.0] * 20)


def test_paired_t_is_scipys():
    draw = np.random.default_rng(1)
    a, b = draw.normal(size=5), draw.normal(size=5)
    assert paired_t(a.tolist(), b.tolist()) == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert paired_t([1.0, 2.0], [1.0, 2.0]) == 1.0
    with pytest.raises(ValueError, match="two values"):
        paired_t([1.0], [2.0])


def reports(pred, y, seeds=2):
    """Reports of a method whose seeds all predict the same."""
    found = {"metrics": {"PGR": PGR(pred, y)}, "left_out": leave_out([PGR], pred, y)}
    return [found] * seeds


def test_a_difference_has_both_noises():
    y = torch.randn(400, generator=torch.Generator().manual_seed(0)).exp()
    first, second = reports(y * 1.1, y), reports(y.mean().expand(400), y)
    gap = difference(first, second, "PGR")
    expected = jackknife_error(
        [a - b for a, b in zip(first[0]["left_out"]["PGR"], second[0]["left_out"]["PGR"], strict=True)]
    )
    assert gap.value == pytest.approx(0.1, rel=1e-4)
    assert gap.error == pytest.approx(expected)
    assert gap.p == pytest.approx(2 * stats.t.sf(0.1 / expected, 19), rel=1e-3)
    # Seeds that differ add the variance of their mean.
    apart = [second[0] | {"metrics": {"PGR": 0.9}}, second[0] | {"metrics": {"PGR": 1.1}}]
    assert difference(first, apart, "PGR").error ** 2 == pytest.approx(expected**2 + 0.1**2, rel=1e-4)
    assert mean_with_error(apart, "PGR")[1] > 0.1


def test_one_report_stands_for_all_seeds():
    y = torch.randn(400, generator=torch.Generator().manual_seed(0)).exp()
    many, one = reports(y * 1.1, y, seeds=5), reports(y.mean().expand(400), y, seeds=1)
    assert difference(many, one, "PGR").value == pytest.approx(0.1, rel=1e-4)
    with pytest.raises(ValueError, match="not paired"):
        difference(many, many[:3], "PGR")


def test_equal_methods_are_told_apart_as_often_as_the_level_says():
    draw = torch.Generator().manual_seed(0)
    found = 0
    for _ in range(300):
        y = torch.randn(200, generator=draw).exp()
        noise = [torch.randn(200, generator=draw).exp() for _ in range(2)]
        found += difference(*(reports(y * part, y, 1) for part in noise), "PGR").p < 0.05
    # 15 of 300 expected; four binomial standard errors are 15.
    assert 2 <= found <= 30
