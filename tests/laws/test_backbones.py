import copy

import pytest
import torch

from transun.backbones import DIN, Constant, Custom, EmbeddingMLP, PReLU, TabM
from transun.heads import LogMSE, LogSUN
from transun.models.network import Model

N = 6
BATCH = {
    "user": torch.arange(N) % 5,
    "item": torch.arange(N) % 7,
    "history": torch.tensor([[1, 2, -1], [-1, -1, -1], [0, 0, 0], [6, -1, 3], [5, 4, 3], [-1, 2, -1]]),
    "price": torch.linspace(-1, 1, N),
    "rank": torch.linspace(0, 1, N),
    "alike": torch.arange(N) % 3,
    "kinds": torch.tensor([[1, 2, -1], [-1, -1, -1], [0, 0, -1], [6, -1, 3], [5, 4, 3], [-1, 2, -1]]),
}
EMBEDDING = EmbeddingMLP({"user": 5, "item": 7}, {"history": "item"}, ("price",), 4, (8, 6, 5), ranks=("rank",))
# One column of the history has its target's own table, the other a table that the target borrows.
INTEREST = DIN(
    {"user": 5, "item": 7, "alike": "item"},
    numeric=("price",),
    ranks=("rank",),
    bins=5,
    dim=4,
    hidden=(8, 6),
    history={"history": "item", "kinds": "alike"},
    unit=(5,),
    unit_activation=PReLU(),
)
MEMBERS = TabM(
    {"user": 5, "item": 7}, {"history": "item"}, ("price",), 4, (8, 6), dropout=0.0, ranks=("rank",), bins=5, members=3
)
ONE_MEMBER = TabM(numeric=("price",), hidden=(8,), dropout=0.0, members=1)
CUSTOM = Custom(lambda: torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.ReLU()), 6)
MATRIX = torch.arange(3.0 * N).reshape(N, 3) / 10
CASES = [
    pytest.param(backbone, batch, shared, id=f"{type(backbone).__name__}-members{backbone.members}-shared{shared}")
    for backbone, batch in (
        (Constant(), MATRIX),
        (CUSTOM, MATRIX),
        (EMBEDDING, BATCH),
        (INTEREST, BATCH),
        (MEMBERS, BATCH),
        (ONE_MEMBER, BATCH),
    )
    for shared in range(len(backbone.stages()) + 1)
]


def prepared(backbone, shared):
    model = Model(backbone, LogSUN(shared=shared)).prepare(torch.tensor([1.0, 5.0, 9.0])).eval()
    for output in model.network.outputs:  # as after some training: the features matter
        torch.nn.init.constant_(output.weight, 0.1)
    return model


@pytest.mark.parametrize(("backbone", "batch", "shared"), CASES)
class TestBackbone:
    def test_every_legal_sharing_predicts_and_learns(self, backbone, batch, shared):
        model = prepared(backbone, shared)
        assert model(batch).shape == (N,)
        sum(term.mean() for term in model.loss(batch, torch.ones(N)).values()).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())

    def test_shared_stages_exist_once(self, backbone, batch, shared):
        separate = sum(p.numel() for p in prepared(backbone, 0).parameters())
        alone = sum(p.numel() for p in Model(backbone, LogMSE()).parameters())
        stage_sizes = [sum(p.numel() for p in build().parameters()) for build in backbone.stages()]
        output = backbone.members * (backbone.out_features + 1)
        assert separate == 2 * alone
        assert sum(p.numel() for p in prepared(backbone, shared).parameters()) == (
            alone + sum(stage_sizes[shared:]) + output
        )

    def test_gradient_of_z_reaches_what_is_shared_and_nothing_else(self, backbone, batch, shared):
        """Errata E2: stop-gradient keeps the branches apart only where they share nothing."""
        model = prepared(backbone, shared)
        model.loss(batch, torch.ones(N))["bias"].mean().backward()
        trunk = list(model.network.stacks[0])
        for index, stage in enumerate(trunk):
            touched = any(p.grad is not None and (p.grad != 0).any() for p in stage.parameters())
            has_parameters = any(True for _ in stage.parameters())
            assert touched == (has_parameters and index < shared)
        assert all(p.grad is None or (p.grad == 0).all() for p in model.network.outputs[0].parameters())

    def test_first_branch_is_the_same_with_and_without_gts(self, backbone, batch, shared):
        plain, debiased = Model(backbone, LogMSE(), seed=3), Model(backbone, LogSUN(shared=shared), seed=3)
        for name, value in plain.network.state_dict().items():
            torch.testing.assert_close(debiased.network.state_dict()[name], value, rtol=0, atol=0)

    def test_export_equals_eager(self, backbone, batch, shared):
        model = prepared(backbone, shared)
        exported = torch.export.export(model, (batch,))
        torch.testing.assert_close(exported.module()(batch), model(batch))

    # What the compiler warns about while it traces, such as its own use of what is deprecated, differs by version.
    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
    def test_compiles_without_graph_breaks(self, backbone, batch, shared):
        explained = torch._dynamo.explain(prepared(backbone, shared))(batch)
        assert explained.graph_break_count == 0
        assert torch._dynamo.explain(prepared(backbone, shared).train())(batch).graph_break_count == 0

    def test_illegal_sharing_is_refused(self, backbone, batch, shared):
        stages = len(backbone.stages())
        for wrong in (stages + 1, -1):
            with pytest.raises(ValueError, match=rf"use shared=0..{stages}"):
                Model(backbone, LogSUN(shared=wrong))

    def test_copies_are_independent(self, backbone, batch, shared):
        model = prepared(backbone, shared)
        clone = copy.deepcopy(model)
        with torch.no_grad():
            clone.network.outputs[0].bias.add_(1.0)
        assert not torch.equal(model(batch), clone(batch))
