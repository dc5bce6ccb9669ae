"""A head times a ratio head: the ratio makes up for whatever factor the inner head is wrong by."""

import pytest
import torch

from population import minimise
from transun.heads import Adjusted, Gamma, LogMSE, PointHead, Poisson, Tweedie

Y = torch.tensor([0.5, 1.0, 4.0, 10.5], dtype=torch.float64)  # mean 4


@pytest.mark.parametrize("ratio", [Poisson(), Gamma(), Tweedie(1.5), PointHead()], ids=lambda head: type(head).__name__)
@pytest.mark.parametrize("amount", [0.5, 4.0, 40.0])
def test_the_best_ratio_makes_the_mean_right_whatever_the_amount_is(ratio, amount):
    head = Adjusted(PointHead(), ratio).prepare(Y)
    wrong = torch.full((4, 1), amount, dtype=torch.float64)

    def cost(z):
        return head.loss((wrong, z.expand(4, 1)), Y)["ratio." + next(iter(ratio.loss((wrong,), Y)))].mean()

    start = head.initial_outputs(Y)[1].double()
    best = minimise(cost, start + 0.1).expand(4, 1)
    assert head((wrong, best))[0].item() == pytest.approx(4.0, rel=1e-4)


def test_the_ratio_does_not_train_the_inner_head():
    head = Adjusted(LogMSE(), Poisson()).prepare(Y)
    raw = tuple(torch.zeros(4, 1, requires_grad=True) for _ in range(2))
    terms = head.loss(raw, Y.float())
    of_ratio = sum(term.sum() for name, term in terms.items() if name.startswith("ratio."))
    inner, ratio = torch.autograd.grad(of_ratio, raw, allow_unused=True)
    assert inner is None
    assert (ratio != 0.0).any()


def test_amounts_of_zero_are_lifted_if_asked_for():
    raw = (torch.tensor([[0.0], [-1.0], [3.0]]), torch.full((3, 1), 2.0))
    assert Adjusted(PointHead(), PointHead())(raw).tolist() == [0.0, 0.0, 6.0]
    assert Adjusted(PointHead(), PointHead(), least=0.5)(raw).tolist() == [1.0, 1.0, 6.0]
    with pytest.raises(ValueError, match="least >= 0"):
        Adjusted(PointHead(), PointHead(), least=-1.0)
