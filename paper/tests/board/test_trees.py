import json
from functools import partial

import numpy as np
import pytest

from transun_paper.board.frames import Frames
from transun_paper.board.methods import METHODS
from transun_paper.board.trees import (
    CatBoost,
    ConstantRate,
    DefaultLightGBM,
    HistGradientBoosting,
    LightGBM,
    TunedCatBoost,
    TunedLightGBM,
    TunedXGBoost,
    WrappedLightGBM,
    XGBoost,
    rmse,
)

LEARNERS = [
    DefaultLightGBM("m"),
    LightGBM("m", "poisson"),
    LightGBM("m", "poisson", refit=True),
    LightGBM("m", "tweedie"),
    LightGBM("m", "regression"),
    TunedLightGBM("m", trials=2),
    XGBoost("m", "count:poisson"),
    XGBoost("m", "reg:tweedie"),
    CatBoost("m", "Poisson"),
    CatBoost("m", "Tweedie:variance_power=1.5"),
    TunedXGBoost("m", trials=2),
    TunedCatBoost("m", trials=2),
    HistGradientBoosting("m"),
    WrappedLightGBM("m", "GTSRegressor"),
]
SEARCHES = [TunedLightGBM, TunedXGBoost, TunedCatBoost]


def test_a_constant_rate_is_the_total_over_the_exposure(split):
    exposure = {part: np.array(getattr(split, part)["exposure"]) for part in ("train", "valid", "test")}
    rate = split.y_train.sum() / exposure["train"].sum()
    result = ConstantRate("c").fit_predict(split, 0)
    np.testing.assert_allclose(result.valid, rate * exposure["valid"])
    np.testing.assert_allclose(result.test, rate * exposure["test"])


@pytest.mark.parametrize("method", LEARNERS, ids=repr)
def test_each_learns_what_the_columns_say(method, split):
    """Noise is 22 % of the mean, which varies by a factor of 60: whoever reads the columns errs far less."""
    if method.missing():
        pytest.skip(method.missing())
    result = method.fit_predict(split, 0)
    constant = ConstantRate("c").fit_predict(split, 0)
    for part, y in (("valid", split.y_valid), ("test", split.y_test)):
        pred = getattr(result, part)
        assert pred.shape == y.shape
        assert rmse(pred, y) < 0.6 * rmse(getattr(constant, part), y)
    assert result.seconds > 0.0


@pytest.mark.parametrize(
    ("plain", "search"), [(LightGBM("p"), TunedLightGBM), (XGBoost("p"), TunedXGBoost), (CatBoost("p"), TunedCatBoost)]
)
def test_a_search_of_one_trial_is_the_untuned_booster(plain, search, split):
    if plain.missing():
        pytest.skip(plain.missing())
    tuned = search("t", trials=1).fit_predict(split, 0)
    np.testing.assert_array_equal(tuned.test, plain.fit_predict(split, 0).test)
    assert tuned.details["chosen"] == {}


@pytest.mark.parametrize("method", [LightGBM, partial(TunedLightGBM, trials=2)])
def test_a_refit_has_as_many_trees_and_knows_the_validation_rows(method, split):
    plain, refitted = (method("m", refit=refit).fit_predict(split, 0) for refit in (False, True))
    assert refitted.details == plain.details
    assert rmse(refitted.valid, split.y_valid) < rmse(plain.valid, split.y_valid)


def test_a_longer_search_is_no_worse_on_the_validation_rows(split):
    short, long = (TunedLightGBM("t", trials=n).fit_predict(split, 0) for n in (1, 4))
    assert rmse(long.valid, split.y_valid) <= rmse(short.valid, split.y_valid)


def test_a_search_without_time_makes_one_trial(split):
    assert TunedLightGBM("t", seconds=1e-9).fit_predict(split, 0).details["trials"] == 1


@pytest.mark.parametrize(
    ("search", "losses", "tweedie"),
    [
        (TunedLightGBM, {"poisson", "tweedie", "regression"}, "tweedie"),
        (TunedXGBoost, {"count:poisson", "reg:tweedie", "reg:squarederror"}, "reg:tweedie"),
    ],
)
def test_random_settings_have_every_loss_and_a_power_for_tweedie_alone(search, losses, tweedie):
    draw = np.random.default_rng(0)
    drawn = [search("t").random_settings(draw) for _ in range(200)]
    assert {p["objective"] for p in drawn} == losses
    assert all(("tweedie_variance_power" in p) == (p["objective"] == tweedie) for p in drawn)
    powers = [p["tweedie_variance_power"] for p in drawn if "tweedie_variance_power" in p]
    assert all(1.05 <= power <= 1.95 for power in powers)


def test_random_settings_of_catboost_name_the_power_in_the_loss():
    draw = np.random.default_rng(0)
    losses = {TunedCatBoost("t").random_settings(draw)["loss_function"] for _ in range(200)}
    powers = [float(loss.partition("=")[2]) for loss in losses - {"Poisson", "RMSE"}]
    assert {"Poisson", "RMSE"} < losses
    assert all(1.05 <= power <= 1.95 for power in powers)


@pytest.mark.parametrize("search", SEARCHES)
def test_random_settings_are_plain_values_with_rates_that_people_search(search):
    draw = np.random.default_rng(0)
    drawn = [search("t").random_settings(draw) for _ in range(200)]
    assert all(0.01 <= p["learning_rate"] <= 0.2 for p in drawn)
    assert json.loads(json.dumps(drawn)) == drawn


def test_trees_that_only_waited_are_left_out(split):
    """The validation error after the reported number of trees is the least of all numbers of trees."""
    method = HistGradientBoosting("h")
    result = method.fit_predict(split, 0)
    frames = Frames.of(split)
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        loss="poisson", learning_rate=0.05, max_iter=result.details["trees"] + 20, early_stopping=False, random_state=0
    ).fit(frames.train, split.y_train)
    errors = [rmse(pred, split.y_valid) for pred in model.staged_predict(frames.valid)]
    assert np.argmin(errors) + 1 == result.details["trees"]
    assert rmse(result.valid, split.y_valid) == pytest.approx(min(errors))


def test_columns_of_many_categories_become_numbers_for_scikit_learn(split):
    frames = Frames.of(split)
    many = frames.map(lambda frame: frame.assign(kind=frame["x"].round(4).astype(str).astype("category")))
    prepared = HistGradientBoosting("h").prepare(many)
    assert prepared.categorical == []
    assert prepared.train["kind"].dtype == np.float64


def test_names_suit_a_command_line():
    assert all(name == name.strip() and " " not in name for name in METHODS)
    assert all(METHODS[name].name == name for name in METHODS)
    # The text of the settings is a part of cache keys, so it must say everything and hold no address of an object.
    assert len({method.settings for method in METHODS.values()}) == len(METHODS)
    assert not [method.settings for method in METHODS.values() if " at 0x" in method.settings]
