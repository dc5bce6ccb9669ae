from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transun.support.text_form import arguments, dumps, parse


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    label: str = ""


class KeywordOnly:
    def __init__(self, first, *, second=1):
        self.first, self.second = first, second


def named(value):
    return value


NAMES = {"Point": Point, "KeywordOnly": KeywordOnly, "named": named}
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda items: st.lists(items).map(tuple) | st.dictionaries(st.text(), items),
    max_leaves=8,
)


@given(LITERALS)
def test_literals_come_back(value):
    assert parse(dumps(value), {}) == value


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.text())
def test_objects_come_back(x, y, label):
    assert parse(dumps(Point(x, y, label)), NAMES) == Point(x, y, label)


def test_defaults_are_left_out_and_what_follows_is_named():
    assert dumps(Point(1.0)) == "Point(1.0)"
    assert dumps(Point(1.0, label="a")) == "Point(1.0, label='a')"
    assert dumps(KeywordOnly(1, second=2)) == "KeywordOnly(1, second=2)"


def test_infinity_and_functions_are_names():
    assert dumps((inf, named)) == "(inf, named)"
    assert parse("(inf, -inf, named)", NAMES) == (inf, -inf, named)


def test_arguments_are_those_of_the_constructor():
    assert arguments(Point(1.0, label="a")) == {"x": 1.0, "y": 0.0, "label": "a"}
    assert arguments(KeywordOnly(3)) == {"first": 3, "second": 1}


def apply(point: Point, function: Callable[[float], float] = abs, *more: Point) -> Point:
    return point


def make_point(x: float) -> Point:
    return Point(x)


def double(x: float) -> float:
    return 2 * x


TYPED = {"Point": Point, "apply": apply, "make_point": make_point, "double": double}


@pytest.mark.parametrize(
    "text", ["apply(Point(1.0))", "apply(Point(1.0), double)", "apply(Point(1.0), double, Point(2))"]
)
def test_arguments_of_the_right_type_are_taken(text):
    assert parse(text, TYPED) == Point(1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apply(3)", "apply: 3 cannot be its point"),
        ("apply(Point)", r"apply: Point cannot be its point; an object is written with brackets, Point\(\)"),
        ("apply(Point(1.0), Point)", "apply: Point cannot be its function"),
        ("apply(Point(1.0), make_point)", "apply: make_point cannot be its function"),
        ("apply(Point(1.0), double, double)", "apply: double cannot be its more"),
        ("Point(Point)", "Point: Point cannot be its x"),
    ],
)
def test_arguments_of_another_type_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text, TYPED)


@pytest.mark.parametrize("text", ["Point.x", "print(1)", "1 + 1", "Point(**{'x': 1.0})", "[x for x in (1,)]"])
def test_only_calls_of_known_names_with_literals_are_read(text):
    with pytest.raises(ValueError, match="not a transun object"):
        parse(text, NAMES)


def test_whole_numbers_beyond_floating_point_are_refused():
    assert parse(f"Point({10**300})", NAMES).x == 10**300
    with pytest.raises(ValueError, match=r"the whole number 1000.*\.\.\. is larger than any"):
        parse(f"Point({10**400})", NAMES)


def test_nan_has_no_text():
    with pytest.raises(ValueError, match="NaN has no text form"):
        dumps(float("nan"))


def test_objects_that_forget_their_arguments_have_no_text():
    class Forgetful:
        def __init__(self, a):
            self.b = a

    with pytest.raises(ValueError, match="Forgetful has no text form: it does not keep its argument 'a'"):
        dumps(Forgetful(1))
