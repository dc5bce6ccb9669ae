from functools import partial

import numpy as np
import pytest
import torch

from transun import (
    GTS,
    MSE,
    Adam,
    Dataset,
    EmbeddingMLP,
    LogMSE,
    LogNormal,
    LogSUN,
    Model,
    NetworkRegressor,
    Recipe,
    RowWise,
    TabM,
    evaluate,
    export,
    fit,
    load,
    predict,
    tabm,
    train,
)
from transun.backbones import Custom, Dice
from transun.corrections import Smearing, TotalRatio
from transun.heads import Blend, Poisson, Ranked, Scaled
from transun.losses import squared
from transun.models.checkpoint import grow
from transun.models.inference_layout import merge_branches
from transun.models.spec import dumps, loads
from transun.models.user_module import debias
from transun.tables.prediction import predict_in_chunks
from transun.training.calibration import balance, calibrate
from transun.training.evaluation import predict_with_kappa

N, K = 12, 3
X = {"item": torch.arange(N) % 5, "price": torch.linspace(-2, 2, N), "rank": torch.linspace(0, 1, N)}
Y = torch.arange(1.0, N + 1.0)
ROWS = Dataset(X, Y)
WEIGHTED = Dataset(X, Y, torch.linspace(0.5, 2, N))
BACKBONE = TabM({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4), dropout=0.0, ranks=("rank",), bins=4, members=K)


def shaken(head, backbone=BACKBONE):
    """As after some training: output weights matter, and no two members agree."""
    model = Model(backbone, head).prepare(Y).eval()
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw))
    return model


def member(model, index):
    """A plain network with the weights of one member: W·diag(r) scaled by s, and its own biases."""
    backbone = model.backbone
    plain = EmbeddingMLP(
        backbone.ids, backbone.bags, backbone.numeric, backbone.dim, backbone.hidden, 0.0, backbone.ranks, backbone.bins
    )
    alone = Model(plain, model.head).prepare(Y).eval()
    alone.head = model.head
    with torch.no_grad():
        for source, target in zip(model.network.stacks, alone.network.stacks, strict=True):
            linears = [module for module in source.modules() if hasattr(module, "r")]
            dense = [module for module in target.modules() if isinstance(module, torch.nn.Linear)]
            for theirs, ours in zip(linears, dense, strict=True):
                ours.weight.copy_(theirs.s[index, :, None] * theirs.weight * theirs.r[index])
                ours.bias.copy_(theirs.bias[index])
            for theirs, ours in zip(source, target, strict=True):
                if hasattr(theirs, "tables"):
                    ours.load_state_dict(theirs.state_dict())
        for theirs, ours in zip(model.network.outputs, alone.network.outputs, strict=True):
            weight, bias = theirs.weight, theirs.bias
            ours.weight.copy_(weight if weight.ndim == 2 else weight[index].T)
            ours.bias.copy_(bias if bias.ndim == 1 else bias[index])
    return alone


HEADS = [MSE(), LogSUN(shared=0), LogSUN(shared=2), LogSUN(shared="all"), Scaled(Blend((Poisson(), LogSUN())))]


@pytest.mark.parametrize("head", HEADS, ids=dumps)
class TestMembers:
    def test_a_member_is_a_plain_network_of_its_weights(self, head):
        model = shaken(head)
        members = [member(model, index) for index in range(K)]
        for index, alone in enumerate(members):
            for all_members, outputs in zip(model.raw(X), alone.raw(X), strict=True):
                torch.testing.assert_close(all_members[index::K], outputs)

    def test_predictions_and_losses_are_means_over_members(self, head):
        model = shaken(head)
        members = [member(model, index) for index in range(K)]
        torch.testing.assert_close(model(X), torch.stack([alone(X) for alone in members]).mean(0))
        for name, term in model.loss(X, Y).items():
            expected = torch.stack([alone.loss(X, Y)[name] for alone in members]).mean(0)
            torch.testing.assert_close(term, expected)

    def test_one_member_is_a_plain_network(self, head):
        model = shaken(head, TabM({"item": 5}, numeric=("price",), dim=3, hidden=(6, 4), members=1))
        torch.testing.assert_close(model(X), member(model, 0)(X))

    def test_training_starts_unbiased(self, head):
        model = Model(BACKBONE, head).prepare(Y)
        torch.testing.assert_close(model(X), torch.full((N,), float(Y.mean())), rtol=1e-4, atol=0.0)

    def test_the_exported_graph_predicts_the_same(self, head):
        model = shaken(head)
        rows = torch.export.Dim("batch")
        graph = torch.export.export(
            merge_branches(model), (X,), dynamic_shapes=({name: {0: rows} for name in X},)
        ).module()
        for rows in (slice(0, N), slice(2, 5)):
            batch = {name: column[rows] for name, column in X.items()}
            torch.testing.assert_close(graph(batch), model(batch))


