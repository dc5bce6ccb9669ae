import numpy as np
import pytest
import torch

from transun.backbones import ByCardinality, ByTable, Custom, EmbeddingMLP
from transun.heads import MSE, LogMSE, LogSUN
from transun.models.network import Model
from transun.models.spec import dumps, loads


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


def test_ranks_become_piecewise_linear_after_the_numbers():
    backbone = EmbeddingMLP({"item": 3}, numeric=("price",), ranks=("low", "high"), bins=4, dim=2, hidden=())
    r = torch.linspace(0, 1, 9)
    rows = embed(backbone, {"item": torch.zeros(9).long(), "price": torch.ones(9), "low": r, "high": r.flip(0)})
    assert rows.shape == (9, backbone.out_features) == (9, 2 + 1 + 2 * 4)
    low, high = rows[:, 3:7], rows[:, 7:]
    torch.testing.assert_close(low, high.flip(0))
    torch.testing.assert_close(low.sum(1), 4 * (r - 0.5))  # the pieces add up to the rank
    torch.testing.assert_close(low[3] - low[0], torch.tensor([1.0, 0.5, 0.0, 0.0]))  # 3/8 is half-way in the second


def test_a_linear_layer_over_a_rank_is_any_function_linear_between_the_bins():
    values = torch.tensor([3.0, -1.0, 4.0, 4.0, 9.0])  # at 0, 1/4, 2/4, 3/4 and 1
    r = torch.linspace(0, 1, 33)
    rows = embed(EmbeddingMLP(ranks=("r",), bins=4, hidden=()), {"r": r})
    expected = torch.from_numpy(np.interp(r.numpy(), np.linspace(0, 1, 5), values.numpy())).float()
    difference = rows @ values.diff() - expected
    torch.testing.assert_close(difference, difference[:1].expand(33))  # a constant, which the bias adds
    uniform = embed(EmbeddingMLP(ranks=("r",), hidden=()), {"r": (torch.arange(6400) + 0.5) / 6400})
    torch.testing.assert_close(uniform.mean(0), torch.zeros(32), rtol=0, atol=1e-4)


def test_column_names_may_hold_dots():
    assert embed(EmbeddingMLP({"user.id": 3}, dim=2, hidden=()), {"user.id": torch.tensor([2])}).shape == (1, 2)


@pytest.mark.parametrize("column", ["items", "keys", "training", ""])
def test_column_names_may_be_those_of_a_dictionary(column):
    batch = {column: torch.tensor([2]), "x": torch.tensor([[0, -1]])}
    assert embed(EmbeddingMLP({column: 3}, {"x": column}, dim=2, hidden=()), batch).shape == (1, 4)


class TestPaperListing:
    """Query tokens and items, at most ten each, hashed into one table of 16 numbers; 128/64/32 with dropout."""

    backbone = EmbeddingMLP(bags={"query": 5_000_000, "items": "query"}, dim=16, dropout=0.2)

    def test_equals_the_listing_by_hand(self):
        model = Model(EmbeddingMLP(bags={"query": 50, "items": "query"}, dim=16, dropout=0.2), LogMSE()).eval()
        generator = torch.Generator().manual_seed(0)
        batch = {name: torch.randint(-1, 50, (8, 10), generator=generator) for name in ("query", "items")}
        batch["items"][3] = -1
        embedding, *layers = model.network.stacks[0]
        torch.nn.init.normal_(layers[1][0].bias, generator=generator)
        table = embedding.tables["query"].weight
        rows = []
        for row in range(8):
            halves = []
            for name in ("query", "items"):
                kept = [table[i] for i in batch[name][row].tolist() if i >= 0]
                halves.append(sum(kept, torch.zeros(16)) / max(len(kept), 1))
            x = torch.cat(halves)
            for linear, *_ in layers:
                x = torch.relu(linear.weight @ x + linear.bias)
            output = model.network.outputs[0]
            rows.append((output.weight @ x + output.bias)[0])
        expected = torch.expm1(torch.stack(rows).clamp(min=0))
        assert [tuple(layer[0].weight.shape) for layer in layers] == [(128, 32), (64, 128), (32, 64)]
        torch.testing.assert_close(model(batch), expected, rtol=1e-5, atol=1e-6)
        assert not torch.equal(model.train()(batch), model.train()(batch))  # dropout

    def test_weighs_what_the_paper_prints(self):
        """Megabytes of float32 in the paper's table of sharing schemes: none, then embedding and 0..3 layers."""
        heads = [LogMSE(), *(LogSUN(shared=shared) for shared in range(5))]
        with torch.device("meta"):
            models = [Model(self.backbone, head) for head in heads]
        megabytes = [round(sum(p.numel() for p in model.parameters()) * 4 / 2**20, 2) for model in models]
        assert megabytes == [305.23, 610.46, 305.29, 305.27, 305.24, 305.23]


