"""Requirements mean what Python means by the same text, and nothing is ever executed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transun.models.requirements import Requirement

NUMBERS = st.floats(-10, 10, allow_nan=False).map(lambda value: round(value, 3))
SIDES = st.one_of(
    NUMBERS.map(repr), st.sampled_from(["tre", "pgr", "abs(stre)", "-pgr", "abs(-tre)", "-abs(stre)", "(tre)"])
)
SIGNS = st.sampled_from(["<", "<=", ">", ">="])
COMPARISONS = st.one_of(
    st.tuples(SIDES, SIGNS, SIDES).map(" ".join), st.tuples(SIDES, SIGNS, SIDES, SIGNS, SIDES).map(" ".join)
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})"),
    max_leaves=5,
)


@given(CONDITIONS, NUMBERS, NUMBERS, NUMBERS)
def test_the_meaning_is_python_s(text, tre, stre, pgr):
    values = {"tre": tre, "stre": stre, "pgr": pgr}
    result = Requirement(text).check(values)
    assert result.holds == eval(text, {"__builtins__": {"abs": abs}}, values)  # on text made here
    assert bool(result.reasons) != result.holds


@pytest.mark.parametrize(
    ("text", "values", "reason"),
    [
        ("tre <= 0.02", {"tre": 0.05}, "tre is 0.05, 0.03 above 0.02"),
        ("abs(stre) < 0.1", {"stre": -0.25}, "abs(stre) is 0.25, 0.15 above 0.1"),
        ("pgr >= 0.9", {"pgr": 0.5}, "pgr is 0.5, 0.4 below 0.9"),
        ("0.9 <= pgr", {"pgr": 0.5}, "pgr is 0.5, 0.4 below 0.9"),
        ("tre < 0.5", {"tre": 0.5}, "tre is 0.5, exactly the limit"),
        ("tre < 0.5", {"tre": math.nan}, "tre is not a number for these rows"),
    ],
)
def test_a_failure_is_reported_with_its_distance(text, values, reason):
    result = Requirement(text).check(values)
    assert not result.holds
    assert result.reasons == (reason,)


def test_every_failure_is_reported():
    assert len(Requirement("tre < 1 and pgr > 1 and xauc > 1").check({"tre": 2, "pgr": 0, "xauc": 2}).reasons) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tre",
        "tre = 1",
        "tre == 0",
        "tre != 1",
        "not tre < 1",
        "tre + 1 < 2",
        "tre.real < 1",
        "tre[0] < 1",
        "abs(tre, 1) < 1",
        "max(tre, 1) < 1",
        "__import__('os').system('true') < 1",
        "(lambda: 1)() < 2",
        "tre < True",
        "tre < 'a'",
        "tre is None",
        "tre in (1, 2)",
        "tre < 1 if tre else pgr < 1",
        "f'{tre}' < 1",
        "~tre < 1",
        "abs < 1 < abs(abs)(1)",
        "(" * 500 + "tre < 1" + ")" * 500,
        "tre < 1 " * 500,
        "tre < \0",
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="write comparisons of metrics"):
        Requirement(text)


def test_names_are_checked_before_anything_is_computed():
    one = Requirement("trr < 1 or pgr > 2")
    with pytest.raises(ValueError, match="did you mean 'tre'"):
        one.require_names(["tre", "pgr", "tre_low"])
    with pytest.raises(ValueError, match="'trr', which is no metric here"):
        one.check({"pgr": 1.0})
    Requirement("tre < 1").require_names(["tre"])
