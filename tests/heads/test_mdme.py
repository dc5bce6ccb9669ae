"""MDME: its rows of paper/methods.md §13.1, and the routing, place and ordinal terms of §4."""

import numpy as np
import pytest
import torch

from population import COLUMNS, MEANS, optimum, population, stationary, whole_range
from registry import name
from transun.heads import GTS, MDME
from transun.heads.bins import equal_width
from transun.heads.mdme import expected_bucket, most_likely_bucket
from variants import VariantLaws

# SRE of argmax over 2x2 equal-width buckets; where buckets tie, rounding decides between the values listed.
PUBLISHED = [(-0.1352,), (-0.5973,), (-0.2417,), (0.2902,), (0.1034,), (0.25, 0.75), (0.1545,), (0.8812,)]
TIED = ("SM-U", "SM-TN", "SM-BU")
ARGMAX = MDME(2, 2, equal_width, most_likely_bucket)
FULL = MDME(3, 4, ordinal=1.0, distillation=0.5)
VARIANTS = [MDME(), MDME(1, 1), MDME(1, 5), MDME(5, 1, ordinal=1.0), ARGMAX, MDME(choice=most_likely_bucket), FULL]


@pytest.mark.parametrize("column", COLUMNS)
def test_constant_input_limit_of_argmax(column):
    error = stationary(ARGMAX, whole_range(column), level=1e-6) / MEANS[column] - 1.0
    error = abs(error) if column in TIED else error
    assert min(abs(error - value) for value in PUBLISHED[COLUMNS.index(column)]) < 1e-3


@pytest.mark.parametrize(("column", "largest", "expected"), [("RS-G", 18.62, -0.1089), ("RS-ZIG", 17.70, -0.1714)])
def test_constant_input_limit_with_the_papers_maxima(column, largest, expected):
    y = population(column).clone()
    y[-1] = largest
    assert stationary(ARGMAX, y, level=1e-6) / MEANS[column] - 1.0 == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("head", [MDME(), MDME(2, 2, equal_width), MDME(ordinal=1.0)], ids=name)
def test_expectation_is_unbiased(head, column):
    y = whole_range(column)
    assert stationary(head, y, level=1e-6) == pytest.approx(y.mean().item(), rel=1e-5)


@pytest.mark.parametrize("column", ["RS-G", "RS-ZIG", "SM-BU"])
def test_descent_arrives_where_the_head_starts(column):
    y = whole_range(column, 1000)
    assert optimum(MDME(2, 2), y) == pytest.approx(y.mean().item(), rel=1e-3)


@pytest.mark.parametrize("column", [column for column in COLUMNS if column not in TIED])
def test_gts_recovers_the_mean_of_argmax(column):
    """Not where buckets tie: there the point of the inner head never settles."""
    y = whole_range(column, 1000)
    assert optimum(GTS(ARGMAX), y) == pytest.approx(y.mean().item(), rel=1e-3)


@pytest.mark.parametrize("column", COLUMNS)
def test_gts_recovers_the_mean_of_the_expectation(column):
    y = whole_range(column, 1000)
    assert optimum(GTS(MDME(2, 2)), y) == pytest.approx(y.mean().item(), rel=1e-3)