def test_members_start_different_and_share_their_matrices():
    model = Model(BACKBONE, MSE())
    first, second = (module for module in model.network.modules() if hasattr(module, "r"))
    assert first.weight.shape == (6, 3 + 1 + 4)
    assert (first.r[0] != first.r[1]).all()
    assert (first.r[:, :3] == first.r[:, :1]).all()  # one scale for all the features of a column
    assert (first.r[:, 4:] == first.r[:, 4:5]).all()
    assert all((scale == 1.0).all() for scale in (first.s, second.r, second.s))


def test_rows_do_not_depend_on_their_batch():
    model = shaken(LogSUN())
    batch = {name: column[4:7] for name, column in X.items()}
    torch.testing.assert_close(model(batch), model(X)[4:7])
    assert model({name: column[:0] for name, column in X.items()}).shape == (0,)


def test_losses_over_pairs_of_rows_stay_within_a_member():
    model = shaken(Ranked(MSE()))
    members = [member(model, index) for index in range(K)]
    for name, term in model.loss(X, Y).items():
        torch.testing.assert_close(term, torch.stack([alone.loss(X, Y)[name] for alone in members]).mean(0))


def test_kappa_is_the_mean_over_members():
    model = shaken(LogSUN())
    preds, kappas = predict_with_kappa(model, ROWS)
    members = [predict_with_kappa(member(model, index), ROWS) for index in range(K)]
    torch.testing.assert_close(preds, torch.stack([pred for pred, _ in members]).mean(0).detach())
    torch.testing.assert_close(kappas, torch.stack([kappa for _, kappa in members]).mean(0).detach())


class TestCorrections:
    def test_a_correction_is_learned_from_every_member(self):
        model = shaken(LogMSE())
        corrected = calibrate(model, WEIGHTED, Smearing())
        u = torch.cat([member(model, index).raw(X)[0][:, 0] for index in range(K)]).double().detach()
        weight = WEIGHTED.weight.repeat(K).double()
        residuals = Y.repeat(K).double().log1p() - u
        # Duan's smearing estimate, written out: the mean of e^(u + residual) - 1 over all residuals.
        factor = (weight * residuals.exp()).sum() / weight.sum()
        expected = (u.exp() * factor - 1).clamp(min=0.0).reshape(K, N).mean(0)
        torch.testing.assert_close(predict(corrected, ROWS).double(), expected, rtol=2e-3, atol=1e-3)

    def test_totals_are_right_after_balancing(self):
        model = shaken(LogMSE())
        pred = predict(calibrate(model, WEIGHTED, TotalRatio()), WEIGHTED)
        total = (WEIGHTED.weight * Y).sum()
        torch.testing.assert_close((WEIGHTED.weight * pred).sum(), total, rtol=1e-4, atol=0.0)
        torch.testing.assert_close(predict(balance(model, ROWS), ROWS).sum(), Y.sum(), rtol=1e-4, atol=0.0)


class TestTraining:
    @pytest.mark.parametrize("head", [LogSUN(), GTS(Poisson(), shared="all"), Ranked(MSE())], ids=dumps)
    def test_learns(self, head):
        model = Model(BACKBONE, head)
        fit(model, WEIGHTED, Recipe(epochs=30, batch_size=4))
        assert evaluate(model, ROWS)["NRMSE"] < evaluate(Model(BACKBONE, head).prepare(Y), ROWS)["NRMSE"]

    @pytest.mark.parametrize("optimiser", [Adam(0.01), RowWise(0.05, Adam(0.01))], ids=dumps)
    def test_resuming_continues_bit_for_bit(self, optimiser, tmp_path):
        recipe, models = Recipe(epochs=3, batch_size=4, optimiser=optimiser), [Model(BACKBONE, LogSUN()) for _ in "ab"]

        def stop(step):
            if step.step == 4:
                raise KeyboardInterrupt

        fit(models[0], ROWS, recipe, valid=WEIGHTED)
        with pytest.raises(KeyboardInterrupt):
            fit(Model(BACKBONE, LogSUN()), ROWS, recipe, valid=WEIGHTED, resume=tmp_path / "state.pt", on_step=stop)
        fit(models[1], ROWS, recipe, valid=WEIGHTED, resume=tmp_path / "state.pt")
        assert torch.equal(predict(models[0], ROWS), predict(models[1], ROWS))

    def test_warm_start_keeps_the_base(self):
        base = shaken(LogMSE())
        model = Model(BACKBONE, LogSUN(shared=1)).prepare(Y, base).eval()
        torch.testing.assert_close(model.over_members(model.head.undebiased(model.raw(X))), base(X))

    def test_tables_grow_and_old_ids_keep_their_predictions(self):
        model = shaken(LogSUN())
        larger = grow(model, {"item": 9})
        assert larger.backbone.members == K
        torch.testing.assert_close(larger(X), model(X), rtol=0.0, atol=0.0)


