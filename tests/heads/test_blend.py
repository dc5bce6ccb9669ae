import math

import pytest
import torch

from transun import GTS, MSE, AutoSUN, Blend, Dataset, LogMSE, Model, Poisson, evaluate, fit
from transun.backbones import EmbeddingMLP
from transun.schemes import PoissonOffset
from transun.training import linear
from transun.training.recipe import plain_recipe
from transun.transforms import Identity, Log1p

Y = torch.tensor([0.0, 1.0, 2.0, 3.0, 30.0])


class TestBlend:
    def test_is_the_weighted_mean_of_its_parts(self):
        head = Blend(MSE(), Poisson(scale=1.0), share=0.25)
        raw = (torch.tensor([[8.0]]), torch.tensor([[0.0]]))
        assert head(raw).item() == pytest.approx(0.75 * 8.0 + 0.25 * 1.0)

    def test_each_part_is_trained_as_alone(self):
        """The gradient of each raw output is that of its own head."""
        head = Blend(LogMSE(), Poisson(scale=2.0), shared=0)
        raw = tuple(torch.tensor([[0.3]], requires_grad=True) for _ in range(2))
        sum(term.sum() for term in head.loss(raw, Y[3:4]).values()).backward()
        alone = [torch.tensor([[0.3]], requires_grad=True) for _ in range(2)]
        for part, output in zip((LogMSE(), Poisson(scale=2.0)), alone, strict=True):
            sum(term.sum() for term in part.loss((output,), Y[3:4]).values()).backward()
        assert [value.grad.item() for value in raw] == [value.grad.item() for value in alone]

    def test_branches_of_the_second_share_at_least_so_many_stages(self):
        head = Blend(MSE(), GTS(LogMSE(), shared=2), shared=1)
        assert [branch.shared for branch in head.branches] == [0, 1, 2]

    def test_kept_apart_the_second_shares_within_itself(self):
        """Its bias branch reads the embedding of its own point, not that of the first head."""
        head = Blend(MSE(), GTS(LogMSE(), shared=1), shared=0)
        assert [(branch.shared, branch.shares_with) for branch in head.branches] == [(0, 0), (0, 0), (1, 1)]
        model = Model(EmbeddingMLP({"item": 4}, hidden=(8,)), head).prepare(Y)
        torch.nn.init.ones_(model.network.outputs[2].weight)
        model.network({"item": torch.tensor([1])})[2].sum().backward()
        tables = [stack[0].tables["item"].weight.grad for stack in model.network.stacks[:2]]
        assert tables[0] is None
        assert tables[1].abs().sum() > 0.0

    def test_base_of_plain_heads_is_the_prediction(self):
        head, raw = Blend(MSE(), Poisson(scale=2.0)), (torch.tensor([[8.0]]), torch.tensor([[0.0]]))
        assert head.undebiased(raw).item() == head(raw).item()

    @pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
    def test_a_share_that_leaves_one_out_is_refused(self, share):
        with pytest.raises(ValueError, match="0 < share < 1"):
            Blend(MSE(), MSE(), share)


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
