"""CREAD: its rows of paper/methods.md §13.1, the three restorations and the optional terms of §6."""

import numpy as np
import pytest
import torch

from population import COLUMNS, MEANS, optimum, population, stationary, whole_range
from registry import name
from transun.heads import CREAD, GTS
from transun.heads.bins import EAD, equal_frequency, equal_width
from transun.heads.cread import RightSum, left_sum, trapezoid
from transun.losses import squared
from variants import VariantLaws

ROWS = {
    "trapezoid, 0.5": (CREAD(4, EAD(0.5)), [0.5941, 0.0453, 2.8750, -0.0567, -0.0555, 0.0, -0.0326, 0.1089]),
    "trapezoid, 1": (CREAD(4, EAD(1.0)), [0.4648, -0.0725, 2.3902, -0.0711, -0.0817, 0.0, -0.0645, 0.0216]),
    # SM-BU has no row between 11 and 90: the median is taken half-way, at 50.5, where the table has 50 (-.2525).
    "right, 0": (CREAD(4, EAD(0.0), RightSum()), [-0.3335, -0.67, -1.0, -0.2311, -0.1773, -0.25, -0.25, -0.25]),
}
VARIANTS = [
    CREAD(),
    CREAD(2),
    CREAD(8, equal_width, left_sum),
    CREAD(8, equal_frequency, RightSum()),
    CREAD(8, error=1.0, order=2e-5),
]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_constant_input_limit(row, column):
    head, expected = ROWS[row]
    error = stationary(head, whole_range(column)) / MEANS[column] - 1.0
    assert error == pytest.approx(expected[COLUMNS.index(column)], abs=1e-3)


def test_searched_alpha():
    """paper/methods.md §6: the published grid gives RS-G 0.762, with the sample whose maximum is 18.62."""
    y = population("RS-G").clone()
    y[-1] = 18.62
    assert stationary(CREAD(4), y) / MEANS["RS-G"] - 1.0 == pytest.approx(0.762, abs=2e-3)


@pytest.mark.parametrize("column", COLUMNS)
def test_restorations_enclose_the_mean(column):
    """Right counts each bin at its lower end, left at its upper one."""
    y = whole_range(column)
    right, left = (stationary(CREAD(32, restoration=each), y) for each in (RightSum(), left_sum))
    assert right < y.mean() < left
    middle = stationary(CREAD(32), y)
    # They differ from the trapezoid by half a bin each, once the right one begins at the smallest target.
    begun = stationary(CREAD(32, restoration=RightSum(float(y.min()))), y)
    assert middle == pytest.approx((left + begun) / 2, rel=1e-6)


