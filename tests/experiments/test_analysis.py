"""`abtest`: effects against scipy, closed forms and tea-tasting on frames; and the logs that it refuses."""

import numpy as np
import pytest
from scipy import stats

from transun.experiments import LogColumns, abtest, plan_abtest
from transun.experiments.sequence import always_valid_errors

tt = pytest.importorskip("tea_tasting")
COLUMNS = LogColumns("user", "gmv", "arm", per="shown", before="old", predicted="guess", by=("land",))


@pytest.fixture(scope="module")
def log():
    """6,000 users with a persistent taste, so that the past and a prediction explain their value."""
    rng = np.random.default_rng(1)
    n = 6_000
    arm = np.array(["base", "new"])[np.arange(n) % 2]
    taste, shown = rng.lognormal(0.0, 0.7, n), rng.poisson(8.0, n) + 1
    bought = rng.random((2, n)) < 0.4
    past, now = bought * taste * rng.lognormal(2.0, 0.6, (2, n))
    gmv = now * shown / 9.0 * np.where(arm == "new", 1.15, 1.0)
    land = rng.choice(["IT", "FR"], n)
    return {"user": np.arange(n), "arm": arm, "gmv": gmv, "shown": shown, "old": past, "guess": 9 * taste, "land": land}


@pytest.fixture(scope="module")
def result(log):
    return abtest(log, COLUMNS, control="base")


def sides(log, name):
    return (np.asarray(log[name])[log["arm"] == arm] for arm in ("base", "new"))


def effect(result, outcome, how):
    (found,) = [effect for effect in result.effects if (effect.outcome, effect.how) == (outcome, how)]
    return found


def test_the_plain_mean_is_welchs_test(log, result):
    base, new = sides(log, "gmv")
    plain = effect(result, "gmv per user", "uncapped")
    assert plain.p_value == pytest.approx(stats.ttest_ind(new, base, equal_var=False).pvalue, rel=1e-9)
    assert plain.change.value == pytest.approx(new.mean() / base.mean() - 1.0)
    assert (plain.control, plain.treatment) == (pytest.approx(base.mean()), pytest.approx(new.mean()))


def test_the_error_of_a_ratio_is_that_of_the_delta_method(log, result):
    errors = []
    for value, count in zip(sides(log, "gmv"), sides(log, "shown"), strict=True):
        ratio = value.sum() / count.sum()
        errors.append((value - ratio * count).std(ddof=1) / count.mean() / ratio / np.sqrt(len(value)))
    assert effect(result, "gmv per shown", "uncapped").error == pytest.approx(np.hypot(*errors), rel=1e-9)


def test_it_agrees_with_tea_tasting_on_frames(log):
    pd = pytest.importorskip("pandas")
    columns = LogColumns("user", "gmv", "arm", per="shown", before="old")
    ours = abtest(log, columns, control="base").decisive
    metrics = {"user": tt.Mean("gmv", "old"), "shown": tt.RatioOfMeans("gmv", "shown", "old")}
    theirs = tt.Experiment(**metrics, variant="arm").analyze(pd.DataFrame(log), control="base")
    for effect, name in zip(ours, ("user", "shown"), strict=True):
        assert effect.p_value == pytest.approx(theirs[name].pvalue, rel=1e-7)
        assert effect.change.low == pytest.approx(theirs[name].rel_effect_size_ci_lower, rel=1e-7)
        assert effect.change.high == pytest.approx(theirs[name].rel_effect_size_ci_upper, rel=1e-7)


def test_two_covariates_are_one_regression(log, result):
    """The adjusted error is that of the residuals of least squares on both covariates, within the arms."""
    arm = (log["arm"] == "new").astype(float)
    columns = np.stack([arm, 1.0 - arm, log["old"], log["guess"]], axis=1)
    factors = np.linalg.lstsq(columns, log["gmv"], rcond=None)[0]
    residuals = log["gmv"] - columns[:, 2:] @ factors[2:]
    means = [side.mean() for side in sides(log, "gmv")]
    base, new = (residuals[log["arm"] == name] for name in ("base", "new"))
    error = np.hypot(*(side.std() / np.sqrt(len(side)) / mean for side, mean in zip((base, new), means, strict=True)))
    adjusted = effect(result, "gmv per user", "uncapped, adjusted")
    assert adjusted.error == pytest.approx(error, rel=0.02)  # the factor is fitted with the effect, not without it
    assert adjusted.error < effect(result, "gmv per user", "uncapped").error


def test_the_share_explained_is_the_squared_correlation_within_arms(log, result):
    within = [np.concatenate([side - side.mean() for side in sides(log, name)]) for name in ("gmv", "guess")]
    guess = next(covariate for covariate in result.covariates if covariate.name == "guess")
    assert guess.explained == pytest.approx(np.corrcoef(*within)[0, 1] ** 2)


def test_the_adjusted_uncapped_effect_decides(result):
    assert [(effect.outcome, effect.how) for effect in result.decisive] == [
        ("gmv per user", "uncapped, adjusted"),
        ("gmv per shown", "uncapped, adjusted"),
    ]
    assert all(0.15 in effect.change for effect in result.decisive)
    assert result.p_value(result.decisive[0]) == result.decisive[0].p_value  # one arm needs no adjustment


def test_capped_values_are_those_below_the_cap(log, result):
    cap = np.quantile(log["gmv"], 0.999)
    assert result.cap == pytest.approx(cap)
    base, new = (np.minimum(side, cap) for side in sides(log, "gmv"))
    capped = abtest(log, LogColumns("user", "gmv", "arm"), control="base").effects[-1]
    assert capped.how == "capped"
    assert capped.p_value == pytest.approx(stats.ttest_ind(new, base, equal_var=False).pvalue, rel=1e-9)


