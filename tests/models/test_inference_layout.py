"""Branches computed together predict what they predict one after another, and take fewer operations to do so."""

from collections import Counter

import pytest
import torch

from transun import CREAD, DIN, GTS, MSE, ZILN, Constant, Custom, EmbeddingMLP, LogMSE, LogSUN, Model, TabM
from transun.backbones import Sigmoid
from transun.heads import Branch
from transun.models.inference_layout import merge_branches
from transun.schemes import ReciprocalTarget

N = 7
COLUMNS = {"item": torch.arange(N) % 5, "price": torch.linspace(-2, 2, N), "clicks": torch.arange(2 * N).view(N, 2) % 5}
COLUMNS["rank"] = torch.linspace(0, 1, N)
MLP = EmbeddingMLP({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4), ranks=("rank",), bins=3)
DROPPING = EmbeddingMLP({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4), dropout=0.5)
PLAIN = DIN({"item": 5}, history={"clicks": "item"}, dim=3, hidden=(6, 4), unit=(4,), activation=Sigmoid())
BENT = DIN({"item": 5}, history={"clicks": "item"}, dim=3, hidden=(6, 4), unit=(4,))
MEMBERS = TabM({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4), members=3)
PAPER = EmbeddingMLP({"item": 5}, dim=176, hidden=(128, 64, 32))  # the widths that the limit on zeros is set for


def shaken(backbone, head, seed=3):
    """As after some training: output weights matter, and no two branches agree."""
    model = Model(backbone, head).prepare(torch.tensor([1.0, 5.0, 9.0, 2.0])).eval()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))
    return model


def operations(module):
    graph = torch.export.export(module, (COLUMNS,)).graph
    return Counter(getattr(node.target, "_opname", "") for node in graph.nodes if node.op == "call_function")


def agree(model, **tolerance):
    together = merge_branches(model)
    for rows in (slice(0, 0), slice(2, 3), slice(0, N)):
        batch = {name: column[rows] for name, column in COLUMNS.items()}
        torch.testing.assert_close(together(batch), model(batch), **{"rtol": 1e-5, "atol": 1e-6} | tolerance)


@pytest.mark.parametrize("backbone", [MLP, DROPPING, PLAIN, BENT], ids=["MLP", "dropout", "DIN", "Dice"])
@pytest.mark.parametrize("shared", range(4))
def test_every_sharing_predicts_the_same(backbone, shared):
    agree(shaken(backbone, LogSUN(shared=shared)))


@pytest.mark.parametrize(
    "head",
    [
        GTS(GTS(LogMSE(), shared=1), shared=2),  # the third branch leaves the trunk later than the second
        GTS(GTS(LogMSE(), shared=2), shared=2),
        GTS(ZILN(), shared=2),  # outputs of several widths
        GTS(CREAD(), shared=3),
        CREAD(),
        MSE(),
    ],
    ids=["later", "three", "widths", "wide", "two widths", "one"],
)
def test_branches_of_every_number_and_width(head):
    agree(shaken(MLP, head), rtol=1e-4)


class Chained(GTS):
    """A third branch that goes on from the second, which may have stages of its own, and is not trained by it."""

    def __init__(self, inner, scheme, shared, of):
        super().__init__(inner, scheme, shared)
        self.of = of
        self.branches = (*inner.branches, Branch(shared=shared, shares_with=of, trains_shared=False))


@pytest.mark.parametrize(("second", "third", "of"), [(0, 1, 1), (1, 1, 1), (1, 2, 1), (1, 2, 0), (2, 2, 1)])
def test_a_branch_that_shares_with_the_second(second, third, of):
    agree(shaken(MLP, Chained(LogSUN(shared=second), ReciprocalTarget(), third, of)))


@pytest.mark.parametrize("shared", [3, 4])
def test_a_branch_that_shares_most_adds_no_layer(shared):
    one, two = (
        operations(merge_branches(Model(PAPER, LogMSE()))),
        operations(merge_branches(Model(PAPER, LogSUN(shared=shared)))),
    )
    assert two["addmm"] == one["addmm"] == 4
    assert two["relu_"] == one["relu_"] == 3


@pytest.mark.parametrize(
    "head",
    [
        LogSUN(shared="all"),
        GTS(LogSUN(shared="all"), shared="all"),
        GTS(CREAD(), shared="all"),
        LogSUN(shared=1),
        MSE(),
    ],
    ids=["two", "three", "widths", "towers", "one"],
)
def test_members_predict_the_same(head):
    agree(shaken(MEMBERS, head), rtol=1e-4)


def test_branches_of_members_that_share_all_stages_have_one_output_layer():
    together, towers = Model(MEMBERS, LogSUN(shared="all")).eval(), Model(MEMBERS, LogSUN(shared=1)).eval()
    assert operations(together)["baddbmm"] == 2
    assert operations(merge_branches(together))["baddbmm"] == 1
    assert merge_branches(towers) is towers


def test_towers_share_their_first_layer():
    model = Model(PAPER, LogSUN(shared=1))
    assert operations(model)["linear"] == 8
    assert operations(merge_branches(model))["addmm"] == 7


@pytest.mark.parametrize("hidden", [(128, 64, 32), (1024, 512, 256), (8, 8, 8, 8, 8)])
@pytest.mark.parametrize("head", [LogSUN, lambda shared: GTS(CREAD(), shared=shared)], ids=["LogSUN", "wide"])
@pytest.mark.parametrize("shared", [1, 2, 3, 4])
def test_zeros_stay_few(hidden, head, shared):
    model = Model(EmbeddingMLP({"item": 5}, dim=64, hidden=hidden), head(shared=shared))
    count = lambda module: sum(weight.numel() for weight in module.parameters())  # noqa: E731
    assert count(model) <= count(merge_branches(model)) <= 1.15 * count(model)


def test_nothing_is_left_of_training():
    dropping = Model(DROPPING, LogSUN(shared=1)).eval()
    detached = Model(MLP, Chained(LogSUN(), ReciprocalTarget(), 1, 0))
    assert "dropout" in operations(dropping)
    assert "dropout" not in operations(merge_branches(dropping))
    assert any("detach" in name for name in operations(detached))
    assert not any("detach" in name for name in operations(merge_branches(detached)))


@pytest.mark.parametrize(
    "model",
    [Model(Constant(), LogSUN()), Model(Custom(lambda: torch.nn.Linear(2, 3), 3), LogSUN())],
    ids=["Constant", "Custom"],
)
def test_a_network_without_dense_layers_is_left_alone(model):
    assert merge_branches(model) is model


@pytest.mark.parametrize("shared", [1, 2])
def test_the_model_keeps_its_weights(shared):
    model = shaken(MLP, LogSUN(shared=shared))
    before = model(COLUMNS)
    copied = [weight for weight in merge_branches(model).parameters() if not weight.requires_grad]
    assert copied
    for weight in copied:
        weight.zero_()
    torch.testing.assert_close(model(COLUMNS), before)
    assert all(parameter.requires_grad for parameter in model.parameters())
