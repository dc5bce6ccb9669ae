"""Texts of heads, backbones and transforms: an object with the same text again, or a refusal."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fuzz.harness import cases, outcome
from registry import all_heads
from transun.heads import Head
from transun.models.spec import dumps, loads, vocabulary

NAMES = sorted(vocabulary())
numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([0, 1, -1, 2, 0.5, 1e308, -1e-308, 10**400]))
scalars = st.one_of(
    numbers.map(repr), st.sampled_from(["None", "True", "inf", "-inf", "nan", "'all'", "{}", "()", "..."])
)
keywords = st.sampled_from(
    ["shared", "scale", "eps", "power", "bins", "levels", "upper", "lower", "alpha", "seed", "inner"]
)


def call(arguments):
    named = st.tuples(keywords, arguments).map("=".join)
    return st.builds(
        lambda name, positional, named: f"{name}({', '.join([*positional, *named])})",
        st.sampled_from(NAMES),
        st.lists(arguments, max_size=3),
        st.lists(named, max_size=2),
    )


grammar = st.recursive(
    scalars,
    lambda inner: st.one_of(call(inner), st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")),
    max_leaves=8,
)
attacks = st.sampled_from(
    [
        "__import__('os').system('touch executed')",
        "(lambda: open('executed', 'w'))()",
        "[open('executed', 'w') for _ in (1,)]",
        "MSE.__class__.__mro__",
        "f'{open(chr(101))}'",
        "GTS(*[MSE()])",
        "GTS(**{'inner': MSE()})",
        "9" * 5000,
        "(" * 3000,
        "-" * 3000 + "1",
    ]
)


@st.composite
def damaged(draw):
    """The text of a head with a piece of it cut, doubled or replaced."""
    text = draw(st.sampled_from([dumps(head) for head in all_heads()]))
    first, last = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    return text[:first] + draw(st.one_of(st.just(""), st.text(max_size=6), scalars, attacks)) + text[last:]


TARGETS = torch.tensor([0.0, 1.0, 2.0, 8.0], dtype=torch.float64)


@cases(0.3)
@given(text=st.one_of(grammar, damaged(), attacks, st.text(max_size=60)))
def test_text_is_read_or_refused(text):
    value, answered = outcome(loads, text)
    if answered and not isinstance(value, type):
        again, printed = outcome(dumps, value)
        assert not printed or outcome(lambda: dumps(loads(again)))[0] == again
    if answered and isinstance(value, Head):
        outcome(lambda: value.prepare(TARGETS).initial_outputs(TARGETS))
