import math

import pytest
import torch
from torch import nn

from transun.backbones import DIN, ByCardinality, Dice, PReLU, ReLU, Sigmoid
from transun.heads import MSE, LogSUN
from transun.models.network import Model
from transun.models.spec import dumps, loads

ROWS, LENGTH = 7, 5
IDS = {"user": 6, "item": 11, "category": 4}
HISTORY = {"clicks": "item", "kinds": "category"}
ACTIVATIONS = [Dice(), Dice(beta=1.0), PReLU(), ReLU(), Sigmoid()]


def batch(seed=0, rows=ROWS, length=LENGTH):
    generator = torch.Generator().manual_seed(seed)

    def draw(size, *shape, low=0):
        return torch.randint(low, size, shape, generator=generator)

    columns = {name: draw(size, rows) for name, size in IDS.items()}
    columns["clicks"] = draw(IDS["item"], rows, length, low=-1)
    columns["kinds"] = draw(IDS["category"], rows, length).where(columns["clicks"] >= 0, -1)
    columns["clicks"][0], columns["kinds"][0] = -1, -1  # an empty history
    columns["kinds"][1, 0] = -1  # an entry of unknown kind
    return columns | {"price": torch.randn(rows, generator=generator)}


def shaken(backbone, seed=0):
    """A model in which nothing is zero, nor any statistic the one it began with."""
    model = Model(backbone, MSE(), seed=seed).eval()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for name, value in model.network.state_dict().items():
            noise = torch.randn_like(value)
            value.copy_(noise.square() + 0.1 if "variance" in name else 0.5 * noise)
    return model


def reference(backbone, model, columns):
    """The prediction of every row, entry by entry and number by number."""
    embed, *layers = model.network.stacks[0]
    tables = {name: embed.tables[name].weight for name in IDS}

    def act(activation, module, x):
        match activation:
            case ReLU():
                return x.clamp(min=0.0)
            case Sigmoid():
                return 1.0 / (1.0 + torch.exp(-x))
            case PReLU():
                return torch.stack([v if v > 0 else a * v for v, a in zip(x, module.slope, strict=True)])
            case Dice():
                p = 1.0 / (1.0 + torch.exp(-module.beta * (x - module.mean) / torch.sqrt(module.variance + 1e-9)))
                return p * x + module.alpha * (1.0 - p) * x

    answers = []
    for row in range(len(columns["item"])):
        ids = torch.cat([tables[name][columns[name][row]] for name in IDS])
        q = torch.cat([tables[target][columns[target][row]] for target in HISTORY.values()])
        entries, scores = [], []
        for t in range(columns["clicks"].shape[1]):
            entry = [int(columns[name][row, t]) for name in HISTORY]
            if entry == [-1, -1]:
                continue
            k = torch.cat(
                [
                    tables[target][i] if i >= 0 else torch.zeros(tables[target].shape[1])
                    for i, target in zip(entry, HISTORY.values(), strict=True)
                ]
            )
            x = torch.cat([q, k, q - k, q * k])
            for index, layer in enumerate(embed.unit.layers):
                x = layer.weight @ x + layer.bias
                if index < len(backbone.unit):
                    x = act(backbone.unit_activation, embed.unit.activations[index], x)
            entries.append(k)
            scores.append(x[0])
        pooled = torch.zeros_like(q)
        if backbone.normalise and scores:
            exps = [torch.exp(score / math.sqrt(len(q))) for score in scores]
            scores = [value / sum(exps) for value in exps]
        for score, k in zip(scores, entries, strict=True):
            pooled = pooled + score * k
        x = torch.cat([ids, columns["price"][row].reshape(1), pooled])
        for layer in layers:
            x = act(backbone.activation, layer[1], layer[0].weight @ x + layer[0].bias)
        output = model.network.outputs[0]
        answers.append((output.weight @ x + output.bias)[0])
    return torch.stack(answers)


