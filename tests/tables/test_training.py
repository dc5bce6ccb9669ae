"""Test rows stay unseen, checks are of the validation rows, and an interruption changes nothing."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from transun import MSE, Adam, AutoSUN, Buckets, Features, Id, LogSUN, Recipe, read_table
from transun.metrics import PGR, RMSE
from transun.metrics.metric import SampleMetric
from transun.support.text_form import dumps
from transun.tables.graph_export import export
from transun.tables.model import embedding_mlp, load
from transun.tables.training import hold_out, train
from transun.training.early_stopping import EarlyStopping

pytest.importorskip("pyarrow")


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 5, rows)
    return {"item": item, "gmv": (1.0 + item) * rng.lognormal(0.0, 0.5, rows)}


FEATURES = Features({"item": Id()})


def test_numbers_keep_the_tail_that_buckets_lose():
    """y = v · noise, v lognormal(0, 2): the highest of 32 buckets holds v from 41 to thousands, and most of the sum."""

    def orders(seed):
        rng = np.random.default_rng(seed)
        v = rng.lognormal(0.0, 2.0, 4000)
        return {"v": v, "y": v * rng.lognormal(-0.125, 0.5, 4000)}  # the noise has mean 1

    def nrmse(features):
        recipe, backbone = Recipe(Adam(1e-3), epochs=20), embedding_mlp
        model = train(orders(0), "y", AutoSUN(), features=features, backbone=backbone, recipe=recipe, progress=False)
        rows = orders(1)
        error = model.predict({"v": rows["v"]}).numpy() - rows["v"]
        return np.sqrt(np.mean(error**2)) / rows["v"].mean()

    assert nrmse(None) < 0.5 * nrmse(Features({"v": Buckets()}))


def test_no_row_is_on_both_sides():
    data = read_table({"row": np.arange(1000), "gmv": np.ones(1000)})
    rest, test = hold_out(data, 0.25, seed=0)
    both = [*rest["row"].to_pylist(), *test["row"].to_pylist()]
    assert sorted(both) == list(range(1000))
    # Binomial with standard deviation 13.7.
    assert abs(len(test) - 250) < 55
    assert hold_out(data, 0.25, seed=0)[1].equals(test)
    assert not hold_out(data, 0.25, seed=1)[1].equals(test)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2])
def test_impossible_test_shares(share):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        hold_out(read_table(table()), share, seed=0)


def test_the_last_check_is_of_the_weights_that_are_kept():
    """With one step the average is that step's weights: metrics of the validation rows must agree."""
    data, recipe = table(), Recipe(epochs=1, batch_size=400)
    model = train(data, "gmv", LogSUN(), features=FEATURES, recipe=recipe, progress=False)
    _, valid = model.dataset(data).split(1.0 - recipe.valid_share, recipe.seed)
    pred = model.model(valid.x).detach()
    (check,) = model.history.checks
    expected = {metric.name: metric(pred, valid.y) for metric in (RMSE, PGR)}
    assert check.values == pytest.approx(expected)
    assert model.history.train_rows + model.history.valid_rows == 400
    assert model.history.valid_rows == len(valid)


def test_without_a_validation_share_there_are_no_checks():
    model = train(table(), "gmv", LogSUN(), recipe=Recipe(epochs=2, valid_share=0.0), progress=False)
    assert model.history.checks == []
    assert model.history.train_rows == 400


def test_validation_rows_can_be_given():
    model = train(table(), "gmv", LogSUN(), valid=table(100, seed=1), recipe=Recipe(epochs=2), progress=False)
    assert (model.history.train_rows, model.history.valid_rows) == (400, 100)


def test_a_table_too_small_for_validation_rows_trains_on_all():
    model = train({"item": ["a", "b"], "gmv": [1.0, 9.0]}, "gmv", MSE(), recipe=Recipe(epochs=1), progress=False)
    assert (model.history.train_rows, model.history.valid_rows) == (2, 0)


def test_any_metric_can_be_the_monitor():
    """A metric that nobody in the package knows decides which weights are kept."""

    class Largest(SampleMetric):
        label, better = "LARGEST", "lower"

        def evaluate(self, rows):
            return float(rows.pred.max())

    recipe = Recipe(epochs=4, monitor=dataclass(frozen=True)(Largest)(), patience=None)
    history = train(table(), "gmv", LogSUN(), recipe=recipe, progress=False).history
    assert history.best.values["LARGEST"] == min(check.values["LARGEST"] for check in history.checks)


def test_signed_targets_get_a_head_that_can_learn_them():
    data = table() | {"gmv": table()["gmv"] - 4.0}
    model = train(data, "gmv", recipe=Recipe(epochs=2), progress=False)
    assert "Asinh" in dumps(model.model.head)


def test_interrupted_and_resumed_is_the_same(tmp_path, monkeypatch):
    data, recipe = table(), Recipe(epochs=3, batch_size=32, balance=True)
    straight = train(data, "gmv", LogSUN(), recipe=recipe, progress=False)
    path, check, steps = tmp_path / "training.pt", EarlyStopping.check, []

    def stop(self, step):
        steps.append(step)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return check(self, step)

    monkeypatch.setattr(EarlyStopping, "check", stop)
    with pytest.raises(KeyboardInterrupt):
        train(data, "gmv", LogSUN(), recipe=recipe, resume=path, progress=False)
    assert path.exists()
    resumed = train(data, "gmv", LogSUN(), recipe=recipe, resume=path, progress=False)
    for name, value in straight.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert list(tmp_path.iterdir()) == []


class TestCalibrationShare:
    def rows(self, n, seed):
        """A network of one epoch knows little of these segments."""
        rng = np.random.default_rng(seed)
        country, size = rng.choice(["FR", "IT"], n), rng.choice(["small", "large"], n)
        wrong = np.where(country == "FR", 0.5, np.where(size == "small", 2.0, 1.0))
        return {"country": country, "size": size, "y": 10.0 * wrong * rng.gamma(4.0, 0.25, n)}

    def test_totals_of_segments_are_put_right_and_saved(self, tmp_path):
        table, fresh = self.rows(3_000, 0), self.rows(6_000, 1)
        recipe = Recipe(epochs=1, calibration_share=0.5, balance=False, averaging=None)
        model = train(table, "y", "Scaled(Poisson())", recipe=recipe, progress=False)
        assert model.history.multicalibration.startswith("multicalibrated by 1,"), model.history.multicalibration
        pred = model.predict(fresh).numpy()
        for country in ("FR", "IT"):
            for size in ("small", "large"):
                inside = (fresh["country"] == country) & (fresh["size"] == size)
                # 375 and 1,500 rows of a coefficient of variation of ½: 2.6 % and 1.3 %.
                assert pred[inside].sum() / fresh["y"][inside].sum() == pytest.approx(1.0, abs=0.15)
        model.save(tmp_path / "model")
        assert (load(tmp_path / "model").predict(fresh).numpy() == pred).all()
        exported = export(model, tmp_path / "model.pt2")
        assert exported.difference < 1e-4

    def test_signed_targets_are_refused_before_training(self):
        table = {"a": [0.0, 1.0] * 20, "y": [-1.0, 2.0] * 20}
        with pytest.raises(ValueError, match="column 'y' has targets below 0: leave out the calibration share"):
            train(table, "y", recipe=Recipe(calibration_share=0.2))
