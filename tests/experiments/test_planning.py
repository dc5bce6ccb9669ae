"""The planner: users and power against the closed form of the normal approximation, and by simulation."""

import numpy as np
import pytest
from scipy import stats

from transun.experiments import LogColumns, plan_abtest

tea_tasting = pytest.importorskip("tea_tasting")
COLUMNS = LogColumns("user", "gmv")


def power_by_scipy(spread, effect, users, ratio=1.0):
    """The power of a two-sided z-test of means 1 and 1 + effect, the deviation being `spread` times the mean."""
    base, new = users / (1.0 + ratio), users * ratio / (1.0 + ratio)
    shift = effect / (spread * np.sqrt(1.0 / base + (1.0 + effect) ** 2 / new))
    return stats.norm.sf(1.9599639845 - shift) + stats.norm.sf(1.9599639845 + shift)


@pytest.fixture(scope="module")
def past():
    rng = np.random.default_rng(0)
    taste = rng.lognormal(0.0, 0.6, 20_000)
    now, old = taste * rng.exponential(size=(2, 20_000))
    return {"user": np.arange(20_000), "gmv": now, "old": old, "shown": rng.poisson(5.0, 20_000) + 1}


@pytest.mark.parametrize(("effect", "power", "ratio"), [(0.05, 0.8, 1.0), (-0.03, 0.9, 1.0), (0.02, 0.8, 0.75)])
def test_users_needed_are_those_of_the_formula(past, effect, power, ratio):
    plan = plan_abtest(past, COLUMNS, effect, power=power, ratio=ratio)[0]
    assert plan.spread == pytest.approx(past["gmv"].std(ddof=1) / past["gmv"].mean())
    assert power_by_scipy(plan.spread, effect, plan.users_needed, ratio) == pytest.approx(power, abs=1e-3)


def test_power_and_smallest_change_are_those_of_the_log(past):
    plan = plan_abtest(past, COLUMNS, 0.05)[0]
    assert plan.power == pytest.approx(power_by_scipy(plan.spread, 0.05, 20_000), abs=1e-6)
    assert power_by_scipy(plan.spread, plan.detectable, 20_000) == pytest.approx(0.8, abs=1e-5)


def test_small_effects_need_the_users_that_tea_tasting_says(past):
    """tea-tasting takes one spread for both arms, which is the same where the effect is small."""
    pd = pytest.importorskip("pandas")
    plan = plan_abtest(past, LogColumns("user", "gmv", before="old"), 0.001)[0]
    metric = tea_tasting.Mean("gmv", "old", rel_effect_size=0.001, use_t=False)
    assert plan.users_needed == pytest.approx(metric.solve_power(pd.DataFrame(past), "n_obs")[0].n_obs, rel=0.003)


def test_what_is_known_before_saves_users(past):
    adjusted, plain, *_ = plan_abtest(past, LogColumns("user", "gmv", before="old"), 0.05)
    explained = np.corrcoef(past["gmv"], past["old"])[0, 1] ** 2
    assert adjusted.users_needed / plain.users_needed == pytest.approx(1.0 - explained, rel=0.005)


def test_a_ratio_has_the_spread_of_the_delta_method(past):
    plans = plan_abtest(past, LogColumns("user", "gmv", per="shown"), 0.05, cap=None)
    ratio = past["gmv"].sum() / past["shown"].sum()
    spread = (past["gmv"] - ratio * past["shown"]).std(ddof=1) / past["gmv"].mean()
    assert plans[1].outcome == "gmv per shown"
    assert plans[1].spread == pytest.approx(spread)


@pytest.mark.parametrize("effect", [0.2, -0.2])
def test_the_planned_users_find_the_effect_as_often_as_promised(effect):
    """2,000 tests by Welch of the planned size: the share that finds the effect is the power, up to its noise."""
    rng = np.random.default_rng(2)
    past = {"user": np.arange(50_000), "gmv": rng.exponential(size=50_000)}
    plan = plan_abtest(past, COLUMNS, effect, cap=None)[0]
    base, new = rng.exponential(size=(2, 2_000, plan.users_needed // 2))
    p_values = stats.ttest_ind(new * (1.0 + effect), base, axis=1, equal_var=False).pvalue
    assert abs((p_values < 0.05).mean() - 0.8) < 0.02 + 3.0 * np.sqrt(0.8 * 0.2 / 2_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effect": 0.0}, "such as 0.01"),
        ({"effect": -1.0}, "such as 0.01"),
        ({"effect": 0.1, "power": 1.0}, "power of a test lies strictly between 0 and 1"),
        ({"effect": 0.1, "level": 0.0}, "level of a test lies strictly between 0 and 1"),
        ({"effect": 0.1, "ratio": 0.0}, "ratio=0.0"),
    ],
)
def test_mistakes_are_named(past, options, message):
    with pytest.raises(ValueError, match=message):
        plan_abtest(past, COLUMNS, **options)


def test_a_total_must_be_above_zero():
    with pytest.raises(ValueError, match="is not above 0"):
        plan_abtest({"user": range(10), "gmv": [0.0] * 10}, COLUMNS, 0.01)


@pytest.mark.parametrize(
    ("values", "effect", "message"),
    [
        ([5.0] * 20, 0.01, r"gmv per user \(uncapped\) is the same for every user"),
        ([1.0] * 8 + [2.0], 0.01, "9 users cannot show how much values scatter: a plan needs 10"),
        ([1.0, 2.0] * 10, 1e-300, "the change to be found is relative, such as 0.01 for 1 %"),
    ],
)
def test_nothing_to_plan_for_is_refused(values, effect, message):
    with pytest.raises(ValueError, match=message):
        plan_abtest({"user": range(len(values)), "gmv": values}, LogColumns("user", "gmv"), effect)
