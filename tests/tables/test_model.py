from dataclasses import replace

import pandas as pd
import polars as pl
import pytest
import torch

from transun.backbones import Constant, Trees
from transun.data import Features, Id, OrderLog, Standardised
from transun.heads import Gamma, LogMSE
from transun.metrics import NRMSE, PGR
from transun.models.description import describe_model, write_description
from transun.models.network import Model
from transun.tables import TableModel, embedding_mlp, load, train
from transun.tables.prediction import predict_in_chunks
from transun.training import EMA, Adam, Recipe

LOG = OrderLog(orders=3000, users=30, items=20, history=3)


def frame(start=0, stop=3000):
    x, y, _ = LOG.chunk(start, stop)
    columns = {name: value.numpy() for name, value in x.items() if value.ndim == 1}
    columns["log_price"] = columns["log_price"].astype(float)  # a CSV file holds a float32 as a decimal near it
    history = {f"past_{i}": x["history"][:, i].numpy() for i in range(3)}
    return pd.DataFrame(columns | history | {"gmv": y.numpy()})


TRAIN, TEST = frame(0, 2400), frame(2400, 3000)
RECIPE = Recipe(Adam(0.01), epochs=3, batch_size=128)


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, lambda f: {c: f[c].to_numpy() for c in f}])
def test_any_frame_gives_the_same_model(convert):
    expected = train(TRAIN, "gmv", recipe=RECIPE).predict(TEST)
    assert torch.equal(train(convert(TRAIN), "gmv", recipe=RECIPE).predict(convert(TEST)), expected)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_are_frames(tmp_path, suffix):
    for name, part in (("train", TRAIN), ("test", TEST)):
        path = tmp_path / f"{name}.{suffix}"
        part.to_csv(path, index=False) if suffix == "csv" else part.to_parquet(path)
    trained = train(tmp_path / f"train.{suffix}", "gmv", recipe=RECIPE)
    expected = train(TRAIN, "gmv", recipe=RECIPE).predict(TEST)
    torch.testing.assert_close(trained.predict(tmp_path / f"test.{suffix}"), expected)


def test_learns_and_debiases():
    """Judged by the true mean of the held-out orders, since 600 heavy tails make a noisy total."""
    truth = LOG.truth(2400, 3000)
    recipe = Recipe(Adam(0.01), epochs=3, batch_size=128, averaging=EMA(0.9))
    biased = train(TRAIN, "gmv", LogMSE(), recipe=recipe).predict(TEST)
    debiased = train(TRAIN, "gmv", recipe=recipe).predict(TEST)
    assert PGR(biased, truth) < PGR(debiased, truth) - 0.15
    assert NRMSE(debiased, truth) < NRMSE(biased, truth)
    assert NRMSE(debiased, truth) < 0.7 * NRMSE(torch.full_like(truth, TRAIN["gmv"].mean()), truth)


def test_unseen_ids_other_order_and_further_columns():
    trained = train(TRAIN, "gmv", recipe=RECIPE)
    other = TEST.assign(user=10_000 + TEST["user"], more="x")[["more", *reversed(TEST.columns)]]
    assert trained.predict(other).isfinite().all()
    shuffled = TEST[list(reversed(TEST.columns))].astype({"item": "int32"})
    assert torch.equal(trained.predict(shuffled), trained.predict(TEST))


def test_no_rows_no_predictions():
    assert train(TRAIN, "gmv", recipe=Recipe(epochs=1)).predict(TEST[:0]).shape == (0,)


def test_save_and_load(tmp_path):
    trained = train(TRAIN, "gmv", Gamma(), recipe=RECIPE)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert torch.equal(again.predict(TEST), trained.predict(TEST))
    assert again.target == "gmv"


def test_update_keeps_old_vectors_and_learns_new_ids():
    trained = train(TRAIN, "gmv", recipe=RECIPE, only="network")
    tomorrow = TEST.assign(item=TEST["item"] + 1000)
    unmoved = trained.update(tomorrow, Recipe(Adam(1e-12), epochs=1))
    torch.testing.assert_close(unmoved.predict(TEST), trained.predict(TEST), rtol=1e-4, atol=1e-3)
    assert unmoved.features.ids["item"] > trained.features.ids["item"]
    learned = trained.update(tomorrow, RECIPE)
    assert learned.evaluate(tomorrow, [NRMSE])["NRMSE"] < unmoved.evaluate(tomorrow, [NRMSE])["NRMSE"]


def test_update_leaves_trees_as_they_are():
    pytest.importorskip("sklearn")
    trained = train(TRAIN, "gmv", recipe=replace(RECIPE, budget=5.0))
    trees = [index for index, part in enumerate(trained.model.network.backbones) if isinstance(part, Trees)]
    assert trees
    with pytest.warns(UserWarning, match="trees of this model stay as they are"):
        learned = trained.update(TEST.assign(gmv=10.0 * TEST["gmv"]), RECIPE)
    rows = trained.dataset(TEST)
    before, after = trained.model.eval().raw(rows.x), learned.model.eval().raw(rows.x)
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        assert torch.equal(old, new) == (index in trees)


def test_a_model_of_trees_alone_cannot_be_updated():
    pytest.importorskip("sklearn")
    trained = train(TRAIN, "gmv", only="trees", recipe=Recipe(budget=2.0))
    with pytest.raises(ValueError, match="consists of trees alone"):
        trained.update(TEST)


def test_a_base_is_no_start_of_trees():
    with pytest.raises(ValueError, match="a base is the start of a network"):
        train(TRAIN, "gmv", only="trees", base=Model(Constant(), LogMSE()).prepare(torch.ones(3)))


def test_weights_and_validation():
    weighted = train(TRAIN.assign(w=1.0), "gmv", weight="w", recipe=Recipe(epochs=3, valid_share=0.2, patience=1))
    assert weighted.history.checks
    assert "w" not in weighted.features.columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "gvm"}, "gmv"),
        ({"target": "gmv", "exclude": ("item",), "features": Features({"item": Id()})}, "exclude is for guessed"),
        (
            {"target": "gmv", "features": Features({"gmv": Standardised()})},
            "among the features",
        ),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises((ValueError, KeyError), match=message):
        train(TRAIN, **arguments)


def test_a_model_that_was_never_trained_predicts_nothing():
    features = Features({"item": Id()}).fit(TRAIN)
    model = TableModel(features, Model(embedding_mlp(features), LogMSE()), "gmv")
    for look in (model.predict, model.evaluate, model.with_intervals, lambda rows: [*predict_in_chunks(model, rows)]):
        with pytest.raises(ValueError, match="never trained: fit it first"):
            look(TEST)


@pytest.mark.parametrize("forged", [{"exposure": []}, {"target": None}, {"weight": 3}])
def test_names_of_columns_in_a_folder_are_text(tmp_path, forged):
    train(TRAIN[:200], "gmv", LogMSE(), recipe=Recipe(epochs=1)).save(tmp_path)
    description = describe_model(tmp_path)
    write_description(replace(description, extra=description.extra | forged), tmp_path)
    with pytest.raises(ValueError, match="names no columns of its target, weight and exposure"):
        load(tmp_path)
