"""Edges, and which bin a target falls in; references from numpy."""

import math

import numpy as np
import pytest
import torch

from population import COLUMNS, population
from transun.heads import CREAD, MDME, TPM
from transun.heads.bins import EAD, equal_frequency, equal_width, leaf_means, leaf_of, leaf_sizes, log_shares, odds

DRAWS = torch.from_numpy(np.random.default_rng(1).gamma(2.0, size=1234))


def gamma(fraction, alpha):
    return (1 - np.exp(-alpha * fraction)) / (1 - np.exp(-alpha))


class TestEdges:
    @pytest.mark.parametrize("count", [1, 2, 7, 16, 5000])  # also more bins than targets
    def test_equal_frequency_is_numpys_quantile(self, count):
        edges = equal_frequency(DRAWS, count)
        assert edges.dtype == torch.float64
        np.testing.assert_allclose(edges, np.quantile(DRAWS, np.arange(count + 1) / count), rtol=1e-12)

    @pytest.mark.parametrize("count", [1, 4, 7])
    def test_equal_width_is_numpys_linspace(self, count):
        edges = equal_width(DRAWS, count)
        np.testing.assert_allclose(edges, np.linspace(DRAWS.min().item(), DRAWS.max().item(), count + 1), rtol=1e-12)

    @pytest.mark.parametrize("alpha", [-3.0, -0.5, 0.5, 1.0, 4.9])
    def test_ead_bends_the_levels(self, alpha):
        expected = np.quantile(DRAWS, gamma(np.arange(9) / 8, alpha))
        np.testing.assert_allclose(EAD(alpha)(DRAWS, 8), expected, rtol=1e-9)

    def test_ead_without_a_bend_is_equal_frequency(self):
        """The ratio that defines γ is 0/0 at α = 0."""
        np.testing.assert_array_equal(EAD(0.0)(DRAWS, 8), equal_frequency(DRAWS, 8))

    @pytest.mark.parametrize("alpha", [9.9e-5, -9.9e-5])
    def test_the_series_of_ead_meets_the_ratio(self, alpha):
        y = torch.linspace(0.0, 1.0, 101, dtype=torch.float64)  # quantiles are the levels themselves
        exact = np.expm1(-alpha * np.arange(5) / 4) / np.expm1(-alpha)
        np.testing.assert_allclose(EAD(alpha)(y, 4), exact, atol=1e-9)
        assert (EAD(alpha)(y, 4)[1:-1] - y[[25, 50, 75]]).abs().min() > 1e-6  # and it does bend

    @pytest.mark.parametrize("alpha", [-1e4, 1e4])
    def test_ead_survives_any_bend(self, alpha):
        edges = EAD(alpha)(DRAWS, 8)
        assert edges.isfinite().all()
        assert (edges.diff() >= 0).all()
        assert edges[[0, -1]].tolist() == [DRAWS.min().item(), DRAWS.max().item()]

    def test_ead_takes_the_least_cost(self):
        levels = np.arange(9) / 8
        grid = 0.001 + 0.1 * np.arange(50)

        def cost(alpha, beta):
            gain = np.diff(gamma(levels, alpha))
            width = np.diff(np.quantile(DRAWS, gamma(levels, alpha)))
            return (gain**2).sum() * ((width**2 / gain).sum() + beta * (width**2).sum())

        for beta in (0.0, 50.0, 1e4):
            expected = grid[np.argmin([cost(alpha, beta) for alpha in grid])]
            assert EAD(beta=beta).choose(DRAWS, 8) == pytest.approx(expected)
            assert EAD(beta=beta).choose(1e6 * DRAWS, 8) == pytest.approx(expected)  # the unit does not matter
            assert torch.equal(EAD(beta=beta)(DRAWS, 8), EAD(expected)(DRAWS, 8))

    def test_ead_chooses_as_published_code_does(self):
        """paper/methods.md §6: with β = 50 and four bins α = 0.2 on RS-G and none elsewhere."""
        alphas = {column: EAD().choose(population(column, largest=True), 4) for column in COLUMNS}
        assert alphas.pop("RS-G") == pytest.approx(0.201)
        assert set(alphas.values()) == {0.001}

    def test_more_targets_than_torch_quantile_takes(self):
        y = torch.arange(2**24 + 2, dtype=torch.int32).float()
        with pytest.raises(RuntimeError, match="too large"):
            y.quantile(0.5)
        assert equal_frequency(y, 2)[1].item() == pytest.approx((2**24 + 1) / 2)

    @pytest.mark.parametrize("binning", [equal_frequency, equal_width, EAD(), EAD(-2.0)])
    def test_one_target_and_constant_ones(self, binning):
        for y in (torch.tensor([3.0]), torch.full((9,), 3.0)):
            assert binning(y, 4).tolist() == [3.0] * 5

    @pytest.mark.parametrize("arguments", [{"alpha": math.nan}, {"alpha": math.inf}, {"beta": -1.0}])
    def test_mistakes_are_named(self, arguments):
        with pytest.raises(ValueError, match=f"EAD needs a finite {next(iter(arguments))}"):
            EAD(**arguments)


