"""Row-wise training against Adagrad written out over whole tables, and the rows that it must leave alone."""

import pytest
import torch

from transun import training
from transun.backbones import DIN, Constant, EmbeddingMLP, TabM
from transun.data import Dataset, OrderLog
from transun.heads import MSE, LogMSE, LogSUN
from transun.models.network import Model
from transun.support.text_form import dumps, parse
from transun.training.averaging import EMA, Average, Tail
from transun.training.loop import fit
from transun.training.optimisers import SGD, Adam, RowWise
from transun.training.recipe import plain_recipe

# More items than a batch of 64 rows looks up, fewer hours: one table is gathered, the other stands as it is.
LOG = OrderLog(orders=1500, users=900, items=2000, history=4)
DATA = LOG.dataset()
MLP = EmbeddingMLP(LOG.sizes, {"history": "item"}, ("log_price",), dim=4, hidden=(16, 8))
# What lies outside of [0, 1] counts as 0 or 1: the price is a rank well enough.
ATTENTION = DIN(LOG.sizes, ranks=("log_price",), history={"history": "item"}, dim=4, hidden=(16,), unit=(8,), bins=4)
MEMBERS = TabM(LOG.sizes, {"history": "item"}, ("log_price",), dim=4, hidden=(16, 8), dropout=0.0, members=3)


def tables(model):
    return [module.weight for module in model.modules() if isinstance(module, torch.nn.Embedding)]


def by_hand(model, rate, dense, batches, clip=None):
    """Row-wise Adagrad with the gradient of every whole table."""
    whole = tables(model)
    stepper = torch.optim.SGD([p for p in model.parameters() if all(p is not t for t in whole)], dense)
    squares = [torch.zeros(len(table)).to(table) for table in whole]
    model.train()
    for rows in batches:
        model.zero_grad()
        sum(term.mean() for term in model.loss(rows.x, rows.y).values()).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        stepper.step()
        with torch.no_grad():
            for table, total in zip(whole, squares, strict=True):
                total += table.grad.square().mean(1)
                seen = total > 0
                table[seen] -= rate * table.grad[seen] / (total[seen].sqrt() + 1e-10).unsqueeze(1)


@pytest.mark.parametrize("network", [MLP, ATTENTION, MEMBERS], ids=["EmbeddingMLP", "DIN", "TabM"])
@pytest.mark.parametrize("head", [LogMSE(), LogSUN(), LogSUN(shared=1)], ids=dumps)
@pytest.mark.parametrize("clip", [None, 0.5])
def test_equals_adagrad_of_rows_written_out(network, head, clip):
    # In float64: the first step of a row has the length of the rate however small its gradient, rounding included.
    models = [Model(network, head).prepare(DATA.targets()).double() for _ in range(2)]
    fit(models[0], DATA, plain_recipe(optimiser=RowWise(0.05, dense=SGD(0.01)), batch_size=64, clip=clip, seed=0))
    by_hand(models[1], 0.05, 0.01, DATA.batches(64, seed=0), clip)
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-8)


def test_one_row_named_by_several_columns_moves_once_with_the_sum():
    """ŷ = the mean of an id's and a bag's vector: by hand, with the same item in both and twice in the bag."""
    network = EmbeddingMLP({"item": 50}, {"bag": "item"}, dim=1, hidden=(1,))
    x = {"item": torch.tensor([7]), "bag": torch.tensor([[7, 7, 3, -1]])}
    models = [Model(network, MSE()).prepare(torch.tensor([1.0])) for _ in range(2)]
    for model in models:
        with torch.no_grad():
            model.network.outputs[0].weight.fill_(1.0)
            model.network.stacks[0][1][0].weight.fill_(1.0)
            tables(model)[0].abs_()
    fit(models[0], Dataset(x, [9.0]), plain_recipe(optimiser=RowWise(0.5, dense=SGD(1e-9))))
    by_hand(models[1], 0.5, 1e-9, Dataset(x, [9.0]).batches(1))
    torch.testing.assert_close(*(tables(model)[0] for model in models))
    before = Model(network, MSE()).prepare(torch.tensor([1.0]))
    moved = (tables(models[0])[0] - tables(before)[0].abs()).abs().squeeze(1)
    # The first step of a row of one number is the rate, whatever its gradient.
    assert moved[[7, 3]].tolist() == pytest.approx([0.5, 0.5], rel=1e-5)
    assert moved.nonzero().flatten().tolist() == [3, 7]


def test_rows_that_no_batch_names_keep_their_bits_and_have_no_gradient():
    model = Model(MLP, LogSUN(shared=1))
    before = [table.detach().clone() for table in tables(model)]
    few = DATA.take(range(30))
    fit(model, few, plain_recipe(optimiser=RowWise(), epochs=3))
    for name, table, old in zip(LOG.sizes, tables(model), before, strict=True):
        named = few.x[name] if name != "item" else torch.cat([few.x["item"], few.x["history"].flatten()])
        still = torch.ones(len(table), dtype=torch.bool)
        still[named[named >= 0]] = False
        assert torch.equal(table[still], old[still])
        if name in ("user", "item"):
            assert table.grad is None  # a whole table's gradient was never made
            assert not torch.equal(table, old)


