"""TPM: its rows of paper/methods.md §13.1, and the mistakes of public code listed in §5."""

import numpy as np
import pytest
import torch
from scipy import stats

from population import COLUMNS, MEANS, optimum, population, stationary, whole_range
from registry import name
from transun.heads import GTS, TPM
from transun.heads.bins import equal_width, leaf_means, leaf_midpoints
from variants import VariantLaws

# Leaves: population SRE with midpoints.
ROWS = {
    4: [0.7415, 0.1773, 2.8750, -0.0436, -0.0307, 0.0, 0.0, 0.0],
    32: [0.0755, 0.0502, 0.3824, -0.0029, -0.0087, 0.0, 0.0, 0.0],
    256: [0.0072, -0.0021, 0.0366, -0.0002, 0.0004, 0.0, 0.0, 0.0],
}
VARIANTS = [TPM(), TPM(2), TPM(8, leaf_means), TPM(8, binning=equal_width), TPM(8, mse=0.2, spread=1.0)]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("leaves", ROWS)
def test_constant_input_limit(leaves, column):
    y = whole_range(column)
    prediction = stationary(TPM(leaves), y)
    assert prediction / MEANS[column] - 1.0 == pytest.approx(ROWS[leaves][COLUMNS.index(column)], abs=1e-3)
    edges = np.quantile(y, np.arange(leaves + 1) / leaves)
    share = np.bincount(np.searchsorted(edges[1:-1], y.numpy(), side="left"), minlength=leaves) / len(y)
    assert prediction == pytest.approx((share * (edges[1:] + edges[:-1])).sum() / 2, rel=1e-5)


def test_four_leaves_of_a_gamma_law_in_closed_form():
    edges = np.array([0.0, *stats.gamma(2).ppf([0.25, 0.5, 0.75]), 17.2])
    expected = (edges[1:] + edges[:-1]).mean() / 2
    assert stationary(TPM(4), whole_range("RS-G")) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("leaves", [4, 32])
def test_leaf_means_are_unbiased(leaves, column):
    y = whole_range(column)
    assert stationary(TPM(leaves, leaf_means), y) == pytest.approx(y.mean().item(), rel=1e-6)