def test_the_always_valid_interval_is_so_many_errors_wide(result):
    one = result.decisive[0]
    wide = always_valid_errors(6_000, 0.95, result.horizon) * one.error
    assert np.log1p(one.always.high) - np.log1p(one.change.value) == pytest.approx(wide)
    assert np.log1p(one.change.value) - np.log1p(one.always.low) == pytest.approx(wide)


def test_segments_are_tested_together(log, result):
    assert {(line.column, line.segment) for line in result.segments} == {("land", "FR"), ("land", "IT")}
    inside = {name: np.asarray(values)[log["land"] == "IT"] for name, values in log.items()}
    alone = abtest(inside, LogColumns("user", "gmv", "arm", before="old", predicted="guess"), control="base").decisive[
        0
    ]
    (line,) = [line for line in result.segments if line.segment == "IT"]
    assert line.effect.change.value == pytest.approx(alone.change.value)
    smallest = min(line.effect.p_value for line in result.segments)
    assert min(line.p_value for line in result.segments) == pytest.approx(2.0 * smallest)  # Holm's first step


def test_more_arms_are_compared_with_the_control_by_holm():
    rng = np.random.default_rng(0)
    arm = np.array(["a", "b", "c"])[np.arange(900) % 3]
    log = {"user": np.arange(900), "arm": arm, "gmv": rng.exponential(size=900) * (1 + (arm == "c"))}
    result = abtest(log, LogColumns("user", "gmv", "arm"))
    assert result.control == "a"
    first, second = result.decisive
    smaller, larger = sorted((first, second), key=lambda effect: effect.p_value)
    assert result.p_value(smaller) == pytest.approx(min(1.0, 2 * smaller.p_value))
    assert result.p_value(larger) == pytest.approx(max(larger.p_value, 2 * smaller.p_value))


def test_the_detectable_change_is_that_of_the_planner(log, result):
    # The planner sees one sample, in which the effect itself adds a little to the spread.
    plan = plan_abtest(log, COLUMNS, 0.01)[0]
    assert result.detectable == pytest.approx(plan.detectable, rel=0.02)


def test_sample_ratio_mismatch_is_refused():
    counts = {"base": 1_000, "new": 1_200}
    arm = np.repeat(list(counts), list(counts.values()))
    log = {"user": np.arange(2_200), "arm": arm, "gmv": np.arange(2_200.0) + 1}
    columns = LogColumns("user", "gmv", "arm")
    with pytest.raises(ValueError, match="sample-ratio mismatch: arm 'base' has 1,000 users where 1,100 were expected"):
        abtest(log, columns)
    planned = abtest(log, columns, shares={"base": 5, "new": 6})
    assert planned.sample_ratio == pytest.approx(1.0)
    expected = np.array([0.48, 0.52]) * 2_200
    p_value = stats.chi2.sf(((np.array([1_000, 1_200]) - expected) ** 2 / expected).sum(), 1)
    assert abtest(log, columns, shares={"base": 0.48, "new": 0.52}).sample_ratio == pytest.approx(p_value)


def test_a_covariate_of_after_the_test_is_refused(log):
    after = log | {"old": log["gmv"] * np.where(log["arm"] == "new", 1.5, 1.0)}
    with pytest.raises(ValueError, match="'old' differs between the arms"):
        abtest(after, LogColumns("user", "gmv", "arm", before="old"))


def test_a_total_that_hangs_on_few_users_is_told(log):
    heavy = log | {"gmv": np.where(np.arange(6_000) < 4, 1e6, log["gmv"])}
    assert any("A few users decide" in note for note in abtest(heavy, LogColumns("user", "gmv", "arm")).notes)


MISTAKES = {
    "control": ({"control": "bse"}, "did you mean 'base'"),
    "shares of others": ({"shares": {"base": 1.0}}, "give the share of every arm"),
    "negative shares": ({"shares": {"base": 1.0, "new": -1.0}}, "above 0"),
    "level": ({"level": 95.0}, "strictly between 0 and 1"),
    "cap": ({"cap": 0.0}, "whose values are not capped"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(log, case):
    options, message = MISTAKES[case]
    with pytest.raises(ValueError, match=message):
        abtest(log, LogColumns("user", "gmv", "arm"), **options)


def test_values_and_users_must_suffice(log):
    columns = LogColumns("user", "gmv", "arm")
    with pytest.raises(ValueError, match="needs a value above 0 in both arms"):
        abtest(log | {"gmv": np.where(log["arm"] == "new", 0.0, 1.0)}, columns)
    with pytest.raises(ValueError, match="has 4 users: a test needs 10"):
        abtest({name: np.asarray(values)[:8] for name, values in log.items()}, columns)
    with pytest.raises(ValueError, match="name the column of the arms"):
        abtest(log, LogColumns("user", "gmv"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"gmv": [5.0] * 40}, r"gmv per user \(uncapped\) is the same for every user: without a spread"),
        ({"before": None}, "is the same for every user, given a column that cannot have been known before the test"),
        ({"seen": [1, 0] * 20}, "nothing was counted in arm 'old', so that it has no gmv per seen"),
    ],
)
def test_a_log_without_a_spread_or_a_count_is_refused(columns, message):
    values = np.random.default_rng(0).exponential(size=40)
    log = {"user": range(40), "arm": ["new", "old"] * 20, "gmv": values} | columns
    if "before" in columns:
        log["before"] = values
    which = LogColumns(
        "user", "gmv", "arm", per="seen" if "seen" in log else None, before="before" if "before" in log else None
    )
    with pytest.raises(ValueError, match=message):
        abtest(log, which)
