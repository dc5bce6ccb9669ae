"""Engines give the same losses and gradients, up to what their precision rounds."""

import pytest
import torch

from transun.backbones import DIN, EmbeddingMLP
from transun.data import Dataset, OrderLog, OrderStream
from transun.heads import LogMSE, LogSUN
from transun.models.network import Model
from transun.training import engine
from transun.training.engine import Compiled, Eager
from transun.training.loop import fit
from transun.training.optimisers import SGD, RowWise
from transun.training.recipe import Recipe, plain_recipe

LOG = OrderLog(orders=4 * 64 + 40, users=900, items=2000, history=3)
DATA = LOG.dataset()
NETWORK = DIN(LOG.sizes, numeric=("log_price",), history={"history": "item"}, dim=4, hidden=(8,), unit=(4,))


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def trained(how, head=LogSUN(shared=1), batch_size=64, resume=None, on_step=None, **settings):
    model = Model(NETWORK, head)
    recipe = plain_recipe(optimiser=RowWise(0.01, SGD(0.01)), batch_size=batch_size, engine=how, **settings)
    return model, fit(model, DATA, recipe, resume=resume, on_step=on_step)


@pytest.fixture
def compile_by(monkeypatch):
    """Puts a function in the place of torch.compile; programs of other tests are not reused."""
    engine._program.cache_clear()
    yield lambda function: monkeypatch.setattr(torch, "compile", function)
    engine._program.cache_clear()


@pytest.fixture
def programs(compile_by):
    """Stand-ins for compiled functions, which only count their calls: what a compiler does is torch's to test."""
    calls = []

    def compile_(function, dynamic, options):
        assert not dynamic

        def run(*arguments):
            calls.append(function.__name__)
            return function(*arguments)

        return run

    compile_by(compile_)
    return calls


def test_eager_is_the_default():
    torch.manual_seed(0)
    model = Model(NETWORK, LogSUN(shared=1))
    fit(model, DATA, plain_recipe(optimiser=RowWise(0.01, SGD(0.01)), batch_size=64))
    assert torch.equal(weights(model), weights(trained(Eager())[0]))


def test_bfloat16_is_near_and_not_the_same():
    model, _ = trained(Eager(), epochs=3)
    exact, rounded = (how.loss_function(model, 64)(DATA.x, DATA.y, None) for how in (Eager(), Eager("bfloat16")))
    assert exact[0] == rounded[0] == ("inner.point", "bias")
    assert exact[1][0] != rounded[1][0]
    assert rounded[1][0].item() == pytest.approx(exact[1][0].item(), rel=2**-7)  # operands are off by 2⁻⁹ at most
    after, _ = trained(Eager("bfloat16"))
    assert all(parameter.dtype == torch.float32 for parameter in after.parameters())


def test_losses_are_computed_in_float32():
    """An estimate of 1000.5 needs more than 8 bits: half precision would call it 1000."""
    terms = Eager("bfloat16").loss_function(model := Model(NETWORK, LogMSE()).prepare(DATA.targets()), 64)
    with torch.no_grad():
        model.network.outputs[0].bias.fill_(0.0)
    y = torch.full((len(DATA.y),), 1000.5)
    names, means = terms(DATA.x, y, None)
    assert dict(zip(names, means.tolist(), strict=True))["point"] == pytest.approx(
        torch.tensor(1001.5).log().item() ** 2, rel=1e-6
    )


def test_a_batch_of_another_size_is_not_compiled(programs):
    trained(Compiled())
    assert programs.count("_raw") == 5  # the comparison with eager gradients, four whole batches; not the rest


def test_tables_are_compiled_once_their_shapes_repeat(programs):
    trained(Compiled(), epochs=2)
    # Two large tables; of each epoch's five batches the first and the last have other shapes than the one before.
    assert programs.count("_pick") == programs.count("_move") == 2 * 2 * 3