def test_memory_of_a_step_does_not_grow_with_the_table():
    """No tensor made during a step has more rows than the batch has look-ups."""
    size, rows = 100_000, 8
    network = EmbeddingMLP({"item": size}, dim=2, hidden=(4,))
    model = Model(network, LogMSE()).prepare(torch.ones(3))
    stepper = RowWise().on(model)
    made = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            given = [*args, *(kwargs or {}).values()]
            old = {value.untyped_storage().data_ptr() for value in given if isinstance(value, torch.Tensor)}
            if isinstance(out, torch.Tensor) and out.untyped_storage().data_ptr() not in old:
                made.append(out.numel())
            return out

    with Watch():
        with stepper.batch_view({"item": torch.arange(rows)}) as x:
            model.loss(x, torch.arange(1.0, rows + 1))["point"].mean().backward()
        stepper.step()
    assert made
    assert max(made) <= 4 * rows


@pytest.mark.parametrize("averaging", [EMA(0.9), Tail(0.3)], ids=repr)
def test_average_of_rows_is_the_average_of_whole_tables(averaging):
    """Every step's weights, averaged afterwards by the formula."""
    model, seen = Model(MLP, LogSUN(shared=1)), []
    fit(
        model,
        DATA,
        plain_recipe(optimiser=RowWise(0.05), batch_size=64),
        on_step=lambda _: seen.append([*map(copy, tables(model))]),
    )
    averages = seen[0]
    for step, present in enumerate(seen):
        weight = averaging.weight(step, len(seen))
        averages = [old + weight * (new - old) for old, new in zip(averages, present, strict=True)]
    averaged = Model(MLP, LogSUN(shared=1))
    fit(averaged, DATA, plain_recipe(optimiser=RowWise(0.05), batch_size=64, averaging=averaging))
    for one, other in zip(tables(averaged), averages, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-6)


def copy(table):
    return table.detach().double().clone()


def test_average_that_is_looked_at_goes_on_the_same():
    """Validation swaps the average in and out; what comes out at the end must not depend on it."""
    plain, checked = (Model(MLP, LogMSE()) for _ in range(2))
    plan = {"optimiser": RowWise(0.05), "batch_size": 64, "averaging": EMA(0.9)}
    fit(plain, DATA, plain_recipe(**plan))
    history = fit(checked, DATA, plain_recipe(**plan, checks_per_epoch=3), valid=DATA)
    assert history.best.step == history.checks[-1].step  # else the best weights are others
    for one, other in zip(tables(plain), tables(checked), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_average_of_a_still_row_fades_into_the_row():
    table = torch.nn.Embedding(3, 1)
    torch.nn.init.zeros_(table.weight)
    average = Average(table, [table.weight])
    average.catch_up(table.weight, torch.tensor([1]))
    with torch.no_grad():
        table.weight[1] = 8.0
    for _ in range(3):
        average.update(0.5)  # 4, 6, 7
    assert average.values[0].flatten().tolist() == [0.0, 7.0, 0.0]


def test_network_without_tables_is_trained_by_the_dense_optimiser():
    data = Dataset({"a": torch.zeros(40)}, torch.arange(40.0))
    models = [Model(Constant(), MSE()) for _ in range(2)]
    for model, optimiser in zip(models, (RowWise(dense=Adam(0.1)), Adam(0.1)), strict=True):
        fit(model, data, plain_recipe(optimiser=optimiser, batch_size=4))
    assert torch.equal(models[0].network.outputs[0].bias, models[1].network.outputs[0].bias)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("item", 2000, r"'item' holds id 2000, but its table has ids 0..1999"),
        ("history", 5000, "'history' holds id 5000"),
    ],
)
def test_an_id_without_a_row_is_named(column, value, message):
    x = {name: values.clone() for name, values in DATA.x.items()}
    x[column].view(-1)[0] = value
    model = Model(MLP, LogMSE())
    with pytest.raises(IndexError, match=message):
        fit(model, Dataset(x, DATA.y), plain_recipe(optimiser=RowWise(), batch_size=32))
    assert [len(table) for table in tables(model)] == list(LOG.sizes.values())  # the whole tables are back


def test_columns_that_read_one_table_in_one_part_and_two_in_another_are_refused():
    parts = torch.nn.ModuleList([_reader({"item": 9}), _reader({"item": 10})])
    with pytest.raises(ValueError, match="column 'item' reads tables of different sizes"):
        RowWise().on(parts)


def _reader(sizes):
    return EmbeddingMLP(sizes, dim=1, hidden=(1,)).stages()[0]()


def test_text_form():
    optimiser = RowWise(0.05, dense=SGD(0.1, momentum=0.9))
    assert dumps(optimiser) == "RowWise(0.05, SGD(0.1, 0.9))"
    assert parse(dumps(optimiser), vars(training)) == optimiser


def test_parameters_alone_are_refused():
    with pytest.raises(ValueError, match="must know which columns read which table"):
        RowWise().build([torch.nn.Parameter(torch.zeros(1))])


def test_decay_scales_both_rates():
    model = Model(MLP, LogMSE())
    stepper = RowWise(0.5, dense=SGD(0.1)).on(model)
    stepper.scale_rates(0.5)
    assert stepper.dense.param_groups[0]["lr"] == 0.05
    with stepper.batch_view(DATA.x) as x:
        model.loss(x, DATA.y)["point"].mean().backward()
    before = tables(model)[0].detach().clone()
    stepper.step()
    first = (tables(model)[0] - before).square().mean(1).sqrt()
    assert first[first > 0].tolist() == pytest.approx([0.25] * int((first > 0).sum()), rel=1e-3)
