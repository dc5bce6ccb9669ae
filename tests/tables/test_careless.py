"""Arguments of the wrong kind, given in Python: each is told in one sentence, before any work."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from transun import NetworkRegressor, Recipe, train
from transun.backbones import EmbeddingMLP, Trees
from transun.data import HoldOutRows, Id, infer, read_table
from transun.data.fingerprint import fingerprint
from transun.diagnosis.evaluation import evaluate_model
from transun.diagnosis.run import diagnose_table
from transun.experiments.user_log import LogColumns
from transun.heads import MSE, Ranked
from transun.models.network import Model
from transun.tables.folder import survey_folder
from transun.tables.prediction import predict_in_chunks
from transun.tables.training import hold_out
from transun.totals import total
from transun.training.loop import fit
from transun.watching.reading import WatchColumns

TABLE = {"u": ["a", "b"] * 20, "v": ["c", "d"] * 20, "gmv": [1.0, 3.0] * 20, "p": [2.0] * 40}


@pytest.fixture(scope="module")
def model():
    return train(TABLE, "gmv", MSE(), exclude=["p"], recipe=Recipe(epochs=1), progress=False)


TEXTS = {
    "train": ("exclude", lambda model: train(TABLE, "gmv", exclude="uv")),
    "infer": ("exclude", lambda model: infer(TABLE, "gmv", exclude="uv")),
    "survey_folder": ("exclude", lambda model: survey_folder("nowhere", "gmv", exclude="uv")),
    "survey_folder, keep": ("keep", lambda model: survey_folder("nowhere", "gmv", keep="uv")),
    "read_table": ("columns", lambda model: read_table(TABLE, "uv")),
    "fingerprint": ("columns", lambda model: fingerprint(TABLE, "uv")),
    "diagnose_table": ("by", lambda model: diagnose_table(TABLE, "gmv", "p", "uv")),
    "evaluate_model": ("by", lambda model: evaluate_model(model, TABLE, "uv")),
    "total": ("by", lambda model: total(model, TABLE, TABLE, by="uv")),
    "predict_in_chunks": ("keep", lambda model: list(predict_in_chunks(model, TABLE, keep="uv"))),
    "LogColumns": ("by", lambda model: LogColumns("user", "value", by="uv")),
    "WatchColumns": ("by", lambda model: WatchColumns("day", "id", "p", "gmv", by="uv")),
    "Ranked": ("on", lambda model: Ranked(MSE(), on="uv")),
    "EmbeddingMLP": ("numeric", lambda model: EmbeddingMLP(numeric="uv")),
    "Trees": ("numeric", lambda model: Trees(numeric="uv")),
}


@pytest.mark.parametrize(("argument", "call"), TEXTS.values(), ids=TEXTS)
def test_a_text_is_no_list_of_names(model, argument, call):
    """The table has columns u and v, which a text that is read letter by letter would name."""
    with pytest.raises(TypeError, match=rf"^{argument} lists names and is the text 'uv': write {argument}=\['uv'\]$"):
        call(model)


KINDS = {
    "recipe": (
        lambda model: train(TABLE, "gmv", recipe={}),
        "recipe is a dict, where a Recipe is meant: write recipe=",
    ),
    "no recipe": (lambda model: train(TABLE, "gmv", recipe=None), "recipe is a NoneType, where a Recipe is meant"),
    "recipe of update": (lambda model: model.update(TABLE, {}), "recipe is a dict, where a Recipe is meant"),
    "recipe of an estimator": (
        lambda model: NetworkRegressor(recipe={}).fit([[1.0]] * 20, [1.0] * 20),
        "recipe is a dict, where a Recipe is meant",
    ),
    "recipe of fit": (lambda model: fit(model.model, model.dataset(TABLE), {}), "recipe is a dict"),
    "by": (lambda model: train(TABLE, "gmv", by="time:x"), r"by is a str, where a HoldOut is meant: .* HoldOutTime"),
    "class": (lambda model: train(TABLE, "gmv", by=HoldOutRows), "by is the class HoldOutRows, where a HoldOut is"),
    "by of hold_out": (lambda model: hold_out(TABLE, 0.2, 0, "time:x"), "by is a str, where a HoldOut is meant"),
    "base": (
        lambda model: train(TABLE, "gmv", base=model),
        r"base is a TableModel, .* give the \.model of a Table",
    ),
    "base of fit": (
        lambda model: fit(Model(model.model.backbone, MSE()), model.dataset(TABLE), base=model),
        "base is a TableModel, where a Model is meant",
    ),
    "backbone": (lambda model: train(TABLE, "gmv", backbone="tabm"), "backbone is 'tabm', .*: write backbone=tabm"),
    "features": (
        lambda model: train(TABLE, "gmv", features={"u": Id()}),
        r"features is a dict, where a Features is meant: write features=Features\(",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), KINDS.values(), ids=KINDS)
def test_an_argument_of_another_kind_is_told_by_its_name(model, call, sentence):
    with pytest.raises(TypeError, match=f"^{sentence}"):
        call(model)


@pytest.mark.parametrize(
    "column", [pd.Series([1.0, 2.0], name="u"), pl.Series("u", [1.0, 2.0]), pa.chunked_array([[1.0, 2.0]])]
)
def test_a_column_is_no_table(column):
    with pytest.raises(TypeError, match=r"^cannot read a table from a \w+, which is one column without the others: "):
        read_table(column)
    assert read_table({"u": column})["u"].to_pylist() == [1.0, 2.0]


def test_lists_and_tuples_and_generators_name_columns():
    for names in (["u"], ("u",), iter(["u"])):
        assert infer(TABLE, "gmv", exclude=names).sources == ("v",)
