import math

import pytest
import torch

from transun import GTS, MSE, AutoSUN, Blend, Dataset, LogMSE, Model, Poisson, evaluate, fit
from transun.backbones import EmbeddingMLP
from transun.heads.blend import by_level, small_factor
from transun.schemes import PoissonOffset
from transun.training import linear
from transun.training.recipe import plain_recipe
from transun.transforms import Identity, Log1p

Y = torch.tensor([0.0, 1.0, 2.0, 3.0, 30.0])


def outputs(*values):
    return tuple(torch.tensor([[value]]) for value in values)


class TestBlend:
    def test_is_the_weighted_mean_of_its_parts(self):
        head = Blend((MSE(), Poisson(scale=1.0), MSE()), (0.5, 0.3, 0.2))
        assert head(outputs(8.0, 0.0, 4.0)).item() == pytest.approx(0.5 * 8.0 + 0.3 * 1.0 + 0.2 * 4.0)

    def test_shares_are_equal_by_default(self):
        assert Blend((MSE(), MSE(), MSE()))(outputs(1.0, 2.0, 6.0)).item() == pytest.approx(3.0)

    def test_each_part_is_trained_as_alone(self):
        """The gradient of each raw output is that of its own head."""
        head = Blend((LogMSE(), Poisson(scale=2.0)), (0.9, 0.1), (0.2, 0.8), level=1.0, shared=0)
        raw = tuple(torch.tensor([[0.3]], requires_grad=True) for _ in range(2))
        sum(term.sum() for term in head.loss(raw, Y[3:4]).values()).backward()
        alone = [torch.tensor([[0.3]], requires_grad=True) for _ in range(2)]
        for part, output in zip((LogMSE(), Poisson(scale=2.0)), alone, strict=True):
            sum(term.sum() for term in part.loss((output,), Y[3:4]).values()).backward()
        assert [value.grad.item() for value in raw] == [value.grad.item() for value in alone]

    def test_a_loss_counts_as_often_as_it_costs(self):
        raw, parts = outputs(0.3, 0.3), (LogMSE(), Poisson(scale=2.0))
        losses = Blend(parts, costs=(1.0, 0.1)).loss(raw, Y[3:4])
        alone = [next(iter(part.loss((output,), Y[3:4]).values())) for part, output in zip(parts, raw, strict=True)]
        assert [loss.item() for loss in losses.values()] == pytest.approx([alone[0].item(), 0.1 * alone[1].item()])

    def test_branches_of_the_second_share_at_least_so_many_stages(self):
        head = Blend((MSE(), GTS(LogMSE(), shared=2)), shared=1)
        assert [branch.shared for branch in head.branches] == [0, 1, 2]

    def test_kept_apart_the_second_shares_within_itself(self):
        """Its bias branch reads the embedding of its own point, not that of the first head."""
        head = Blend((MSE(), GTS(LogMSE(), shared=1)), shared=0)
        assert [(branch.shared, branch.shares_with) for branch in head.branches] == [(0, 0), (0, 0), (1, 1)]
        model = Model(EmbeddingMLP({"item": 4}, hidden=(8,)), head).prepare(Y)
        torch.nn.init.ones_(model.network.outputs[2].weight)
        model.network({"item": torch.tensor([1])})[2].sum().backward()
        tables = [stack[0].tables["item"].weight.grad for stack in model.network.stacks[:2]]
        assert tables[0] is None
        assert tables[1].abs().sum() > 0.0

    def test_base_of_plain_heads_is_the_prediction(self):
        head, raw = Blend((MSE(), Poisson(scale=2.0))), outputs(8.0, 0.0)
        assert head.undebiased(raw).item() == head(raw).item()

    def test_bias_branches_are_those_of_the_parts(self):
        assert Blend((MSE(), GTS(LogMSE(), shared=1))).bias_branches == (2,)

    @pytest.mark.parametrize("weights", [(1.0,), (-0.1, 1.1), (math.nan, 1.0), (math.inf, 1.0), (0.3, 0.3, 0.4)])
    def test_weights_that_are_none_are_refused(self, weights):
        for name in ("shares", "small", "costs"):
            with pytest.raises(ValueError, match=r"weight >= 0 for each of 2 heads"):
                Blend((MSE(), MSE()), **{name: weights})

    @pytest.mark.parametrize("shares", [(0.5, 0.6), (0.0, 0.0)])
    def test_shares_have_the_sum_1(self, shares):
        with pytest.raises(ValueError, match="of sum 1"):
            Blend((MSE(), MSE()), shares)

    @pytest.mark.parametrize("level", [0.0, -1.0, math.inf, math.nan])
    def test_a_level_that_is_none_is_refused(self, level):
        with pytest.raises(ValueError, match="finite level > 0"):
            Blend((MSE(), MSE()), level=level)

    @pytest.mark.parametrize("heads", [(), MSE(), (MSE(), "LogMSE()")])
    def test_something_that_is_no_heads_is_named(self, heads):
        with pytest.raises(TypeError, match=r"Blend\(\(Poisson\(\), LogSUN\(\)\)\)"):
            Blend(heads)