def build(**changes):
    defaults = {"numeric": ("price",), "dim": 3, "hidden": (6, 5), "history": HISTORY, "unit": (8, 4)}
    return DIN(IDS, **defaults | changes)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=dumps)
def test_equals_a_loop_over_rows_and_entries(activation, normalise):
    backbone = build(activation=activation, unit_activation=activation, normalise=normalise)
    for seed in range(3):
        model, columns = shaken(backbone, seed), batch(seed)
        expected = reference(backbone, model, columns)
        torch.testing.assert_close(model(columns), expected, rtol=1e-5, atol=1e-5)
        assert expected.std() > 5e-3  # the rows do differ


def test_a_unit_without_hidden_layers_and_widths_by_cardinality():
    backbone = build(unit=(), dim=ByCardinality(factor=1.0, power=0.5))  # 6, 11, 4 ids: 2, 3, 2 numbers
    model = shaken(backbone)
    assert [model.network.stacks[0][0].tables[name].weight.shape[1] for name in IDS] == [2, 3, 2]
    torch.testing.assert_close(model(batch()), reference(backbone, model, batch()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("normalise", [True, False])
class TestPadding:
    def test_never_changes_a_prediction(self, normalise):
        model, short = shaken(build(normalise=normalise)), batch()
        order = torch.randperm(LENGTH + 4, generator=torch.Generator().manual_seed(1))
        long = short | {name: nn.functional.pad(short[name], (0, 4), value=-1)[:, order] for name in HISTORY}
        torch.testing.assert_close(model(long), model(short))

    def test_never_changes_what_training_learns(self, normalise):
        """Neither gradients nor the running statistics of Dice see it."""
        short = batch()
        long = short | {name: nn.functional.pad(short[name], (3, 4), value=-1) for name in HISTORY}
        twins = [shaken(build(normalise=normalise, unit_activation=Dice(1.0))).train() for _ in range(2)]
        for model, columns in zip(twins, (short, long), strict=True):
            model.loss(columns, torch.ones(ROWS))["point"].mean().backward()
        for ours, theirs in zip(twins[0].parameters(), twins[1].parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(dict(twins[0].named_buffers()), dict(twins[1].named_buffers()))

    def test_an_empty_history_is_a_zero_vector_with_finite_gradients(self, normalise):
        for length in (0, 3):
            columns = batch() | {name: torch.full((ROWS, length), -1) for name in HISTORY}
            model = shaken(build(normalise=normalise)).train()
            pooled = model.network.stacks[0][0](columns)[:, -6:]
            assert torch.equal(pooled, torch.zeros(ROWS, 6))
            model.loss(columns, torch.ones(ROWS))["point"].mean().backward()
            assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
            assert all(value.isfinite().all() for value in model.network.state_dict().values())

    def test_gradients_are_finite_beside_an_empty_history(self, normalise):
        model = shaken(build(normalise=normalise)).train()
        model.loss(batch(), torch.ones(ROWS))["point"].mean().backward()
        assert all(p.grad.isfinite().all() and (p.grad != 0).any() for p in model.parameters() if p.numel() > 1)


def test_the_order_of_entries_does_not_matter_and_the_target_does():
    model, columns = shaken(build()), batch()
    turned = columns | {name: columns[name].flip(1) for name in HISTORY}
    torch.testing.assert_close(model(turned), model(columns))
    embed = model.network.stacks[0][0]
    other = embed(columns | {"item": (columns["item"] + 1) % IDS["item"]})
    assert (other[1:, -6:] - embed(columns)[1:, -6:]).abs().max() > 1e-2


def test_exports_for_any_number_of_rows_and_entries():
    model, rows, length = shaken(build()), torch.export.Dim("rows"), torch.export.Dim("length")
    shapes = {name: {0: rows} | ({1: length} if name in HISTORY else {}) for name in batch()}
    exported = torch.export.export(model, (batch(),), dynamic_shapes=(shapes,)).module()
    for other in (batch(1, rows=2, length=9), batch(2, rows=30, length=2)):
        torch.testing.assert_close(exported(other), model(other))


def test_softmax_weights_an_average():
    """Equal entries: the normalised pool is the entry itself however many there are, the plain sum is not."""
    columns = batch() | {"clicks": torch.full((ROWS, 3), 2), "kinds": torch.full((ROWS, 3), 1)}
    for normalise in (True, False):
        embed = shaken(build(normalise=normalise)).network.stacks[0][0]
        entry = torch.cat([embed.tables["item"].weight[2], embed.tables["category"].weight[1]])
        same = torch.allclose(embed(columns)[:, -6:], entry.expand(ROWS, 6), atol=1e-6)
        assert same == normalise


def test_the_history_shares_its_targets_table():
    apart = sum(p.numel() for p in Model(build(history={"clicks": "item"}), MSE()).parameters())
    both = sum(p.numel() for p in Model(build(), MSE()).parameters())
    # One more history column of width 3: the unit's first layer reads 4·3 more, the first dense layer 3 more.
    assert both - apart == 8 * 12 + 6 * 3


def test_the_default_shape_is_the_papers():
    head = LogSUN(shared=1)
    with torch.device("meta"):
        model = Model(DIN({"item": 100}, history={"clicks": "item"}), head)
    unit = [tuple(layer.weight.shape) for layer in model.network.stacks[0][0].unit.layers]
    assert unit == [(80, 64), (40, 80), (1, 40)]
    assert [stage[0].weight.shape[0] for stage in model.network.stacks[0][1:]] == [1024, 512, 256]
    assert len(model.network.stacks[1]) == 3  # the bias branch has its own dense layers and no tables


def test_a_row_is_predicted_as_in_company():
    model, columns = shaken(build()), batch()
    alone = torch.cat([model({name: value[row : row + 1] for name, value in columns.items()}) for row in range(ROWS)])
    torch.testing.assert_close(alone, model(columns))


@pytest.mark.parametrize(
    "backbone",
    [
        build(),
        build(activation=PReLU(0.1), unit_activation=Dice(1.0), normalise=False, dropout=0.1),
        build(dim=ByCardinality(most=8), bags={"seen": "item"}),
    ],
    ids=dumps,
)
def test_text_comes_back_equal(backbone):
    assert loads(dumps(backbone)) == backbone


def test_wrong_ids_and_columns_are_named():
    model = shaken(build())
    with pytest.raises(IndexError, match=r"column 'clicks' holds id 11, but its table has ids 0\.\.10"):
        model(batch() | {"clicks": torch.full((ROWS, LENGTH), 11)})
    with pytest.raises(IndexError, match="column 'item' holds id -1"):
        model(batch() | {"item": torch.full((ROWS,), -1)})
    with pytest.raises(ValueError, match="lacks column 'kinds'"):
        model({name: value for name, value in batch().items() if name != "kinds"})
    with pytest.raises(ValueError, match=r"one length, got \{'clicks': 2, 'kinds': 5\}; pad them with -1"):
        model(batch() | {"clicks": torch.zeros(ROWS, 2, dtype=torch.long)})
    with pytest.raises(ValueError, match=r"'clicks' holds several ids a row: give it shape \(B, L\), not \(7,\)"):
        model(batch() | {"clicks": torch.zeros(7, dtype=torch.long), "kinds": torch.zeros(7, dtype=torch.long)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"history": {}}, "DIN needs a history column"),
        ({"history": {"clicks": "shop"}}, "compared with 'shop', which is no column of ids"),
        ({"history": {"price": "item"}}, "DIN: a column is named twice"),
        ({"unit": (0,)}, "DIN needs positive widths, got unit"),
        ({"hidden": (0,)}, "DIN needs positive widths"),
        ({"dim": 0}, "DIN needs positive widths"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        build(**arguments)