@pytest.mark.parametrize("leaf", [leaf_midpoints, leaf_means])
@pytest.mark.parametrize("column", ["RS-G", "RS-ZIG", "SM-BU"])
def test_descent_arrives_where_the_head_starts(column, leaf):
    y = whole_range(column, 1000)
    head = TPM(8, leaf)
    assert optimum(head, y) == pytest.approx(stationary(head, y), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("column", COLUMNS)
def test_gts_recovers_the_mean(column):
    y = whole_range(column, 1000)
    assert optimum(GTS(TPM(4)), y) == pytest.approx(y.mean().item(), rel=1e-3)


@pytest.mark.parametrize("leaves", [-4, 0, 1, 3, 6, 12])
def test_leaves_are_a_power_of_two(leaves):
    with pytest.raises(ValueError, match=rf"TPM needs leaves .*, got {leaves}"):
        TPM(leaves)


@pytest.mark.parametrize("arguments", [{"mse": -1.0}, {"spread": float("nan")}])
def test_weights_are_not_negative(arguments):
    with pytest.raises(ValueError, match="mse >= 0 and spread >= 0"):
        TPM(**arguments)


class TestTree:
    def test_nodes_are_in_heap_order(self):
        """Left at the root, right at its left child 1: leaf 1 of 4. Node 2 is not on the path."""
        shares = TPM(4).shares((torch.tensor([[-50.0, 50.0, 50.0], [50.0, 50.0, -50.0]]),))
        torch.testing.assert_close(shares, torch.eye(4)[[1, 2]])

    def test_shares_are_products_down_the_path(self):
        generator = torch.Generator().manual_seed(0)
        logits = torch.randn(3, 15, generator=generator)
        right = logits.sigmoid()
        for leaf in range(16):
            share, node = torch.ones(3), 0
            for bit in f"{leaf:04b}":
                share = share * (right[:, node] if bit == "1" else 1 - right[:, node])
                node = 2 * node + 1 + int(bit)
            torch.testing.assert_close(TPM(16).shares((logits,))[:, leaf], share)

    def test_the_loss_is_the_cross_entropy_of_the_logits(self):
        """Public code took the sigmoid twice: -ln σ(σ(3)) = 0.327 instead of -ln σ(3) = 0.0486."""
        head = TPM(2).prepare(torch.tensor([0.0, 1.0, 2.0]))
        loss = head.loss((torch.full((2, 1), 3.0),), torch.tensor([2.0, 0.0]))["tree"]
        np.testing.assert_allclose(loss, [np.log1p(np.exp(-3.0)), 3.0 + np.log1p(np.exp(-3.0))], rtol=1e-6)

    def test_an_impossible_leaf_costs_what_it_should(self):
        """Public code had log(p + 1e-5): no target could cost more than 11.5, and shares did not add up to one."""
        head = TPM(4).prepare(torch.linspace(0.0, 4.0, 5))
        loss = head.loss((torch.full((1, 3), 300.0),), torch.tensor([0.0]))["tree"]
        assert loss.item() == pytest.approx(600.0)

    def test_the_largest_target_counts(self):
        """Public code gave the row at the maximum no leaf."""
        y = torch.linspace(0.0, 4.0, 5)
        head = TPM(4).prepare(y)
        logits = torch.zeros(1, 3, requires_grad=True)
        loss = head.loss((logits,), y[-1:])["tree"]
        assert loss.item() == pytest.approx(np.log(4.0))
        assert torch.autograd.grad(loss.sum(), logits)[0].tolist() == [[-0.5, 0.0, -0.5]]

    def test_zeros_do_not_go_to_the_top_leaf(self):
        """Under the public rule, y < edge goes left, four fifths of zeros predict about max/2."""
        y = population("RS-ZIG", largest=True)
        head = TPM(4).prepare(y)
        raw = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
        torch.testing.assert_close(head.shares(raw), torch.tensor([[0.8, 0.0, 0.0, 0.2]]).double(), atol=1e-6, rtol=0)

    def test_nodes_without_targets_start_undecided(self):
        start = TPM(4).prepare(population("RS-ZIG")).initial_outputs(population("RS-ZIG"))[0]
        np.testing.assert_allclose(start, [np.log(0.2 / 0.8), -20.0, 20.0], atol=1e-6)
        constant = torch.full((9,), 3.0)
        assert TPM(4).prepare(constant).initial_outputs(constant)[0].tolist() == [-20.0, -20.0, 0.0]


class TestFullLoss:
    Y = torch.linspace(0.0, 4.0, 5)  # leaves (0, 1], ..., (3, 4]: midpoints 0.5, 1.5, 2.5, 3.5

    def test_only_the_tree_by_default(self):
        assert set(TPM(4).loss((torch.zeros(2, 3),), self.Y[:2])) == {"tree"}

    def test_terms_and_their_weights(self):
        head = TPM(4, mse=0.5, spread=3.0).prepare(self.Y)
        terms = head.loss((torch.zeros(1, 3),), torch.tensor([4.0]))
        assert terms["mse"].item() == pytest.approx(0.5 * (2.0 - 4.0) ** 2)
        assert terms["spread"].item() == pytest.approx(3.0 * 1.25**0.5, rel=1e-5)  # var of four equal leaves

    def test_variance_is_that_of_the_leaves(self):
        """Public code subtracted ŷ² from (Σ p·v)², always zero."""
        head = TPM(16, leaf_means).prepare(population("RS-G", 1000))
        raw = (torch.randn(5, 15, generator=torch.Generator().manual_seed(0), dtype=torch.float64),)
        shares, values = head.shares(raw).numpy(), head.values.double().numpy()
        mean = shares @ values
        np.testing.assert_allclose(head.variance(raw), shares @ values**2 - mean**2, rtol=1e-9)

    def test_variance_survives_an_offset(self):
        """Σ p·v² - ŷ² at 1e6 loses all digits in float32."""
        head = TPM(4).prepare(1e6 + self.Y)
        assert head.variance((torch.zeros(1, 3),)).item() == pytest.approx(1.25)

    @pytest.mark.parametrize("scale", [30.0, 1e4])
    def test_a_certain_row_has_a_finite_gradient(self, scale):
        """Where one leaf has it all the variance is 0, and the slope of a root there infinite."""
        head = TPM(4, spread=1.0).prepare(self.Y)
        logits = torch.full((1, 3), scale, requires_grad=True)
        spread = head.loss((logits,), self.Y[-1:])["spread"]
        assert spread.item() == pytest.approx(1e-3, rel=1e-3)
        assert torch.autograd.grad(spread.sum(), logits)[0].isfinite().all()


@pytest.mark.parametrize("head", VARIANTS, ids=name)
class TestVariants(VariantLaws):
    @pytest.mark.parametrize("value", [0.0, 3.0, -7e5, 1e12])
    def test_constant_targets(self, head, value):
        y = torch.full((9,), value, dtype=torch.float64)
        prepared = head.prepare(y)
        start = tuple(v.unsqueeze(0) for v in prepared.initial_outputs(y))
        assert prepared(start).item() == pytest.approx(value, rel=1e-6)
        assert prepared.quantile(start, 0.5).item() == pytest.approx(value, rel=1e-6)