class TestSmallAmounts:
    @pytest.mark.parametrize(("amount", "share"), [(0.0, 0.0), (2.0, 0.25), (6.0, 0.5), (54.0, 0.9)])
    def test_weights_pass_from_small_to_large_with_the_amount(self, amount, share):
        """With shares (1, 0) and (0, 1), the first head counts amount / (amount + 6)."""
        head = Blend((MSE(), MSE()), (1.0, 0.0), (0.0, 1.0), level=6.0)
        assert head(outputs(amount, 100.0)).item() == pytest.approx(share * amount + (1.0 - share) * 100.0)

    def test_the_amount_is_that_of_the_shares(self):
        head = Blend((MSE(), MSE()), (0.5, 0.5), (0.0, 1.0), level=5.0)  # H = 5, t = 1/2
        assert head(outputs(8.0, 2.0)).item() == pytest.approx(0.5 * 5.0 + 0.5 * 2.0)

    def test_an_amount_below_zero_is_small(self):
        assert by_level(torch.tensor([-3.0]), torch.tensor([1.0]), 1.0).item() == 1.0

    def test_the_level_is_the_mean_amount(self):
        head = Blend((MSE(), MSE()), (1.0, 0.0), (0.0, 1.0)).prepare(Y)
        assert head.level == pytest.approx(36.0 / 5.0)
        assert Blend((MSE(), MSE()), (1.0, 0.0), level=2.0).prepare(Y).level == 2.0


class TestSmallFactor:
    def test_the_total_is_that_of_large_amounts(self):
        generator = torch.Generator().manual_seed(0)
        large, small, weight = torch.rand(3, 500, generator=generator, dtype=torch.float64)
        factor = small_factor(large, small, 0.3, weight)
        total = (by_level(large, factor * small, 0.3) * weight).sum()
        assert total.item() == pytest.approx((large * weight).sum().item())

    def test_without_weights_every_row_counts_once(self):
        large, small = torch.tensor([1.0, 5.0]), torch.tensor([2.0, 3.0])
        assert small_factor(large, small, 1.0) == small_factor(large, small, 1.0, torch.ones(2))

    @pytest.mark.parametrize("nothing", [torch.zeros(3), torch.ones(3)])
    def test_without_amounts_it_changes_nothing(self, nothing):
        assert small_factor(nothing, torch.zeros(3), 1.0) == 1.0
        assert small_factor(torch.zeros(3), nothing, 1.0) == 1.0


class TestPoissonOffset:
    def test_cost_is_least_at_the_mean_whatever_the_point(self):
        """Against a search over a grid of constants."""
        scheme, transform = PoissonOffset(0.5), Log1p()
        for point in (0.1, 2.0):
            u = torch.full_like(Y, point)
            z = torch.linspace(-5.0, 8.0, 20_001)
            costs = torch.stack([scheme.cost(value.expand_as(Y), Y, u, transform).mean() for value in z])
            best = scheme.decode(z[costs.argmin()], u[:1], transform)
            assert best.item() == pytest.approx(Y.mean().item(), rel=1e-3)

    def test_start_makes_the_total_right(self):
        scheme, u = PoissonOffset(1.0), torch.tensor([0.0, 1.0, 5.0, 2.0, 9.0])
        z = scheme.initial_z(Y, u, Identity())
        assert scheme.decode(z.expand_as(u), u, Identity()).sum().item() == pytest.approx(Y.sum().item(), rel=1e-5)

    def test_stationary_where_the_total_is_right(self):
        scheme, u = PoissonOffset(1.0), torch.tensor([0.0, 1.0, 5.0, 2.0, 9.0])
        z = scheme.initial_z(Y, u, Identity()).clone().requires_grad_()
        scheme.cost(z.expand_as(u), Y, u, Identity()).sum().backward()
        assert z.grad.item() == pytest.approx(0.0, abs=1e-3)


def test_trains_in_a_network():
    generator = torch.Generator().manual_seed(0)
    item = torch.randint(0, 4, (4_000,), generator=generator)
    y = (1.0 + item) * torch.randn(4_000, generator=generator).exp()
    data = Dataset({"item": item}, y)
    model = Model(EmbeddingMLP({"item": 4}), AutoSUN(shared=1))
    fit(model, data, plain_recipe(epochs=20, decay=linear))
    # E[y | item] = (1 + item)·√e; 1,000 rows of relative sd 1.3 leave 4 %.
    true = (1.0 + torch.arange(4)) * math.exp(0.5)
    assert (model({"item": torch.arange(4)}) / true).tolist() == pytest.approx([1.0] * 4, abs=0.2)
    assert evaluate(model, data)["PGR"] == pytest.approx(1.0, abs=0.05)
