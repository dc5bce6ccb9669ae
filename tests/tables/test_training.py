"""Rows held out stay unseen, looks are those of the validation rows, and an interruption changes nothing."""

import numpy as np
import pytest
import torch

from transun import Dataset, Features, Id, LogSUN, Model, TableModel, embedding_mlp
from transun.metrics import NRMSE, PGR
from transun.tables import training as heldout
from transun.tables.training import Settings, hold_out, slopes, train_watched

pytest.importorskip("pyarrow")


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 5, rows)
    return {"item": item, "gmv": (1.0 + item) * rng.lognormal(0.0, 0.5, rows)}


def untrained(data):
    features = Features({"item": Id()}).fit(data)
    return TableModel(features, Model(embedding_mlp(features), LogSUN()), "gmv")


def test_no_row_is_on_both_sides():
    data = {"row": np.arange(1000), "gmv": np.ones(1000)}
    rest, test = hold_out(data, Settings(test_share=0.25))
    both = [*rest["row"].to_pylist(), *test["row"].to_pylist()]
    assert sorted(both) == list(range(1000))
    # Binomial with standard deviation 13.7.
    assert abs(len(test) - 250) < 55
    again = hold_out(data, Settings(test_share=0.25))[1]
    assert again.equals(test)
    assert not hold_out(data, Settings(test_share=0.25, seed=1))[1].equals(test)


@pytest.mark.parametrize(
    "wrong", [{"valid_share": 1.0}, {"valid_share": -0.1}, {"test_share": 0.0}, {"test_share": 1.0}, {"rate": 0.0}]
)
def test_impossible_settings(wrong):
    with pytest.raises(ValueError, match="must"):
        Settings(**wrong)


def test_the_last_look_is_at_the_weights_that_are_kept():
    """With one step the average is that step's weights: metrics of the validation rows must agree."""
    data, settings = table(), Settings(epochs=1, batch_size=400)
    training = train_watched(untrained(data), data, settings, progress=False)
    _, valid = training.model.dataset(data).split(1.0 - settings.valid_share, settings.seed)
    pred = training.model.model(valid.x).detach()
    (look,) = training.looks
    assert look.values == pytest.approx({"NRMSE": NRMSE(pred, valid.y), "PGR": PGR(pred, valid.y)})
    assert training.rows + training.valid_rows == 400
    assert training.valid_rows == len(valid)


def test_without_validation_rows_there_are_no_looks():
    data = table()
    training = train_watched(untrained(data), data, Settings(epochs=2, valid_share=0.0), progress=False)
    assert training.looks == ()
    assert training.rows == 400


def test_interrupted_and_resumed_is_the_same(tmp_path, monkeypatch):
    data, settings = table(), Settings(epochs=3, batch_size=32)
    straight = train_watched(untrained(data), data, settings, progress=False)
    journal, look, calls = tmp_path / "training.pt", heldout._Watch.__call__, []

    def stop(self, step):
        look(self, step)
        calls.append(step.step)
        if step.step == 15 and calls.count(15) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(heldout._Watch, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        train_watched(untrained(data), data, settings, journal=journal, progress=False)
    assert journal.exists()
    resumed = train_watched(untrained(data), data, settings, journal=journal, progress=False)
    assert min(calls[calls.index(15) + 1 :]) == 16
    for name, value in straight.model.model.state_dict().items():
        assert torch.equal(value, resumed.model.model.state_dict()[name]), name
    assert resumed.looks == straight.looks
    assert list(tmp_path.iterdir()) == []


def test_the_slope_is_kappa():
    """κ = 1 / (|T⁻¹(u)| + 1) for LogSUN; a plain head has none."""
    data = Dataset({"a": torch.linspace(-1, 1, 7)}, torch.rand(7) * 9)
    from transun import MSE, EmbeddingMLP

    model = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), LogSUN()).prepare(data.targets())
    expected = 1.0 / (model.head.undebiased(model.raw(data.x)) + 1.0)
    torch.testing.assert_close(slopes(model, data), expected.detach())
    assert slopes(Model(EmbeddingMLP(numeric=("a",)), MSE()).prepare(data.targets()), data) is None
