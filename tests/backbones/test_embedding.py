import pytest
import torch

from transun.backbones import Custom, EmbeddingMLP
from transun.heads import MSE, LogSUN
from transun.model import Model


def embed(backbone, batch):
    return Model(backbone, MSE()).network.stacks[0][0](batch)


def test_bags_are_averaged_over_what_is_not_padding():
    backbone = EmbeddingMLP({"item": 4}, {"bag": "item"}, dim=3, hidden=())
    model = Model(backbone, MSE())
    table = model.network.stacks[0][0].tables["item"].weight
    rows = model.network.stacks[0][0]({"item": torch.tensor([0, 0]), "bag": torch.tensor([[1, -1, 3], [-1, -1, -1]])})
    torch.testing.assert_close(rows[0, 3:], (table[1] + table[3]) / 2)
    torch.testing.assert_close(rows[1, 3:], torch.zeros(3))


def test_padding_never_changes_a_prediction():
    backbone = EmbeddingMLP(bags={"bag": 9}, dim=3, hidden=(4,))
    model = Model(backbone, LogSUN())
    short = torch.tensor([[1, 2], [5, -1]])
    long = torch.nn.functional.pad(short, (0, 3), value=-1)[:, [2, 0, 3, 1, 4]]
    torch.testing.assert_close(model({"bag": long}), model({"bag": short}))


def test_a_named_table_is_shared():
    shared = EmbeddingMLP({"item": 100}, {"bag": "item"}, dim=8, hidden=())
    apart = EmbeddingMLP({"item": 100}, {"bag": 100}, dim=8, hidden=())
    count = [sum(p.numel() for p in Model(b, MSE()).parameters()) for b in (shared, apart)]
    assert count[1] - count[0] == 800


def test_column_names_may_hold_dots():
    assert embed(EmbeddingMLP({"user.id": 3}, dim=2, hidden=()), {"user.id": torch.tensor([2])}).shape == (1, 2)


@pytest.mark.parametrize("wrong", [-1, 10])
def test_an_id_outside_its_table_is_named(wrong):
    with pytest.raises(IndexError, match=rf"column 'item' holds id {wrong}, but its table has ids 0\.\.9"):
        embed(EmbeddingMLP({"item": 10}), {"item": torch.tensor([3, wrong])})


def test_a_missing_column_is_named():
    with pytest.raises(KeyError, match="lacks column 'item'; it has user"):
        embed(EmbeddingMLP({"item": 10}), {"user": torch.tensor([3])})


def test_a_tensor_is_not_a_batch_of_columns():
    with pytest.raises(TypeError, match="named columns"):
        embed(EmbeddingMLP({"item": 10}), torch.zeros(2, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "at least one column"),
        ({"ids": {"a": 0}}, "'a' needs at least one id"),
        ({"ids": {"a": "b"}}, "'a' uses the table of 'b'"),
        ({"ids": {"a": 3}, "numeric": ("a",)}, "named twice"),
        ({"ids": {"a": 3}, "dim": 0}, "positive widths"),
        ({"ids": {"a": 3}, "dropout": 1.0}, "dropout < 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingMLP(**arguments)


def test_custom_wants_a_builder():
    module = torch.nn.Linear(3, 4)
    with pytest.raises(TypeError, match="function that builds"):
        Custom(module, 4)
    with pytest.raises(ValueError, match="same module twice"):
        Model(Custom(lambda: module, 4), LogSUN())
    Model(Custom(lambda: module, 4), LogSUN(shared=1))  # one branch owns it, the other shares it
