"""Intervals of rows beside a saved model: they come back with it, and belong to it alone."""

import json

import numpy as np
import pytest
import torch

from transun import MSE, load, train


def table(rows, seed):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 3, rows)
    return {"item": item.astype(str), "gmv": (1.0 + item) * rng.lognormal(0.0, 0.7, rows)}


@pytest.fixture(scope="module")
def model():
    return train(table(300, 0), "gmv", MSE()).with_intervals(table(400, 1))


def test_they_are_saved_and_loaded(model, tmp_path):
    model.save(tmp_path)
    rows = {"item": ["0", "1", "2"]}
    torch.testing.assert_close(load(tmp_path).predict_interval(rows, 0.8), model.predict_interval(rows, 0.8))


def test_they_hold_for_rows_like_those_they_were_learned_from(model):
    rows = table(3000, 2)
    low, high = model.predict_interval(rows, 0.9).T
    y = torch.tensor(rows["gmv"])
    # 400 rows to learn from: 90 % is known to 1.6 points.
    assert float(((low <= y) & (y <= high)).double().mean()) == pytest.approx(0.9, abs=4 * 0.016)


def test_training_rows_are_refused(model):
    with pytest.raises(ValueError, match="these are training rows"):
        model.with_intervals(table(300, 0))


def test_without_them_the_way_to_them_is_named(tmp_path):
    bare = train(table(300, 0), "gmv", MSE())
    with pytest.raises(ValueError, match="with_intervals"):
        bare.predict_interval(table(3, 1))
    bare.save(tmp_path)
    assert load(tmp_path).intervals is None


def test_another_model_in_the_folder_does_not_inherit_them(model, tmp_path):
    model.save(tmp_path)
    kept = (tmp_path / "intervals.json").read_text()
    train(table(300, 5), "gmv", MSE()).save(tmp_path)
    assert not (tmp_path / "intervals.json").exists()
    (tmp_path / "intervals.json").write_text(kept)
    assert load(tmp_path).intervals is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"checksum": 1, "intervals": {}}'])
def test_damage_is_named(model, tmp_path, text):
    model.save(tmp_path)
    (tmp_path / "intervals.json").write_text(text)
    with pytest.raises(ValueError, match=r"intervals\.json is damaged"):
        load(tmp_path)


def test_a_change_is_noticed(model, tmp_path):
    model.save(tmp_path)
    content = json.loads((tmp_path / "intervals.json").read_text())
    content["intervals"]["least"] = 1.0
    (tmp_path / "intervals.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="changed after it was written"):
        load(tmp_path)