def test_compiled_trains_as_eager(programs):
    assert torch.equal(weights(trained(Compiled())[0]), weights(trained(Eager())[0]))


def test_a_compiler_that_loses_gradients_is_found_out(compile_by):
    def forgetful(function, dynamic, options):
        """As torch 2.11 with operations in place: the outputs are right and their gradients zero."""
        return lambda *arguments: type(raw := function(*arguments))(0.0 * output + output.detach() for output in raw)

    compile_by(forgetful)
    with pytest.raises(RuntimeError, match=r"compiles this network wrongly: the gradient of network.* Eager\(\)"):
        trained(Compiled())


def test_a_failing_compiler_is_named(compile_by):
    def broken(function, dynamic, options):
        def run(*arguments):
            raise torch._dynamo.exc.Unsupported("no compiler on this machine")

        return run

    compile_by(broken)
    with pytest.raises(RuntimeError, match=r"cannot be compiled here \(no compiler on this machine\).* Eager\(\)"):
        trained(Compiled())


def test_weights_that_do_not_learn_have_no_gradient_to_compare(compile_by):
    compile_by(lambda function, **_: function)
    model = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), LogSUN())
    data = Dataset({"a": torch.rand(100)}, torch.arange(100.0))
    history = fit(model, data, Recipe(epochs=1, finish=1, engine=Compiled(), batch_size=50), valid=data)
    assert history.finish_kept is not None


@pytest.mark.parametrize("build", [Eager, Compiled])
def test_unknown_precision(build):
    with pytest.raises(ValueError, match="float32, bfloat16, not 'half'"):
        build("half")


def test_another_engine_is_another_run(tmp_path):
    def stop(step):
        raise KeyboardInterrupt

    path = tmp_path / "state.pt"
    with pytest.raises(KeyboardInterrupt):
        trained(Eager("bfloat16"), resume=path, on_step=stop)
    with pytest.raises(ValueError, match="belongs to another run"):
        trained(Eager(), resume=path)


class TestOrderStream:
    def test_rows_are_those_of_the_log_in_order(self):
        x = torch.cat([batch.x["history"] for batch in OrderStream(LOG, start=5, stop=99).batches(10)])
        assert torch.equal(x, DATA.x["history"][5:99])

    def test_every_row_once_whatever_the_seed(self):
        for seed in (0, 1, 12345):
            y = torch.cat([batch.y for batch in OrderStream(LOG, start=3).batches(17, seed=seed)])
            assert torch.equal(y.sort().values, DATA.y[3:].sort().values)
            assert not torch.equal(y, DATA.y[3:])

    def test_features_stay_with_their_target(self):
        batch = next(OrderStream(LOG).batches(len(LOG), seed=4))
        place = {float(y): row for row, y in enumerate(DATA.y)}
        rows = torch.tensor([place[float(y)] for y in batch.y])
        assert all(torch.equal(batch.x[name], DATA.x[name][rows]) for name in DATA.x)

    def test_another_seed_puts_other_rows_together(self):
        first = [set(next(OrderStream(LOG).batches(50, seed=seed)).y.tolist()) for seed in range(6)]
        # 50 of 296 rows: two random halves of the walk share about 9 of them.
        assert max(len(a & b) for i, a in enumerate(first) for b in first[:i]) < 40

    def test_blocks_do_not_show(self, monkeypatch):
        whole = [batch.y for batch in OrderStream(LOG).batches(32, seed=1)]
        monkeypatch.setattr("transun.data.simulated._CPU_BLOCK", 64)
        assert all(map(torch.equal, whole, [batch.y for batch in OrderStream(LOG).batches(32, seed=1)]))

    @pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 5), (0, 10_000)])
    def test_rows_outside_the_log(self, start, stop):
        with pytest.raises(ValueError, match="not a part of the 296 orders"):
            OrderStream(LOG, start=start, stop=stop)

    def test_empty_batches(self):
        with pytest.raises(ValueError, match="at least one row"):
            OrderStream(LOG).batches(0)
