import copy
import pickle

import pytest
import torch
from torch import nn

from registry import name
from transun.backbones import Constant, Custom, EmbeddingMLP
from transun.corrections import BinnedSmearing, NormalTheory, SecondOrder, Smearing, SmoothIsotonic
from transun.data import Dataset, OrderLog
from transun.heads import MSE, Credible, LogMSE, Multicalibrated, PointHead, Scaled
from transun.losses import absolute, squared
from transun.metrics import PGR, XAUC
from transun.models.network import Model
from transun.models.spec import dumps
from transun.models.user_module import debias
from transun.schemes import Additive, ReciprocalPoint
from transun.training.averaging import EMA
from transun.training.calibration import balance, calibrate, shrink
from transun.training.evaluation import evaluate, measure, predict
from transun.training.loop import fit
from transun.training.optimisers import SGD, Adam, AdamW, linear
from transun.training.recipe import Recipe, plain_recipe
from transun.transforms import Identity, Log1p

LOG = OrderLog(orders=40_000, users=50, items=40, history=0)
TRAIN, HELD_OUT, TEST = LOG.dataset(stop=25_000), LOG.dataset(25_000, 30_000), LOG.dataset(30_000)
NETWORK = EmbeddingMLP(LOG.sizes, numeric=("log_price",), dim=4, hidden=(32, 16))
X = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] + torch.randn(300, generator=torch.Generator().manual_seed(1))).exp()
DATA = Dataset(X, Y)