class TestDimension:
    def test_by_cardinality(self):
        backbone = EmbeddingMLP({"user": 10_000, "flag": 2}, {"friends": "user"}, dim=ByCardinality(), hidden=())
        model = Model(backbone, MSE())
        tables = model.network.stacks[0][0].tables
        assert {name: table.weight.shape[1] for name, table in tables.items()} == {"user": 60, "flag": 7}
        assert backbone.out_features == 60 + 7 + 60
        ids = torch.tensor([1])
        assert embed(backbone, {"user": ids, "flag": ids, "friends": ids.unsqueeze(0)}).shape == (1, 127)

    def test_bounds(self):
        rule = ByCardinality(factor=1.0, power=1.0, least=3, most=5)
        assert [rule("a", size) for size in (1, 4, 9)] == [3, 4, 5]

    @pytest.mark.parametrize("dim", [4, ByCardinality(power=0.5), ByTable({"a": 2, "b": 3})], ids=dumps)
    def test_text_comes_back_equal(self, dim):
        backbone = EmbeddingMLP({"a": 9, "b": 3}, dim=dim)
        assert loads(dumps(backbone)) == backbone

    @pytest.mark.parametrize(
        "arguments", [{"factor": 0.0}, {"power": 2.0}, {"least": 0}, {"least": 9, "most": 8}], ids=str
    )
    def test_bad_arguments(self, arguments):
        with pytest.raises(ValueError, match="ByCardinality needs"):
            ByCardinality(**arguments)


class TestGrow:
    def test_widths_stay(self):
        small = EmbeddingMLP({"a": 16, "b": 4}, {"bag": "a", "own": 16}, dim=ByCardinality())
        large = small.grow({"a": 10_000, "own": 20})
        assert large.ids == {"a": 10_000, "b": 4}
        assert large.bags == {"bag": "a", "own": 20}
        assert large.out_features == small.out_features
        assert large.dim == ByTable({"a": 12, "b": 8, "own": 12})
        assert loads(dumps(large)) == large

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ({"c": 9}, "no table 'c' to grow; there are a"),
            ({"bag": 9}, "no table 'bag'"),
            ({"a": 2}, "'a' has 3 ids and cannot shrink to 2"),
        ],
    )
    def test_mistakes_are_named(self, sizes, message):
        with pytest.raises(ValueError, match=message):
            EmbeddingMLP({"a": 3}, {"bag": "a"}).grow(sizes)


@pytest.mark.parametrize("wrong", [-1, 10])
def test_an_id_outside_its_table_is_named(wrong):
    with pytest.raises(IndexError, match=rf"column 'item' holds id {wrong}, but its table has ids 0\.\.9"):
        embed(EmbeddingMLP({"item": 10}), {"item": torch.tensor([3, wrong])})


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="lacks column 'item'; it has user"):
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
        ({"ids": {"a": 3}, "bags": {"a": 4}}, "named twice"),
        ({"ids": {"a": 2.5}}, "'a' needs at least one id, a whole number"),
        ({"ids": {"a": 3}, "dim": ByTable({"a": 0})}, "positive widths"),
        ({"ids": {"a": 3}, "dim": ByTable({"b": 4})}, "ByTable has no width for 'a'; it has b"),
        ({"ids": {"a": 3}, "dim": 0}, "positive widths"),
        ({"ids": {"a": 3}, "dropout": 1.0}, "dropout < 1"),
        ({"numeric": ("a",), "ranks": ("a",)}, "named twice"),
        ({"ranks": ("a",), "bins": 0}, "bins >= 1"),
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
