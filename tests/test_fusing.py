"""Branches computed together predict what they predict one after another, and take fewer operations to do so."""

import pytest
import torch

from transun import CREAD, DIN, GTS, MSE, ZILN, Constant, Custom, EmbeddingMLP, LogMSE, LogSUN, Model, Sigmoid
from transun.fusing import fused
from transun.heads import Branch
from transun.schemes import ReciprocalTarget

N = 7
COLUMNS = {"item": torch.arange(N) % 5, "price": torch.linspace(-2, 2, N), "clicks": torch.arange(2 * N).view(N, 2) % 5}
MLP = EmbeddingMLP({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4))
DROPPING = EmbeddingMLP({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4), dropout=0.5)
PLAIN = DIN({"item": 5}, history={"clicks": "item"}, dim=3, hidden=(6, 4), unit=(4,), activation=Sigmoid())
BENT = DIN({"item": 5}, history={"clicks": "item"}, dim=3, hidden=(6, 4), unit=(4,))


def shaken(backbone, head, seed=3):
    """As after some training: output weights matter, and no two branches agree."""
    model = Model(backbone, head).prepare(torch.tensor([1.0, 5.0, 9.0, 2.0])).eval()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))
    return model


def operations(module, batch):
    graph = torch.export.export(module, (batch,)).graph
    return sum(node.op == "call_function" for node in graph.nodes)


@pytest.mark.parametrize("backbone", [MLP, DROPPING, PLAIN, BENT], ids=["MLP", "dropout", "DIN", "Dice"])
@pytest.mark.parametrize("shared", range(4))
def test_every_sharing_predicts_the_same(backbone, shared):
    model = shaken(backbone, LogSUN(shared=shared))
    together = fused(model)
    for rows in (slice(0, 0), slice(2, 3), slice(0, N)):
        batch = {name: column[rows] for name, column in COLUMNS.items()}
        torch.testing.assert_close(together(batch), model(batch), rtol=1e-5, atol=1e-6)


def test_three_branches_and_wide_outputs():
    deep = shaken(
        MLP, GTS(GTS(LogMSE(), shared=1), shared=2)
    )  # the third branch leaves the trunk later than the second
    wide = shaken(MLP, CREAD())
    for model in (deep, wide):
        torch.testing.assert_close(fused(model)(COLUMNS), model(COLUMNS), rtol=1e-5, atol=1e-6)


class Chained(GTS):
    """A third branch that goes on from the second, which has stages of its own."""

    def __init__(self, inner, scheme, shared, of):
        super().__init__(inner, scheme, shared)
        self.of = of
        self.branches = (*inner.branches, Branch(shared=shared, of=of, pulls=False))


@pytest.mark.parametrize(("second", "third", "of"), [(0, 1, 1), (1, 1, 1), (1, 2, 1), (1, 2, 0)])
def test_a_branch_that_shares_with_the_second(second, third, of):
    model = shaken(MLP, Chained(LogSUN(shared=second), ReciprocalTarget(), third, of))
    torch.testing.assert_close(fused(model)(COLUMNS), model(COLUMNS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shared", range(3))
def test_together_takes_fewer_operations(shared):
    model = shaken(EmbeddingMLP({"item": 5}, dim=3, hidden=(6, 5, 4, 3)), LogSUN(shared=shared))
    assert operations(fused(model), COLUMNS) < operations(model, COLUMNS)


def test_the_bias_branch_adds_no_layer_to_the_graph():
    with_branch, without = fused(shaken(MLP, LogSUN(shared=1))), shaken(MLP, LogMSE())
    products = ("linear", "addmm", "baddbmm", "relu_")

    def count(module):
        graph = torch.export.export(module, (COLUMNS,)).graph
        return sum(getattr(node.target, "_opname", "") in products for node in graph.nodes)

    assert count(with_branch) == count(without)


@pytest.mark.parametrize(
    "model",
    [
        shaken(MLP, MSE()),  # one branch
        shaken(BENT, LogSUN(shared=1)),  # Dice has statistics of its own
        shaken(MLP, GTS(ZILN(), shared=1)),  # outputs of different widths
        shaken(MLP, LogSUN(shared=3)),  # no layer is left to join
        Model(Constant(), LogSUN()),
        Model(Custom(lambda: torch.nn.Linear(2, 3), 3), LogSUN()),
    ],
    ids=["one", "Dice", "widths", "all shared", "Constant", "Custom"],
)
def test_what_is_not_alike_is_left_alone(model):
    assert fused(model) is model


def test_the_model_keeps_its_weights():
    model = shaken(MLP, LogSUN(shared=1))
    before = model(COLUMNS)
    together = fused(model)
    for parameter in together.weights:
        parameter.data.zero_()
    torch.testing.assert_close(model(COLUMNS), before)
    assert all(parameter.requires_grad for parameter in model.parameters())
