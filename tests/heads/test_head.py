"""What a branch shares with another, and how a head is built again."""

import pytest
import torch

from transun.backbones import EmbeddingMLP
from transun.heads import GTS, MSE, STRATEGIES, Blend, Branch, LogNormal, LogSUN, OptDist, PointHead, Scaled
from transun.models.network import Network
from transun.models.spec import dumps, loads
from transun.transforms import Log1p

ROWS = {"item": torch.arange(5)}


def test_a_branch_that_shares_all_is_one_layer():
    network = Network(EmbeddingMLP({"item": 5}, hidden=(8, 4)), (Branch(), Branch(shared="all", trains_shared=False)))
    assert len(network.stacks[1]) == 0
    network(ROWS)[1].sum().backward()
    assert all(parameter.grad is None for parameter in network.stacks[0].parameters())


def test_a_branch_shares_with_an_earlier_one_only():
    with pytest.raises(ValueError, match="earlier branch only, not with branch 1"):
        Network(EmbeddingMLP({"item": 5}), (Branch(), Branch(shared=1, shares_with=1)))


def test_every_head_can_share_all_stages():
    text = "GTS(PointHead(Log1p()), shared='all')"
    assert dumps(LogSUN(shared="all")) == dumps(loads(text)) == text
    for head in (LogSUN(shared="all"), OptDist(LogNormal(), shared="all"), Blend((LogSUN(), LogSUN()), shared="all")):
        backbone = EmbeddingMLP({"item": 5}, hidden=(8, 4))
        network = Network(backbone, head.branches)
        stages = [len(stack) for stack in network.stacks]
        assert stages[0] == 3
        assert stages[-1] == 0


def test_a_misspelled_sharing_is_refused():
    with pytest.raises(ValueError, match="a number of stages or \"all\", got 'every'"):
        LogSUN(shared="every")


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_the_text_of_a_head_can_name_every_strategy(strategy):
    text = f"{strategy.__name__}()" if isinstance(strategy, type) else strategy.__name__
    assert dumps(loads(text)) == text


def test_replace_changes_the_arguments_that_it_names():
    head = LogSUN(shared=1).replace(shared=2)
    assert (head.shared, dumps(head.inner)) == (2, "PointHead(Log1p())")


@pytest.mark.parametrize("build", [lambda: GTS("LogMSE()"), lambda: GTS(None), lambda: Scaled(MSE)])
def test_a_wrapper_refuses_what_is_no_head(build):
    with pytest.raises(TypeError, match=r"wraps a head, such as LogMSE\(\), got"):
        build()


@pytest.mark.parametrize("transform", [3, Log1p, None])
def test_a_point_head_refuses_what_is_no_transform(transform):
    with pytest.raises(TypeError, match=r"PointHead needs a transform, such as Log1p\(\), got"):
        PointHead(transform)