class TestLeaves:
    def test_a_target_on_an_edge_goes_left(self):
        edges = torch.tensor([0.0, 1.0, 2.0, 3.0])
        assert leaf_of(torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), edges).tolist() == [0, 0, 0, 1, 1, 2, 2]

    def test_targets_out_of_range_go_to_the_ends(self):
        edges = torch.tensor([0.0, 1.0, 2.0, 3.0])
        assert leaf_of(torch.tensor([-1e12, 1e12]), edges).tolist() == [0, 2]

    def test_zeros_of_zero_inflated_targets_go_to_the_first_leaf(self):
        y = population("RS-ZIG")
        sizes = leaf_sizes(y, equal_frequency(y, 4))
        assert (sizes / len(y)).tolist() == [0.8, 0.0, 0.0, 0.2]

    @pytest.mark.parametrize("values", [(0.1, 0.3, 0.7), (1 / 3, 2 / 3, 16777217.0)])
    def test_repeated_values_fall_alike_in_every_precision(self, values):
        """Edges learned in float64 and targets that arrive in float32, or the other way round."""
        y = torch.tensor(values, dtype=torch.float64).repeat_interleave(20)
        head = TPM(4).prepare(y)
        assert torch.equal(leaf_of(y, head.edges), leaf_of(y.float(), head.edges))
        assert torch.equal(head.edges, TPM(4).prepare(y.float()).edges)
        assert leaf_of(y[:1], head.edges).item() == 0  # the smallest value is its own edge

    def test_a_column_of_a_table(self):
        """torch.searchsorted warns of strided targets, and warnings are errors here."""
        edges = equal_width(DRAWS, 4)
        assert torch.equal(leaf_of(torch.stack((DRAWS, DRAWS), 1)[:, 0], edges), leaf_of(DRAWS, edges))

    def test_means(self):
        edges = equal_width(DRAWS, 5)
        leaf = np.searchsorted(edges[1:-1].numpy(), DRAWS.numpy(), side="left")
        expected = [DRAWS.numpy()[leaf == k].mean() for k in range(5)]
        np.testing.assert_allclose(leaf_means(DRAWS, edges), expected, rtol=1e-12)

    def test_an_empty_leaf_stands_at_its_middle(self):
        assert leaf_means(torch.tensor([1.0, 1.0, 9.0]), torch.tensor([0.0, 2.0, 4.0, 9.0])).tolist() == [1.0, 3.0, 9.0]


def test_logits_of_shares_are_exact_and_finite():
    torch.testing.assert_close(odds(torch.tensor([1.0, 3.0]), torch.tensor(4.0)).sigmoid(), torch.tensor([0.25, 0.75]))
    assert odds(torch.tensor([0.0, 4.0]), torch.tensor(4.0)).abs().tolist() == [20.0, 20.0]
    sizes = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    shares = log_shares(sizes).softmax(-1)
    torch.testing.assert_close(shares, torch.tensor([[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3]]), atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("head", [TPM(8), CREAD(8), MDME(2, 4)], ids=lambda head: type(head).__name__)
class TestBinned:
    def rows(self, head, count=6):
        generator = torch.Generator().manual_seed(0)
        return (torch.randn(count, head.branches[0].width, generator=generator, dtype=torch.float64),)

    def test_shares_are_a_law(self, head):
        for scale in (1.0, 1e4):
            shares = head.shares((scale * self.rows(head)[0].float(),))
            assert (shares >= 0).all()
            torch.testing.assert_close(shares.sum(1), torch.ones(6))

    def test_the_distribution_function_is_piecewise_linear(self, head):
        head = head.prepare(DRAWS)
        raw = self.rows(head, 1)
        edges, shares = head.edges.double(), head.shares(raw)[0]
        v = torch.linspace(-1.0, float(DRAWS.max()) + 1.0, 500, dtype=torch.float64)
        expected = np.interp(v, edges, np.concatenate(([0.0], shares.cumsum(0))))
        below = head.cdf((raw[0].expand(500, -1),), v)
        np.testing.assert_allclose(below, expected, atol=1e-12)

    def test_quantiles_invert_it(self, head):
        head = head.prepare(DRAWS)
        raw = self.rows(head)
        for level in (0.01, 0.5, 0.99):
            torch.testing.assert_close(head.cdf(raw, head.quantile(raw, level)), torch.full((6,), level).double())

    def test_a_bin_without_width_is_an_atom(self, head):
        """Four fifths of zeros: P(y ≤ 0) = 0.8 at the best constants, and the median is 0."""
        y = population("RS-ZIG")
        head = head.prepare(y)
        raw = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
        assert head.cdf(raw, torch.zeros(1, dtype=torch.float64)).item() == pytest.approx(0.8, abs=1e-6)
        assert head.cdf(raw, torch.full((1,), -1e-9, dtype=torch.float64)).item() == 0.0
        assert head.quantile(raw, 0.5).item() == pytest.approx(0.0, abs=1e-12)

    def test_edges_come_from_the_training_targets_alone(self, head):
        head = head.prepare(DRAWS)
        before = {name: value.clone() for name, value in head.state_dict().items()}
        raw = self.rows(head)
        head.loss(raw, 100.0 * DRAWS[:6])
        head(raw)
        assert all(torch.equal(before[name], value) for name, value in head.state_dict().items())
        assert head.edges[-1].item() == pytest.approx(DRAWS.max().item())

    def test_a_saved_head_loads_into_a_fresh_one(self, head):
        prepared = head.prepare(DRAWS)
        fresh = head.replace()
        raw = self.rows(head)
        assert not torch.equal(fresh(raw), prepared(raw))
        fresh.load_state_dict(prepared.state_dict())
        assert torch.equal(fresh(raw), prepared(raw))
        torch.testing.assert_close(fresh.loss(raw, DRAWS[:6]), prepared.loss(raw, DRAWS[:6]))

    def test_it_exports_with_any_batch_size(self, head):
        head = head.prepare(DRAWS)

        class Alone(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = head

            def forward(self, x):
                return self.head((x,))

        batch = torch.export.Dim("batch")
        exported = torch.export.export(Alone(), (self.rows(head, 3)[0],), dynamic_shapes=({0: batch},)).module()
        torch.testing.assert_close(exported(self.rows(head, 5)[0]), head(self.rows(head, 5)))
