import pytest
import torch

from registry import LOSSES, SCHEMES, TRANSFORMS, all_heads, name
from transun import training
from transun.backbones import Constant, Custom, EmbeddingMLP
from transun.models.spec import dumps, loads
from transun.training.averaging import EMA, Tail
from transun.training.optimisers import SGD, Adagrad, AdagradDecay, Adam, AdamW, cosine

VALUES = [
    *TRANSFORMS,
    *SCHEMES,
    *LOSSES,
    *[SGD(0.1, momentum=0.9), Adagrad(), AdagradDecay(decay=0.5), Adam(), AdamW(3e-4), cosine, Tail(), EMA(0.9)],
    Constant(),
    EmbeddingMLP({"user": 10, "item": 20}, {"history": "item"}, ("price",), dim=4, hidden=(8,), dropout=0.1),
]


@pytest.mark.parametrize("value", VALUES, ids=name)
def test_values_come_back_equal(value):
    assert loads(dumps(value), vars(training)) == value


@pytest.mark.parametrize("head", all_heads(), ids=name)
def test_heads_come_back_with_the_same_text(head):
    assert dumps(loads(dumps(head))) == dumps(head)
    prepared = head.prepare(torch.tensor([0.5, 1.0, 30.0]))
    assert dumps(loads(dumps(prepared))) == dumps(prepared)


def test_people_may_write_it_their_way():
    assert dumps(loads(" TranSUN( Power(exponent=.5), shared = 1 )\n")) == "GTS(PointHead(Power()), shared=1)"
    assert dumps(loads("GTS(PointHead(Log1p(), absolute), ReciprocalPoint(0.5))")) == (
        "GTS(PointHead(Log1p(), absolute), ReciprocalPoint(0.5))"
    )


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "os.system('true')",
        "open('x')",
        "LogSUN.__init__",
        "(lambda: 1)()",
        "[x for x in (1,)]",
        "f'{1}'",
        "LogSUN(**{'shared': 1})",
        "LogSUN(*(1,))",
        "{**{}}",
        "1 + 1",
        "b'x'",
        "Nothing()",
        "print",
        "sharding()",
    ],
)
def test_nothing_foreign_runs(text):
    with pytest.raises(ValueError, match="not a transun object"):
        loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read"),
        ("LogSUN(", "cannot read"),
        ("LogSUN(depth=3)", "LogSUN: got an unexpected keyword argument 'depth'"),
        ("GTS()", "GTS: missing a required argument: 'inner'"),
        ("Log1p(upper=-1.0)", "lower < upper"),
        ("Log1p(upper='x')", "Log1p:"),
        ("GTS(3)", "GTS:"),
        ("Log1p(" * 5000, "cannot read"),
        ("-" * 50_000 + "1", "nested too deeply|cannot read"),
        ("1" * 200_000, "at most 100000"),
        ("Power(9.0)", "0 < exponent <= 4"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        loads(text)


def test_plugins_are_the_callers_choice():
    def build():
        return torch.nn.Linear(3, 2)

    backbone = Custom(build, 2)
    text = dumps(backbone)
    with pytest.raises(ValueError, match="not a transun object"):
        loads(text)
    assert loads(text, plugins={"build": build}) == backbone


def test_nan_has_no_text():
    with pytest.raises(ValueError, match="NaN"):
        dumps(float("nan"))


@pytest.mark.parametrize("concept", ["Head()", "Density()", "Transform()", "Scheme()", "Slope()", "Activation()"])
def test_a_concept_is_no_object(concept):
    name = concept.removesuffix("()")
    with pytest.raises(ValueError, match=rf"^({name}: Can't instantiate abstract class|not a transun object)"):
        loads(concept)


def test_numbers_beyond_floats_are_refused():
    with pytest.raises(ValueError, match="larger than any that can be computed with"):
        loads(f"BoxCox(0, {10**400})")