class Net(nn.Module):
    """A user's network with everything that could move during training: weights, dropout, running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5))
        self.last = nn.Linear(8, 1)

    def encode(self, batch):
        return self.body(batch)

    def forward(self, batch):
        return self.last(self.encode(batch))


def hidden():
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU())


def net(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Net()


@pytest.fixture(scope="module")
def log_model():
    model = Model(NETWORK, LogMSE())
    fit(model, TRAIN, Recipe(Adam(1e-2), epochs=4, batch_size=256))
    return model


class TestCalibrate:
    @pytest.mark.parametrize("correction", [Smearing(), BinnedSmearing(), SmoothIsotonic()], ids=name)
    def test_totals_are_right_on_rows_never_seen(self, log_model, correction):
        assert evaluate(log_model, TEST, [PGR])["PGR"] < 0.8
        meter = measure(calibrate(log_model, HELD_OUT, correction), TEST, [PGR])
        # As many rows to learn from as half of those to test on: thrice the variance in all.
        assert abs(meter.compute()["PGR"] - 1.0) < 4 * 3**0.5 * meter.standard_errors()["PGR"]

    @pytest.mark.parametrize("correction", [NormalTheory(), Smearing(), SmoothIsotonic()], ids=name)
    def test_order_survives(self, log_model, correction):
        before = evaluate(log_model, TEST, [XAUC])["XAUC"]
        after = evaluate(calibrate(log_model, HELD_OUT, correction), TEST, [XAUC])["XAUC"]
        assert after == pytest.approx(before, abs=1e-3)

    def test_leaves_the_model_alone(self, log_model):
        head, before = log_model.head, copy.deepcopy(log_model.state_dict())
        corrected = calibrate(log_model.train(), HELD_OUT, Smearing())
        assert corrected.training
        assert log_model.training
        log_model.eval()
        assert log_model.head is head
        assert all(torch.equal(value, before[key]) for key, value in log_model.state_dict().items())
        for one, other in zip(log_model.parameters(), corrected.parameters(), strict=True):
            assert torch.equal(one, other)
            assert one is not other

    def test_dropout_is_off(self):
        """paper/methods.md §8: residuals computed with dropout on are too wide."""
        data = Dataset(X, Y)
        model = Model(Custom(lambda: nn.Sequential(nn.Linear(3, 32), nn.Dropout(0.5)), 32), LogMSE())
        fit(model, data, plain_recipe(epochs=20))
        expected = (model.head.point(model.raw(X)) - Y.log1p()).square().mean().sqrt()
        learned = calibrate(model.train(), data, NormalTheory()).head.correction.sigma
        torch.testing.assert_close(learned, expected)

    def test_batches_and_weights(self, log_model):
        weight = torch.linspace(0.0, 1.0, len(HELD_OUT))
        weighted = Dataset(HELD_OUT.x, HELD_OUT.y, weight)
        models = [calibrate(log_model, weighted, NormalTheory(), batch_size=size) for size in (777, 10_000)]
        u = log_model.head.point(log_model.raw(HELD_OUT.x))
        expected = ((u - HELD_OUT.y.log1p()).square() * weight).sum() / weight.sum()
        for model in models:
            torch.testing.assert_close(model.head.correction.sigma.square(), expected)
        plain = calibrate(log_model, HELD_OUT, NormalTheory()).head.correction.sigma
        assert abs(plain - expected.sqrt()) > 1e-4

    def test_export_and_state_dict(self, log_model):
        corrected = calibrate(log_model, HELD_OUT, SmoothIsotonic())
        batch = next(iter(TEST.batches(50))).x
        exported = torch.export.export(corrected, (batch,)).module()
        torch.testing.assert_close(exported(batch), corrected(batch))
        again = calibrate(log_model, TEST, SmoothIsotonic())
        assert not torch.equal(again(batch), corrected(batch))
        again.load_state_dict(corrected.state_dict())
        assert torch.equal(again(batch), corrected(batch))

    def test_under_a_scale(self):
        data = Dataset(X, 1e6 * Y)
        model = Model(Constant(), Scaled(LogMSE()))
        fit(model, data, plain_recipe())
        corrected = calibrate(model, data, SecondOrder())
        # ln(1 + y/c): c·(eᵘ - 1 + ½eᵘσ²)
        u, sigma = model.head.point(model.raw(X[:1])).double(), corrected.head.correction.sigma.double()
        expected = model.head.scale * (u.expm1() + 0.5 * u.exp() * sigma**2)
        torch.testing.assert_close(corrected(X[:1]).double(), expected, rtol=1e-5, atol=0.0)

    def test_untrained_models_are_refused(self):
        with pytest.raises(ValueError, match="fit it first"):
            calibrate(Model(NETWORK, LogMSE()), HELD_OUT, Smearing())


class TestShrink:
    def test_a_branch_that_has_learned_noise_is_not_believed(self):
        """Ratios that have nothing to do with the targets: c is a slope around 0 of standard error 0.6/√2000 at most.

        Where the slope is negative, c is 0. The total of the rows is right in any case.
        """
        generator = torch.Generator().manual_seed(0)
        x = {"a": torch.randn(2_000, generator=generator)}
        data = Dataset(x, torch.rand(2_000, generator=generator) + 0.5)
        model = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), Multicalibrated(MSE(), shared="all"))
        model.prepare(data.targets())
        with torch.no_grad():
            model.network.outputs[0].weight.zero_()
            model.network.outputs[1].weight.fill_(1.0)
        shrunk = shrink(model, data)
        assert shrunk.head.credibility < 0.1
        assert float(predict(shrunk, data).double().sum() / data.y.double().sum()) == pytest.approx(1.0, rel=1e-5)
        assert isinstance(shrunk.head, Credible)
        assert dumps(model.head).startswith("Scaled(GTS(")

    def test_heads_without_a_bias_branch_are_refused(self):
        model = Model(Constant(), LogMSE()).prepare(Y)
        with pytest.raises(ValueError, match="has none"):
            shrink(model, DATA)


class TestDebias:
    def test_totals_are_right_beside_a_log_trained_module(self, log_model):
        """The user's module predicts eᶠ - 1 of a log-trained net: too low by a fifth; with z it is within 4 σ."""
        assert evaluate(log_model, TEST, [PGR])["PGR"] < 0.8
        model = debias(log_model, absolute, backbone=NETWORK)
        fit(
            model,
            TRAIN,
            Recipe(Adam(1e-2), epochs=4, batch_size=256),
        )
        meter = measure(model, TEST, [PGR])
        assert abs(meter.compute()["PGR"] - 1.0) < 4 * meter.standard_errors()["PGR"] + 0.03  # as in test_training
        torch.testing.assert_close(model.head.undebiased(model.raw(TEST.x)), predict(log_model, TEST))

    def test_a_module_that_estimates_the_transformed_target(self, log_model):
        class LogNet(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = copy.deepcopy(log_model.network)

            def forward(self, batch):
                return self.network(batch)[0]

        model = debias(LogNet(), squared, transform=Log1p(), backbone=NETWORK)
        model.prepare(TRAIN.targets())
        torch.testing.assert_close(model.head.undebiased(model.raw(TEST.x)), predict(log_model, TEST))
        terms = model.loss(TEST.x, TEST.y)
        torch.testing.assert_close(terms["inner.point"], log_model.loss(TEST.x, TEST.y)["point"])

    @pytest.mark.parametrize("features", [None, Net.encode], ids=["batch", "features"])
    def test_frozen_means_not_one_bit(self, features):
        host = net().train()
        before = copy.deepcopy(host.state_dict())
        arguments = {"backbone": Custom(hidden, 16)}
        if features:
            arguments = {"backbone": Custom(nn.Identity, 8), "features": features}
        model = debias(host, squared, **arguments)
        branch = copy.deepcopy(model.network.branch.state_dict())
        optimiser = AdamW(0.05, weight_decay=0.5)
        history = fit(
            model,
            DATA,
            plain_recipe(optimiser=optimiser, epochs=3, batch_size=50, averaging=EMA(0.9), clip=1.0),
            valid=DATA,
        )
        kept = model.network.host.module.state_dict()
        assert before.keys() == kept.keys()
        assert all(torch.equal(value, before[key]) for key, value in kept.items())
        assert all(torch.equal(value, before[key]) for key, value in host.state_dict().items())
        assert any(not torch.equal(value, branch[key]) for key, value in model.network.branch.state_dict().items())
        # The caller's own object is as it was: in training mode, its weights open.
        assert host.training
        assert all(parameter.requires_grad for parameter in host.parameters())
        assert len({step.terms["bias"] for step in history.steps}) > 1

    def test_a_frozen_module_answers_the_same_in_training_mode(self):
        model = debias(net(), squared, backbone=Custom(nn.Identity, 8), features=Net.encode).prepare(Y)
        first, second = model.train().raw(X), model.train().raw(X)
        assert model.network.branch.training
        assert all(map(torch.equal, first, second))
        assert torch.equal(first[0], net().eval()(X))

    def test_thawed_it_trains_by_its_own_loss_alone(self):
        """One step of SGD on the module is the step it would have made without the bias branch."""
        host = net()
        model = debias(host, squared, backbone=Custom(hidden, 16), freeze=False)
        fit(model, DATA, plain_recipe(optimiser=SGD(0.1), batch_size=len(Y), seed=3))
        alone = copy.deepcopy(host).train()
        with torch.random.fork_rng():
            torch.manual_seed(3)
            rows = next(iter(DATA.batches(len(Y), seed=3 * 1_000_003)))
            squared(alone(rows.x).squeeze(1), rows.y).mean().backward()
        for parameter, trained in zip(alone.parameters(), model.network.host.module.parameters(), strict=True):
            assert (parameter.grad != 0.0).any()
            torch.testing.assert_close(trained, parameter - 0.1 * parameter.grad)

    def test_thawed_features_feel_the_bias_branch(self):
        for freeze, touched in ((False, True), (True, False)):
            model = debias(net(), squared, backbone=Custom(nn.Identity, 8), features=Net.encode, freeze=freeze)
            model.prepare(Y)
            nn.init.ones_(model.network.branch.outputs[0].weight)
            model.loss(X, Y)["bias"].mean().backward()
            weight = model.network.host.module.body[0].weight
            assert (weight.grad is not None and bool((weight.grad != 0.0).any())) == touched
            assert model.network.host.module.last.weight.grad is None

    @pytest.mark.parametrize("squeeze", [False, True])
    def test_plain_linear_regressor(self, squeeze):
        """|y - f| leaves a linear module at the median; the branch brings the totals up to the mean."""
        linear_module = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)) if squeeze else nn.Linear(3, 1)
        nn.init.zeros_(next(linear_module.parameters()))
        nn.init.constant_(list(linear_module.parameters())[1], Y.median().item())
        model = debias(linear_module, absolute, backbone=Custom(nn.Identity, 3))
        assert Y.median() < 0.7 * Y.mean()
        fit(model, DATA, plain_recipe(optimiser=Adam(0.02), epochs=100, batch_size=100, decay=linear))
        # κ is the same for all rows here, so a free output bias makes the training total exact.
        assert evaluate(model, DATA, [PGR])["PGR"] == pytest.approx(1.0, abs=0.01)

    @pytest.mark.parametrize("scheme", [ReciprocalPoint(0.5), Additive()], ids=name)
    def test_prediction_is_decoded_by_the_scheme(self, scheme):
        host = net().eval()
        model = debias(host, squared, backbone=Custom(hidden, 16), scheme=scheme, seed=4)
        nn.init.normal_(model.network.branch.outputs[0].weight)
        estimate, z = host(X).squeeze(1), model.network.branch(X)[0].squeeze(1)
        expected = z * (estimate.abs() + 0.5) if scheme == ReciprocalPoint(0.5) else z + estimate
        torch.testing.assert_close(model(X), expected)

    def test_starts_at_the_mean_of_a_constant_module(self):
        model = debias(nn.Linear(3, 1), squared, backbone=Custom(hidden, 16)).prepare(Y.double())
        nn.init.zeros_(model.network.host.module.weight)
        nn.init.constant_(model.network.host.module.bias, Y.mean().item())
        torch.testing.assert_close(model(X), Y.mean().expand(300))

    def test_same_seed_same_branch(self):
        models = [debias(net(host), squared, backbone=Custom(hidden, 16), seed=seed) for host, seed in ((0, 5), (1, 5))]
        other = debias(net(), squared, backbone=Custom(hidden, 16), seed=6)
        weights = [model.network.branch.stacks[0][0][0].weight for model in (*models, other)]
        assert torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[0], weights[2])

    def test_export_copy_pickle_and_state_dict(self):
        model = debias(net(), squared, backbone=Custom(nn.Identity, 8), features=Net.encode)
        fit(model, DATA, plain_recipe(epochs=2))
        batch = torch.export.Dim("batch")
        exported = torch.export.export(model, (X[:9],), dynamic_shapes=({0: batch},)).module()
        torch.testing.assert_close(exported(X), model(X))
        again = debias(net(7), squared, backbone=Custom(nn.Identity, 8), features=Net.encode, seed=7).eval()
        assert not torch.allclose(again(X), model(X))
        again.load_state_dict(model.state_dict())
        for twin in (again, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(twin(X), model(X))

    def test_text_that_would_lose_the_module_is_refused(self):
        model = debias(net(), squared, backbone=NETWORK)
        assert dumps(NETWORK)
        with pytest.raises(ValueError, match="cannot write your Net as text: keep the state_dict"):
            dumps(model.backbone)

    def test_corrections_go_on_top(self):
        """A bias branch that has learned nothing about x is put right by the correction."""
        model = debias(nn.Linear(3, 1), squared, backbone=Constant()).prepare(Y.double())
        corrected = calibrate(model, DATA, Smearing())
        assert predict(corrected, DATA).mean().item() == pytest.approx(Y.mean().item(), rel=1e-4)
        assert predict(model, DATA).mean().item() != pytest.approx(Y.mean().item(), rel=1e-2)

    @pytest.mark.parametrize(
        ("module", "shape"),
        [
            (nn.Linear(3, 2), r"for 300 rows it returned \(300, 2\)"),
            (nn.Sequential(nn.Linear(3, 1), nn.Unflatten(1, (1, 1))), r"it returned \(300, 1, 1\)"),
            (nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), r"it returned \(600,\)"),
        ],
        ids=["two outputs", "one axis too many", "two a row"],
    )
    @pytest.mark.parametrize("freeze", [True, False])
    def test_wrong_outputs_are_named(self, module, shape, freeze):
        model = debias(module, squared, backbone=Constant(), freeze=freeze)
        with pytest.raises(ValueError, match=rf"one estimate per row, \(B,\) or \(B, 1\); .*{shape}"):
            fit(model, DATA, plain_recipe())

    def test_losses_that_are_already_averaged_are_refused(self):
        with pytest.raises(ValueError, match=r"one cost per row, \(B,\); for 3 rows this one returned \(\)"):
            debias(nn.Linear(3, 1), nn.functional.mse_loss, backbone=Constant())
        debias(nn.Linear(3, 1), nn.MSELoss(reduction="none"), backbone=Constant())


