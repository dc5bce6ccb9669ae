"""SHAP values add up to the prediction, and are those of shap and of the closed form where there is one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from transun import Features, Id, LogSUN, Number, Recipe, train
from transun.estimators import GTSRegressor, explain

shap = pytest.importorskip("shap", reason="the extra `shap` is not installed")


def rows(seed, count, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, columns)).astype(np.float32)
    return X, np.exp(0.7 * X[:, 0] - 0.3 * X[:, 1] * X[:, 2] + rng.normal(size=count))


def sums(explained):
    return explained.base_values + explained.values.sum(1)


def test_a_line_has_the_values_of_the_closed_form_and_of_shap():
    X, y = rows(0, 200)
    model = LinearRegression().fit(X, y)
    new, background = X[:7].astype(float), X[50:80].astype(float)
    explained = explain(model.predict, new, background)
    expected = model.coef_ * (new - background.mean(0))
    np.testing.assert_allclose(explained.values, expected, atol=1e-6 * np.abs(expected).max())
    own = shap.LinearExplainer(model, shap.maskers.Independent(background))(new)
    np.testing.assert_allclose(explained.values, own.values, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(explained.base_values, own.base_values, rtol=1e-6)
    assert explained.feature_names == ["x0", "x1", "x2"]


@pytest.mark.parametrize("columns", [3, 12], ids=["all orders", "some orders"])
@pytest.mark.filterwarnings("ignore::transun.estimators.AmplificationWarning")
def test_values_add_up_to_the_prediction(columns):
    X, y = rows(0, 400, columns)
    model = GTSRegressor(HistGradientBoostingRegressor(max_iter=10), cv=2, random_state=0).fit(X, y)
    explained = explain(model.predict, X[:3], X[100:110])
    np.testing.assert_allclose(sums(explained), model.predict(X[:3]), rtol=1e-6)
    np.testing.assert_allclose(explained.base_values, model.predict(X[100:110]).mean(), rtol=1e-6)
    # Columns without an effect have no value, whatever the other columns are.
    assert columns == 3 or np.abs(explained.values[:, 0]).max() > np.abs(explained.values[:, 3:]).max()


@pytest.mark.filterwarnings("ignore::transun.estimators.AmplificationWarning")
def test_through_onnx():
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    from transun.estimators import to_onnx

    X, y = rows(0, 400)
    model = GTSRegressor(HistGradientBoostingRegressor(max_iter=10), cv=2, random_state=0).fit(X, y)
    session = runtime.InferenceSession(to_onnx(model, X[:1]).SerializeToString())
    fast = explain(lambda part: session.run(None, {"X": part})[0], X[:5], X[100:120])
    slow = explain(model.predict, X[:5], X[100:120])
    np.testing.assert_allclose(sums(fast), session.run(None, {"X": X[:5]})[0][:, 0], rtol=1e-6)
    np.testing.assert_allclose(fast.values, slow.values, atol=1e-5 * np.abs(slow.values).max())


@pytest.mark.parametrize("form", [dict, pd.DataFrame])
def test_columns_of_any_type_of_a_table_model(form):
    rng = np.random.default_rng(0)
    shop = rng.choice(["a", "b"], 300)
    data = {"shop": shop, "price": rng.lognormal(size=300), "gmv": np.where(shop == "a", 1.0, 5.0)}
    features = Features({"shop": Id(), "price": Number()})
    model = train(data, "gmv", LogSUN(), features=features, recipe=Recipe(epochs=3), progress=False)
    few = form({"shop": np.array(["a", "b"]), "price": np.array([1.0, 2.0])})
    background = form({name: values[:20] for name, values in data.items() if name != "gmv"})
    explained = explain(model.predict, few, background)
    np.testing.assert_allclose(sums(explained), model.predict(few).numpy(), rtol=1e-5)  # predictions in float32
    assert explained.feature_names == ["shop", "price"]
    assert explained.data.tolist() == [["a", 1.0], ["b", 2.0]]


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="X has the columns a, and the background b"):
        explain(len, {"a": [1.0]}, {"b": [1.0]})
    with pytest.raises(ValueError, match="at least one column, one row in X"):
        explain(len, np.ones((2, 2)), np.ones((0, 2)))
    with pytest.raises(ValueError, match=r"got shape \(2,\)"):
        explain(len, np.ones(2), np.ones(2))