@pytest.mark.parametrize("column", ["RS-G", "RS-ZIG", "SM-BU"])
def test_descent_arrives_where_the_head_starts(column):
    y = whole_range(column, 1000)
    head = CREAD(8, EAD(0.5))
    assert optimum(head, y) == pytest.approx(stationary(head, y), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("column", COLUMNS)
def test_gts_recovers_the_mean(column):
    y = whole_range(column, 1000)
    assert optimum(GTS(CREAD(4)), y) == pytest.approx(y.mean().item(), rel=1e-3)


def test_the_trapezoid_is_the_mean_of_the_law():
    head = CREAD(8).prepare(whole_range("RS-G", 1000))
    # Falling logits, since the law of others is not the one that the sum is over.
    raw = (torch.linspace(3.0, -3.0, 7, dtype=torch.float64).unsqueeze(0),)
    middle = (head.edges[1:] + head.edges[:-1]).double() / 2
    torch.testing.assert_close(head(raw), (head.shares(raw) * middle).sum(1))


def test_an_answer_out_of_order_still_has_a_law():
    head = CREAD(4).prepare(whole_range("SM-U", 1000))
    raw = (torch.tensor([[0.0, 2.0, -1.0]]),)  # P(y > 50) said to be more than P(y > 25)
    assert (head.shares(raw) >= 0).all()
    assert head.cdf(raw, head.edges[1:2]).item() == pytest.approx(0.5)
    assert head.cdf(raw, head.edges[2:3]).item() == pytest.approx(0.5)


class TestLoss:
    Y = torch.linspace(0.0, 4.0, 5)  # thresholds 1, 2, 3 inside

    def head(self, **arguments):
        return CREAD(4, EAD(0.0), **arguments).prepare(self.Y)

    def test_only_the_thresholds_by_default(self):
        assert set(self.head().loss((torch.zeros(2, 3),), self.Y[:2])) == {"thresholds"}

    def test_mean_cross_entropy_over_thresholds(self):
        """A target on a threshold is not above it; labels are 1, 0, 0 for y = 2 > 1."""
        logits = torch.tensor([[2.0, -1.0, 0.5]])
        expected = np.mean([np.log1p(np.exp(-2.0)), np.log1p(np.exp(-1.0)), np.log1p(np.exp(0.5))])
        assert self.head().loss((logits,), torch.tensor([2.0]))["thresholds"].item() == pytest.approx(expected)

    def test_repeated_values_are_labelled_alike_in_every_precision(self):
        """0.7 in float64 is above 0.7 in float32, and must still not be above a threshold of 0.7."""
        y = torch.tensor([0.1, 0.7, 0.9], dtype=torch.float64).repeat_interleave(20)
        head = CREAD(4, EAD(0.0)).prepare(y)
        logits = torch.full((60, 3), 2.0)
        torch.testing.assert_close(head.loss((logits,), y), head.loss((logits,), y.float()))
        assert head.loss((logits,), y)["thresholds"][20:40].sum() > head.loss((logits,), y)["thresholds"][40:].sum()

    def test_targets_out_of_range(self):
        logits = (torch.tensor([[2.0, -1.0, 0.5]]).expand(4, -1),)
        low, lowest, high, highest = self.head().loss(logits, torch.tensor([0.0, -1e9, 4.0, 1e9]))["thresholds"]
        assert low == lowest
        assert high == highest

    def test_error_of_the_restored_value(self):
        terms = self.head(error=2.0).loss((torch.zeros(1, 3),), torch.tensor([4.0]))  # predicts 2: Huber 2 - 1/2
        assert terms["error"].item() == pytest.approx(3.0)
        terms = self.head(error=2.0, criterion=squared).loss((torch.zeros(1, 3),), torch.tensor([4.0]))
        assert terms["error"].item() == pytest.approx(8.0)

    def test_order_counts_only_what_rises(self):
        logits = torch.tensor([[0.3, 0.6, 0.5]]).logit()
        assert self.head(order=10.0).loss((logits,), self.Y[:1])["order"].item() == pytest.approx(3.0)
        assert self.head(order=10.0).loss((logits.flip(1),), self.Y[:1])["order"].item() == pytest.approx(1.0)

    def test_predictions_stay_in_the_training_range(self):
        extremes = (torch.tensor([[-1e4] * 3, [1e4] * 3]),)
        assert self.head()(extremes).tolist() == [0.5, 3.5]  # the midpoints of the end bins
        assert self.head(restoration=left_sum)(extremes).tolist() == [1.0, 4.0]
        assert self.head(restoration=RightSum())(extremes).tolist() == [0.0, 3.0]


def test_the_origin_of_negative_targets():
    y = torch.linspace(-100.0, -50.0, 51)
    shifted = CREAD(4, EAD(0.0), RightSum(-100.0)).prepare(y)
    raw = (torch.zeros(1, 3),)
    assert shifted(raw).item() == pytest.approx(-100.0 + 0.5 * 37.5)
    assert CREAD(4, EAD(0.0), trapezoid).prepare(y)(raw).item() == pytest.approx(-75.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": 1}, "bins >= 2, a whole number, got 1"),
        ({"error": -1.0}, "error >= 0"),
        ({"order": float("nan")}, "order >= 0"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        CREAD(**arguments)


@pytest.mark.parametrize("head", VARIANTS, ids=name)
class TestVariants(VariantLaws):
    pass


@pytest.mark.parametrize("restoration", [trapezoid, left_sum, RightSum(origin=3.0)])
def test_constant_targets(restoration):
    y = torch.full((9,), 3.0, dtype=torch.float64)
    prepared = CREAD(restoration=restoration).prepare(y)
    start = tuple(value.unsqueeze(0) for value in prepared.initial_outputs(y))
    assert prepared(start).item() == pytest.approx(3.0)
