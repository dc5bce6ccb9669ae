"""The head of a mixture is told in a line, with the shares that its models have in a prediction."""

import pytest
import torch

from transun import GTS, MSE, Constant, LogSUN, Poisson, Scaled
from transun.corrections import TotalRatio
from transun.heads import Blend, Corrected
from transun.models.head_summary import summarise_head
from transun.models.mixture import mix
from transun.models.network import Model
from transun.support.text_form import dumps

Y = torch.tensor([1.0, 2.0, 6.0])


def trained(head):
    return Model(Constant(), head).prepare(Y)


def test_shares_are_those_of_the_mixture():
    parts = [
        Scaled(MSE()),
        Scaled(Poisson()),
        Scaled(Blend((Poisson(), LogSUN(shared="all")), shared="all")),
        Scaled(MSE()),
    ]
    head = mix([trained(head) for head in parts], [0.1, 0.2, 0.3, 0.4]).head
    network = "Scaled(Blend((Poisson(), GTS(PointHead(Log1p()), ReciprocalTarget(), 'all')), shared='all'))"
    told = f"50 % Scaled(PointHead()), 30 % {network}, 20 % Scaled(Poisson())"
    assert summarise_head(dumps(head)) == f"mixture of {told}"
    assert summarise_head(dumps(Corrected(head, TotalRatio()))) == f"Corrected(mixture, TotalRatio()) of {told}"


def test_shares_of_small_amounts_are_told_where_they_differ():
    parts = [Scaled(MSE()), Scaled(Poisson()), Scaled(MSE())]
    inner = mix([trained(head) for head in parts[:2]], [0.5, 0.5], [0.11, 0.99], level=2.0)  # times 1.1
    head = Corrected(mix([inner, trained(parts[2])], [0.6, 0.4]).head, TotalRatio())
    # .6·.5 + .4 and .6·.1 + .4; .6·.5 and .6·.9
    told = "70 % (of small amounts 46 %) Scaled(PointHead()), 30 % (of small amounts 54 %) Scaled(Poisson())"
    assert summarise_head(dumps(head)) == f"Corrected(mixture, TotalRatio()) of {told}"


def test_a_head_that_a_person_wrote_is_told_as_it_was_written():
    text = dumps(GTS(Scaled(Blend((Poisson(), MSE()), (0.75, 0.25))), shared=1))
    assert summarise_head(text) == text


@pytest.mark.parametrize(
    "text", ["Blend(" * 500, "(" * 100_000, "Blend(1)" + "," * 300, "x" * 5000, f"Blend(shared=0, name='{400 * 'x'}')"]
)
def test_no_text_is_too_long_or_too_odd(text):
    assert len(summarise_head(text)) <= 160
