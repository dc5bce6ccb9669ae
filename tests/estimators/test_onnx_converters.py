"""An estimator as ONNX predicts as it does in Python, around every booster, on ordinary and extreme rows."""

import importlib
import json

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transun.estimators import (
    BalancedRegressor,
    CorrectedRegressor,
    GTSRegressor,
    MulticalibratedRegressor,
    UnbiasedRegressor,
)
from transun.estimators.balance import Balance
from transun.estimators.gts import RatioGuard
from transun.transforms import Asinh

runtime = pytest.importorskip("onnxruntime")
for library in ("onnx", "onnxscript", "skl2onnx", "onnxmltools"):
    pytest.importorskip(library)

from transun.estimators.onnx_converters import to_onnx  # noqa: E402 - only where skl2onnx is installed

ROWS = 600


def rows(seed, count=ROWS, dtype=np.float32):
    """Trees take float32; linear models take float64, or nothing is left of the digits where their terms cancel."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4)).astype(dtype)
    X[:, 3] = rng.integers(0, 4, count)
    return X, np.exp(0.7 * X[:, 0] + 0.4 * X[:, 1] * rng.normal(size=count) + 0.2 * X[:, 3])


EXTREME = np.array([[1e12] * 4, [-1e12] * 4, [0.0] * 4, [1e-12] * 4], np.float32)


def light(**settings):
    return importlib.import_module("lightgbm").LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, **settings)


def extreme(**settings):
    return importlib.import_module("xgboost").XGBRegressor(n_estimators=20, n_jobs=1, **settings)


def cat(**settings):
    silent = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return importlib.import_module("catboost").CatBoostRegressor(iterations=20, **silent, **settings)


def histogram(**settings):
    return HistGradientBoostingRegressor(max_iter=20, **settings)


def scaled():
    return make_pipeline(StandardScaler(), LinearRegression())


ESTIMATORS = {
    "GTS": lambda booster: GTSRegressor(booster, cv=2, random_state=0),
    "GTS by squares": lambda booster: GTSRegressor(booster, cv=None, emphasis=0.0),
    "unbiased": lambda booster: UnbiasedRegressor(booster, cv=2, budget=6, random_state=0),
    "corrected": lambda booster: CorrectedRegressor(booster, cv=2, random_state=0),
    "isotonic": lambda booster: CorrectedRegressor(booster, bias_correction="isotonic", cv=2, random_state=0),
    "balanced": lambda booster: BalancedRegressor(booster, cv=2, random_state=0),
}
BOOSTERS = {"lightgbm": light, "xgboost": extreme, "catboost": cat, "histogram": histogram, "pipeline": scaled}
# Every estimator around one booster, and every booster inside one estimator.
PAIRS = [*((name, "lightgbm") for name in ESTIMATORS), *(("GTS", name) for name in BOOSTERS if name != "lightgbm")]


def predicted(model, X):
    """Predictions of the ONNX form, and those in Python."""
    session = runtime.InferenceSession(to_onnx(model, X[:1]).SerializeToString())
    (output,) = session.run(None, {session.get_inputs()[0].name: X})
    assert output.shape == (len(X), 1)
    return output[:, 0], model.predict(X)


def compare(model, X):
    made, expected = predicted(model, X)
    # Where a prediction crosses zero, nothing is left to be relative to.
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).mean())


@pytest.mark.parametrize(("estimator", "booster"), PAIRS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # other libraries about each other, and ours about amplification
def test_every_estimator_and_every_booster(estimator, booster):
    if booster in ("lightgbm", "xgboost", "catboost"):
        pytest.importorskip(booster)
    dtype, extremes = (np.float64, EXTREME[2:]) if booster == "pipeline" else (np.float32, EXTREME[:2])
    X, y = rows(0, dtype=dtype)
    model = ESTIMATORS[estimator](BOOSTERS[booster]()).fit(X, y)
    compare(model, np.concatenate([rows(1, dtype=dtype)[0] * 2, extremes, X]))


@pytest.mark.parametrize("kind", [UnbiasedRegressor, GTSRegressor])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_compact_model_and_a_loss_with_a_logarithmic_link(kind):
    X, y = rows(0)
    compact = kind(histogram(), cv=2, random_state=0).fit(X, y).compact(X, y)
    assert compact.regressor.loss == "poisson"
    compare(compact, np.concatenate([rows(1)[0], EXTREME]))


def test_missing_values_go_where_the_trees_send_them():
    X, y = rows(0)
    X[::7, 1] = np.nan
    compare(GTSRegressor(histogram(), cv=2, random_state=0).fit(X, y), X)


def test_targets_of_both_signs():
    X, y = rows(0)
    y = y * np.sign(X[:, 0])
    model = GTSRegressor(histogram(), target_transform=Asinh(), cv=2, random_state=0).fit(X, y)
    compare(model, X)


def test_segments_by_position():
    X, y = rows(0, dtype=np.float64)
    model = BalancedRegressor(scaled(), balance=Balance(by=3), cv=2, random_state=0).fit(X, y)
    assert len(model.balance_.segments) == 4
    new = rows(1, dtype=np.float64)[0]
    new[0, 3] = 17.0  # an unknown segment
    compare(model, new)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pipeline_around_an_estimator():
    X, y = rows(0, dtype=np.float64)
    inside = CorrectedRegressor(scaled(), bias_correction="normal", cv=2, random_state=0)
    compare(make_pipeline(StandardScaler(), inside).fit(X, y), rows(1, dtype=np.float64)[0])


def segmented(seed, count=1_500):
    """Amounts whose level differs by segments of two columns."""
    X, y = rows(seed, count)
    X[:, 1] = np.random.default_rng(seed).choice([10.0, 25.0, 70.0], count)
    return X, y * np.select([X[:, 1] == 10.0, (X[:, 1] == 25.0) & (X[:, 3] > 1)], [0.3, 3.0], 1.0)


@pytest.mark.parametrize("by", [None, [3, 1]])
def test_multicalibration(by):
    X, y = segmented(0)
    flat = histogram(learning_rate=1e-3)  # hardly more than the mean, so that a factor is needed
    model = MulticalibratedRegressor(flat, by=by, cv=2, random_state=0).fit(X, y)
    assert model.ratio_.kept
    new = segmented(1)[0]
    new[:3, 1], new[3:6, 3] = np.nan, 17.0
    compare(model, np.concatenate([new, EXTREME]))


def test_multicalibration_without_a_factor_is_the_regressor():
    X, y = rows(0, 100, np.float64)
    model = MulticalibratedRegressor(scaled(), cv=2, random_state=0).fit(X, y)
    assert not model.ratio_.kept
    compare(model, rows(1, dtype=np.float64)[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_after_a_fit_with_exposures_the_output_is_the_rate_and_says_so():
    X, y = rows(0)
    exposure = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    model = GTSRegressor(histogram(), cv=2, random_state=0).fit(X, y * exposure, exposure=exposure)
    session = runtime.InferenceSession(to_onnx(model, X[:1]).SerializeToString())
    (output,) = session.run(None, {"X": X})
    np.testing.assert_allclose(output[:, 0], model.predict(X, exposure=1.0), rtol=1e-5)
    document = json.loads(session.get_modelmeta().custom_metadata_map["transun"])
    assert "per unit of exposure: multiply it" in document["outputs"][0]["meaning"]
    plain = json.loads(to_onnx(model.fit(X, y), X[:1]).metadata_props[0].value)
    assert plain["outputs"][0]["meaning"] == "an estimate of the mean of the target"


def test_text_segments_are_refused():
    X, y = rows(0, 60)
    model = BalancedRegressor(scaled(), cv=2, random_state=0).fit(X, y)
    segments = {"DE": 1.0, "FR": 2.0}
    object.__setattr__(model.balance_, "segments", segments)
    with pytest.raises(ValueError, match="segment 'DE' is text"):
        model.composition()


def test_the_guard_replaces_the_same_ratios_in_single_precision():
    rng = np.random.default_rng(0)
    slope = rng.choice(np.geomspace(0.01, 1.0, 40), 2000)
    y = rng.lognormal(0.0, 1.0, 2000) / slope
    guard = RatioGuard.learn(slope, y)
    z = y * slope * np.where(rng.random(2000) < 0.3, 50.0, 1.0)
    import torch

    single = guard.formula().float()
    made, replaced = single(torch.from_numpy(z.astype(np.float32)), torch.from_numpy(slope.astype(np.float32)))
    expected, outside = guard.divide(z, slope)
    assert 0.05 < outside.mean() < 0.5
    assert np.array_equal(replaced.numpy(), outside)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)
