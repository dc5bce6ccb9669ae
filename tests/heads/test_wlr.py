import math

import numpy as np
import pytest
import torch
from scipy import stats

from population import COLUMNS, MEANS, population, sre
from transun.heads import GTS, WLR, PriorWLR, Scaled, SoftWLR

# paper/methods.md §13.1 at constant input and full batch; variant (a) is what `WLR()` becomes on RS-ZIG.
ROWS = {
    "WLR": (WLR(), [0.1177, 0.3758, 0.2500, -0.1405, -0.2429, 0.0667, -0.2046, 0.2673]),
    "PriorWLR": (PriorWLR(), [-0.3294, -0.1745, 0.0, -0.4843, -0.5457, -0.3600, -0.5227, -0.2396]),
    "SoftWLR": (SoftWLR(), [0.0] * 8),
}
HEADS = [WLR(), PriorWLR(), SoftWLR()]
TRAIN = torch.tensor([1.0, 2.0, 3.0, 4.0, 10.0])  # 60 % quantile: 3.4


def logits(head, *values):
    return tuple(torch.tensor([[value]], dtype=torch.float64) for value in values[: len(head.branches)])


def kind(head):
    return type(head).__name__


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_constant_input_limit(row, column):
    head, expected = ROWS[row]
    assert sre(head, column, n=5000, perturb=0.05) == pytest.approx(expected[COLUMNS.index(column)], abs=1e-3)


@pytest.mark.parametrize("column", ["RS-ZIG", "SM-BU"])
@pytest.mark.parametrize("head", HEADS, ids=kind)
def test_gts_recovers_the_mean(head, column):
    assert sre(GTS(head), column, n=2000) == pytest.approx(0.0, abs=1e-3)
    assert sre(Scaled(GTS(head)), column, n=2000) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("head", HEADS, ids=kind)
def test_the_gradient_vanishes_at_the_start(head, column):
    y = population(column, 2000)
    head = head.prepare(y)
    start = [value.requires_grad_() for value in head.initial_outputs(y)]
    sum(term.mean() for term in head.loss(tuple(v.expand(len(y), -1) for v in start), y).values()).backward()
    assert all(abs(value.grad.item()) < 1e-9 * MEANS[column] for value in start)


class TestThreshold:
    def test_is_zero_where_there_are_zeros(self):
        y = torch.ones(100)
        y[0] = 0.0
        assert WLR().prepare(y).threshold == 0.0

    def test_is_the_quantile_where_there_are_hardly_any(self):
        y = torch.arange(200.0)  # one zero in 200
        prepared = WLR().prepare(y)
        assert prepared.threshold == pytest.approx(np.quantile(y.numpy(), 0.6))

    @pytest.mark.parametrize("n", [2, 5, 11, 1000])
    def test_is_that_of_numpy(self, n):
        y = stats.gamma(2).rvs(n, random_state=n)
        assert WLR().prepare(torch.from_numpy(y)).threshold == pytest.approx(np.quantile(y, 0.6), rel=1e-12)

    def test_belongs_to_the_training_targets_not_to_the_batch(self):
        head = WLR().prepare(TRAIN)
        assert head.threshold == pytest.approx(3.4)
        for y in (torch.tensor([5.0, 50.0, 500.0]), torch.tensor([1.0, 2.0, 3.0])):
            cost = head.loss((torch.zeros(3, 1),), y)["odds"] / math.log(2.0)
            torch.testing.assert_close(cost, y if y[0] > 4.0 else torch.ones(3))

    def test_a_target_equal_to_it_is_a_negative(self):
        head = WLR(threshold=3.0)
        s = torch.tensor([[2.0], [2.0]])
        equal, above = head.loss((s,), torch.tensor([3.0, math.nextafter(3.0, 4.0) + 1e-6]))["odds"].tolist()
        assert equal == pytest.approx(math.log1p(math.exp(2.0)))
        assert above == pytest.approx(3.0 * math.log1p(math.exp(-2.0)), rel=1e-5)

    def test_more_targets_than_torch_quantile_takes(self):
        y = torch.arange(2**24 + 2, dtype=torch.float32)
        with pytest.raises(RuntimeError, match="too large"):
            torch.quantile(y, 0.6)
        assert WLR().prepare(y).threshold == pytest.approx(0.6 * (2**24 + 1))

    @pytest.mark.parametrize("build", [WLR, PriorWLR])
    @pytest.mark.parametrize("level", [0.3, 0.6, 0.95])
    def test_is_the_named_quantile_also_where_there_are_zeros(self, build, level):
        y = np.maximum(stats.gamma(2).rvs(500, random_state=1) - 1.0, 0.0)  # a quarter zeros
        head = build(quantile=level).prepare(torch.from_numpy(y))
        assert head.threshold == pytest.approx(np.quantile(y, level), rel=1e-12)

    @pytest.mark.parametrize("level", [0.0, 1.0, -0.1])
    def test_quantile_is_checked(self, level):
        with pytest.raises(ValueError, match="0 < quantile < 1"):
            WLR(quantile=level)

    @pytest.mark.parametrize("threshold", [-1.0, math.inf, math.nan])
    def test_is_checked(self, threshold):
        with pytest.raises(ValueError, match="finite threshold >= 0"):
            WLR(threshold)


