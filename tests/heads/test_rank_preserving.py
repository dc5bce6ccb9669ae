import pytest
import torch

from transun import GTS, MSE, LogMSE, Model, RankPreserving
from transun.backbones import EmbeddingMLP

Y = torch.tensor([0.0, 1.0, 2.0, 3.0, 30.0])
ROWS = {"item": torch.arange(5)}


def gradients(head):
    model = Model(EmbeddingMLP({"item": 5}, hidden=(8,)), head).prepare(Y)
    for output in model.network.outputs:
        torch.nn.init.ones_(output.weight)
    torch.stack([term.mean() for term in model.loss(ROWS, Y).values()]).sum().backward()
    first = model.network.stacks[0].parameters()
    return [parameter.grad for parameter in first], model.network.outputs[-1].weight.grad


def test_the_inner_head_is_trained_as_if_there_were_no_wrapper():
    alone, _ = gradients(GTS(LogMSE(), shared=1))
    wrapped, of_factor = gradients(RankPreserving(GTS(LogMSE(), shared=1)))
    assert all(torch.equal(gradient, other) for gradient, other in zip(alone, wrapped, strict=True))
    assert of_factor.abs().sum() > 0.0


def test_the_ordered_share_starts_with_the_right_total_and_keeps_the_order():
    model = Model(EmbeddingMLP({"item": 5}, hidden=(8,)), RankPreserving(GTS(LogMSE()), share=0.999)).prepare(Y)
    assert model(ROWS).mean().item() == pytest.approx(Y.mean().item(), rel=1e-5)
    torch.nn.init.normal_(model.network.outputs[0].weight, generator=torch.Generator().manual_seed(1))
    base = model.head.undebiased(model.raw(ROWS))
    assert model(ROWS).argsort().tolist() == base.argsort().tolist()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_that_leaves_one_out_is_refused(share):
    with pytest.raises(ValueError, match="0 < share < 1"):
        RankPreserving(MSE(), share)