class TestBalance:
    """One factor from rows that are not for testing."""

    def draw(self, n, seed, level=3.0):
        generator = torch.Generator().manual_seed(seed)
        return Dataset({"a": torch.zeros(n)}, level * torch.randn(n, generator=generator).exp())

    def model(self):
        return Model(Constant(), LogMSE()).prepare(torch.tensor([1.0, 7.0]))

    def test_both_count_by_the_inverse_of_their_squared_error(self):
        train, valid = self.draw(2_000, 0), self.draw(300, 1, level=5.0)
        model = self.model()
        said = float(predict(model, train)[0])
        ratios = [float(part.y.mean()) / said for part in (train, valid)]
        precision = [len(part) / float(((part.y - said) ** 2).mean()) for part in (train, valid)]
        expected = sum(r * p for r, p in zip(ratios, precision, strict=True)) / sum(precision)
        balanced = balance(model, train, valid)
        assert float(predict(balanced, valid)[0]) == pytest.approx(expected * said, rel=1e-5)

    @pytest.mark.parametrize("unit", [2.0**-100, 1.0, 2.0**100])
    @pytest.mark.parametrize("head", [Scaled(MSE()), Scaled(PointHead(Identity(lower=0.0)))], ids=name)
    def test_the_unit_of_the_amounts_does_not_matter(self, head, unit):
        """It predicts 4, with squared errors of 9 and 5/2 a row: (8/9 + 5·2/5) / (2/9 + 2·2/5) = 65/23."""
        train, valid = (Dataset({"a": [0.0, 0.0]}, [unit * y for y in amounts]) for amounts in ([1, 7], [2, 3]))
        model = Model(Constant(), head).prepare(train.targets())
        assert float(predict(balance(model, train, valid), train)[0]) / unit == pytest.approx(65 / 23, rel=1e-5)

    def test_one_huge_validation_row_does_not_decide(self):
        train, valid = self.draw(2_000, 0), self.draw(100, 1)
        valid.y[7] = 1e6  # by rows alone the factor would be 160
        balanced = balance(self.model(), train, valid)
        assert evaluate(balanced, train)["PGR"] == pytest.approx(1.0, abs=0.01)

    def test_rows_without_error_count_alike(self):
        train, valid = Dataset({"a": [0.0]}, [3.0]), Dataset({"a": [0.0]}, [5.0])
        model = Model(Constant(), MSE()).prepare(torch.tensor([3.0, 3.0]))
        assert float(predict(balance(model, train, valid), train)[0]) == pytest.approx(4.0)

    def test_without_validation_rows(self):
        train = self.draw(50, 0)
        assert evaluate(balance(self.model(), train), train)["PGR"] == pytest.approx(1.0, abs=1e-5)

    def test_signed_heads_are_shifted(self):
        """A factor would turn the order round where the total is negative."""
        data = Dataset({"a": torch.zeros(4)}, torch.tensor([-5.0, 1.0, 1.0, 1.0]))
        model = Model(Constant(), MSE()).prepare(torch.tensor([2.0, 2.0]))
        assert predict(balance(model, data), data).tolist() == pytest.approx([-0.5] * 4)

    def test_weights_count(self):
        data = Dataset({"a": torch.zeros(2)}, torch.tensor([1.0, 9.0]), torch.tensor([3.0, 1.0]))
        assert predict(balance(self.model(), data), data).tolist() == pytest.approx([3.0, 3.0])