def test_a_bias_branch_of_members_beside_a_users_module():
    host = torch.nn.Linear(2, 1)
    trunk = Custom(
        lambda: torch.nn.Sequential(torch.nn.Linear(2, 4 * K), torch.nn.Unflatten(1, (K, 4)), torch.nn.Flatten(0, 1)),
        4,
        K,
    )
    model = debias(host, squared, backbone=trunk).prepare(Y).eval()
    x = torch.randn(N, 2, generator=torch.Generator().manual_seed(0))
    u, z = model.raw(x)
    torch.testing.assert_close(u, host(x).repeat_interleave(K, 0))
    assert z.shape == (N * K, 1)
    assert model(x).shape == (N,)


TABLE = {"shop": ["a", "b", "c", "a"] * 8, "size": np.linspace(1, 9, 32), "gmv": np.linspace(1, 20, 32)}


class TestTable:
    small = staticmethod(partial(tabm, dim=3, hidden=(8,), members=K))

    def trained(self, head):
        return train(TABLE, "gmv", head, backbone=self.small, recipe=Recipe(epochs=2, batch_size=8))

    def test_features_become_columns(self):
        backbone = self.trained(MSE()).model.backbone
        assert isinstance(backbone, TabM)
        assert backbone.ids == {"shop": 4}
        assert len(backbone.ranks) == 1

    @pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
    def test_export(self, suffix, tmp_path):
        assert export(self.trained(LogSUN()), tmp_path / f"model{suffix}").difference < 1e-4

    def test_save_load_and_update(self, tmp_path):
        trained = self.trained(LogSUN())
        trained.save(tmp_path)
        loaded = load(tmp_path)
        torch.testing.assert_close(loaded.predict(TABLE), trained.predict(TABLE), rtol=0.0, atol=0.0)
        updated = loaded.update(TABLE | {"shop": ["a", "b", "c", "new"] * 8})
        assert updated.model.backbone.ids == {"shop": 5}

    def test_quantiles_are_means_over_members(self):
        trained = self.trained(LogNormal())
        (chunk,) = predict_in_chunks(trained, TABLE, quantiles=[0.5])
        model, x = trained.model, trained.features.encode(TABLE)
        expected = torch.stack(
            [alone.head.distribution.quantile(alone.raw(x), 0.5) for alone in (member(model, i) for i in range(K))]
        ).mean(0)
        torch.testing.assert_close(chunk.quantiles[0.5], expected.detach())
        torch.testing.assert_close(chunk.pred, trained.predict(TABLE))

    def test_quantiles_of_the_estimator(self):
        x = np.linspace(0, 1, 40).reshape(-1, 1)
        y = 1 + x[:, 0]
        regressor = NetworkRegressor(LogNormal(), backbone=self.small, recipe=Recipe(epochs=1)).fit(x, y)
        assert regressor.predict(x).shape == (40,)
        assert regressor.predict_quantile(x, [0.1, 0.9]).shape == (40, 2)


def test_text_comes_back_equal():
    backbone = TabM({"a": 9}, ranks=("b",), members=4, activation=Dice())
    assert loads(dumps(backbone)) == backbone
    assert loads(dumps(BACKBONE.grow({"item": 7}))).ids == {"item": 7}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "TabM needs at least one column"),
        ({"numeric": ("a",), "members": 0}, "TabM needs members >= 1"),
        ({"numeric": ("a",), "members": 2.5}, "TabM needs members >= 1, a whole number"),
        ({"numeric": ("a",), "hidden": ()}, "TabM needs at least one hidden layer"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        TabM(**arguments)


def test_custom_members_are_counted():
    with pytest.raises(ValueError, match="Custom needs members >= 1, a whole number, got 0"):
        Custom(torch.nn.Identity, 3, 0)