class TestOdds:
    @pytest.mark.parametrize("head", HEADS, ids=kind)
    def test_are_predicted_not_the_probability(self, head):
        assert head(logits(head, math.log(7.0), -40.0)).item() == pytest.approx(7.0)

    @pytest.mark.parametrize("head", HEADS, ids=kind)
    def test_stay_exact_where_the_probability_rounds_to_one(self, head):
        raw = tuple(value.float() for value in logits(head, 40.0, -100.0))
        assert head(raw).item() == pytest.approx(math.exp(40.0), rel=1e-5)

    @pytest.mark.parametrize("head", HEADS, ids=kind)
    def test_stop_at_a_hundred_times_the_largest_target(self, head):
        head = head.prepare(TRAIN)
        assert head.upper == 1000.0
        for s in (6.0, 50.0, 1e4):
            assert head(logits(head, s, -100.0)).item() == pytest.approx(math.exp(min(s, math.log(1000.0))))

    def test_runaway_logits_cancel_to_a_number(self):
        head = PriorWLR().prepare(TRAIN)
        assert head.point(logits(head, 1e4, 1e4)).item() == 0.0  # not ∞·0

    def test_times_the_share_of_negatives(self):
        assert PriorWLR()(logits(PriorWLR(), math.log(8.0), math.log(3.0))).item() == pytest.approx(2.0)


class TestLoss:
    def test_negatives_weigh_one_whatever_they_are(self):
        """Weighting them by y removes the zeros, and the odds then run away."""
        head = WLR(threshold=2.0)
        s = torch.full((3, 1), 0.5, requires_grad=True)
        cost = head.loss((s,), torch.tensor([0.0, 1.0, 2.0]))["odds"]
        torch.testing.assert_close(cost.detach(), torch.full((3,), math.log1p(math.exp(0.5))))
        (gradient,) = torch.autograd.grad(cost.sum(), s)
        torch.testing.assert_close(gradient, torch.full((3, 1), 1 / (1 + math.exp(-0.5))))

    def test_positives_weigh_their_target(self):
        cost = WLR(threshold=2.0).loss((torch.full((2, 1), 0.5),), torch.tensor([3.0, 9.0]))["odds"]
        torch.testing.assert_close(cost, torch.tensor([3.0, 9.0]) * math.log1p(math.exp(-0.5)))

    def test_the_prior_is_not_weighted(self):
        terms = PriorWLR(threshold=2.0).loss((torch.zeros(2, 1), torch.full((2, 1), 0.5)), torch.tensor([0.0, 9.0]))
        expected = -stats.bernoulli(1 / (1 + math.exp(-0.5))).logpmf([0, 1])
        np.testing.assert_allclose(terms["prior"].numpy(), expected, rtol=1e-6)

    def test_soft_is_the_likelihood_of_a_geometric_law(self):
        counts, s = torch.arange(6.0, dtype=torch.float64), 0.8
        cost = SoftWLR().loss((torch.full((6, 1), s, dtype=torch.float64),), counts)["odds"]
        law = stats.nbinom(1, 1 / (1 + math.exp(s)))  # mean eˢ
        np.testing.assert_allclose(cost.numpy(), -law.logpmf(counts.numpy()), rtol=1e-12)

    @pytest.mark.parametrize("head", HEADS, ids=kind)
    def test_scaling_leaves_the_optimum_alone(self, head):
        y = population("RS-ZIG", 2000)
        plain, scaled = head.prepare(y), Scaled(head, 7.0).prepare(y)
        predictions = [h(tuple(v.unsqueeze(0) for v in h.initial_outputs(y))).item() for h in (plain, scaled)]
        assert predictions[1] == pytest.approx(predictions[0], rel=1e-9)


class TestTargets:
    @pytest.mark.parametrize("y", [[3.0], [3.0] * 20, [1.0, 3.0, 3.0, 3.0], [0.0] * 20])
    @pytest.mark.parametrize("head", [WLR(), PriorWLR()], ids=kind)
    def test_none_above_the_threshold(self, head, y):
        with pytest.raises(ValueError, match=f"no target is above the threshold .*{kind(head)} has only one class"):
            head.prepare(torch.tensor(y))

    def test_none_below_the_threshold(self):
        with pytest.raises(ValueError, match="no target is at or below the threshold 0"):
            WLR(threshold=0.0).prepare(TRAIN)

    @pytest.mark.parametrize("head", HEADS, ids=kind)
    def test_negative_ones_are_named(self, head):
        with pytest.raises(ValueError, match="-1 in row 2 is negative"):
            head.prepare(torch.tensor([0.0, 1.0, -1.0]))

    def test_all_zero_is_predicted_by_soft(self):
        y = torch.zeros(10)
        head = SoftWLR().prepare(y)
        start = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
        assert head(start).item() == pytest.approx(0.0, abs=1e-5)

    def test_starting_on_other_targets_is_finite(self):
        """A base prepared elsewhere may see a class that is missing here."""
        head = PriorWLR(threshold=0.0).prepare(torch.tensor([0.0, 1.0]))
        for y in (torch.zeros(3), torch.ones(3)):
            assert all(value.isfinite().all() for value in head.initial_outputs(y))
