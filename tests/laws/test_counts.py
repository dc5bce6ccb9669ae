"""A count among the arguments of a head or a correction is a whole number, or refused by its name."""

import inspect

import pytest

from transun import corrections, heads

COUNTED = [
    (kind, name, parameter.default)
    for room in (heads, corrections)
    for kind in (getattr(room, public) for public in room.__all__)
    if inspect.isclass(kind) and kind is not heads.ProbabilisticGTS  # which needs a head, and passes its count on
    for name, parameter in inspect.signature(kind).parameters.items()
    if type(parameter.default) is int and parameter.default > 1
]


def test_there_are_counts():
    assert {name for _, name, _ in COUNTED} > {"components", "bins", "buckets", "leaves"}


@pytest.mark.parametrize(("kind", "name", "usual"), COUNTED, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("wrong", [0.5, 1e308, float("nan"), -1])
def test_a_count_is_a_whole_number(kind, name, usual, wrong):
    kind(**{name: usual})
    with pytest.raises((ValueError, TypeError), match=rf"{name}|whole number"):
        kind(**{name: wrong})