class TestLoss:
    Y = torch.linspace(0.0, 8.0, 9)  # buckets (0, 2], (2, 4] of group 0 and (4, 6], (6, 8] of group 1

    def gradient(self, term, logits, y, head=MDME(2, 2)):
        raw = torch.tensor([logits], requires_grad=True)
        loss = head.prepare(self.Y).loss((raw,), torch.tensor([y]))[term]
        return torch.autograd.grad(loss.sum(), raw)[0][0]

    def test_buckets_are_routed_by_the_true_group(self):
        """Public code sent the bucket's label to the group that won, here group 1, for a target of group 0."""
        logits = [-9.0, 9.0, *[0.0] * 8]
        gradient = self.gradient("bucket", logits, 3.0)
        assert gradient.tolist() == [0.0, 0.0, 0.5, -0.5, 0.0, 0.0, *[0.0] * 4]

    def test_the_place_is_learned_in_the_true_bucket(self):
        """y = 2.5 is a quarter of the way through (2, 4]."""
        logits = [-9.0, 9.0, *[0.0] * 8]
        head = MDME(2, 2).prepare(self.Y)
        assert head.loss((torch.tensor([logits]),), torch.tensor([2.5]))["within"].item() == pytest.approx(0.25**2)
        gradient = self.gradient("within", logits, 2.5)
        assert gradient.tolist() == pytest.approx([0.0] * 7 + [2 * 0.25 * 0.25] + [0.0] * 2)

    def test_cross_entropies(self):
        logits = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, 2.0, *[0.0] * 4]])
        terms = MDME(2, 2).prepare(self.Y).loss((logits,), torch.tensor([7.0]))
        assert set(terms) == {"group", "bucket", "within"}
        assert terms["group"].item() == pytest.approx(1.0 + np.log1p(np.exp(-1.0)))
        assert terms["bucket"].item() == pytest.approx(np.log1p(np.exp(-2.0)))

    def test_targets_out_of_range_lie_at_the_ends(self):
        head = MDME(2, 2).prepare(self.Y)
        logits = torch.tensor([[0.0] * 10]).expand(2, -1)
        assert head.loss((logits,), torch.tensor([-1e12, 1e12]))["within"].tolist() == [0.25, 0.25]
        assert head.loss((logits,), torch.tensor([-1e12, 1e12]))["bucket"].exp().tolist() == pytest.approx([2.0, 2.0])

    def test_a_bucket_without_width_asks_for_its_middle(self):
        y = population("RS-ZIG")
        head = MDME().prepare(y)
        assert head.loss((torch.zeros(1, 36),), y[:1])["within"].item() == 0.0
        assert head.initial_outputs(y)[0][20].item() == 0.0

    def test_ordinal_outputs_know_the_order(self):
        head = MDME(3, 2, ordinal=2.0).prepare(torch.linspace(0.0, 6.0, 7))
        assert head.branches[0].width == 3 + 6 + 6 + 2 + 3
        order = torch.tensor([[1.0, -1.0, 0.5, 0.25, 0.0]])
        raw = (torch.cat((torch.zeros(1, 15), order), 1),)
        # y = 2.5 is in the first bucket of group 1: its group is above 0 and not above 1, its bucket not above 0.
        cost = head.loss(raw, torch.tensor([2.5]))["ordinal"].item()
        expected = 2.0 * (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(-1.0)) + np.log1p(np.exp(0.25)))
        assert cost == pytest.approx(expected)

    def test_distillation_teaches_the_classes_and_not_the_teacher(self):
        head = MDME(2, 2, ordinal=1.0, distillation=0.5, temperature=0.5)
        logits = [0.0] * 10 + [1.0, 0.0, 0.0]
        gradient = self.gradient("distillation", logits, 3.0, head)
        teacher = 1.0 / (1.0 + np.exp(-2.0))  # P(group 1) = σ(1 / 0.5)
        student = 0.5
        assert gradient[1].item() == pytest.approx(0.5 * (student - teacher) / 0.5, rel=1e-5)
        assert gradient[10:].tolist() == [0.0, 0.0, 0.0]

    def test_distillation_is_zero_where_both_agree(self):
        head = MDME(3, 1, ordinal=1.0, distillation=1.0).prepare(self.Y)
        classes = torch.tensor([[0.0, 0.3, 0.1]])
        raw = (torch.cat((classes, torch.zeros(1, 6), torch.tensor([[0.3, -0.2]])), 1),)
        assert head.loss(raw, self.Y[:1])["distillation"].item() == pytest.approx(0.0, abs=1e-6)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"groups": 0}, "groups >= 1"),
            ({"buckets": 0}, "buckets >= 1"),
            ({"ordinal": -1.0}, "ordinal >= 0"),
            ({"temperature": 0.0}, "temperature > 0"),
            ({"distillation": 0.5}, "set ordinal > 0"),
        ],
    )
    def test_mistakes_are_named(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            MDME(**arguments)


class TestChoice:
    def test_argmax_goes_through_the_group(self):
        """Group 0 is likelier (0.6), though the likeliest single bucket is in group 1 (0.4 > 0.36)."""
        group, bucket = torch.tensor([[0.6, 0.4]]).log(), torch.tensor([[[0.6, 0.4], [0.0, 1.0]]]).log()
        value = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        assert most_likely_bucket(group, bucket, value).item() == 1.0
        assert expected_bucket(group, bucket, value).item() == pytest.approx(0.36 * 1 + 0.24 * 2 + 0.4 * 4)

    def test_a_bucket_without_width_predicts_its_edge(self):
        y = population("RS-ZIG")
        head = MDME(4, 4, choice=most_likely_bucket).prepare(y)
        raw = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
        assert head(raw).item() == 0.0


@pytest.mark.parametrize("head", VARIANTS, ids=name)
class TestVariants(VariantLaws):
    @pytest.mark.parametrize("value", [0.0, 3.0, -7e5, 1e12])
    def test_constant_targets(self, head, value):
        y = torch.full((9,), value, dtype=torch.float64)
        prepared = head.prepare(y)
        start = tuple(v.unsqueeze(0) for v in prepared.initial_outputs(y))
        assert prepared(start).item() == pytest.approx(value, rel=1e-6)
