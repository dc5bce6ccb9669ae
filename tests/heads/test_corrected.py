import copy

import pytest
import torch

from registry import name, raw_for
from transun.backbones import Constant, EmbeddingMLP
from transun.corrections import BinnedSmearing, NormalTheory, SecondOrder, Smearing, SmoothIsotonic
from transun.heads import GTS, MSE, Corrected, LogMSE, LogSUN, PointHead, Ranked, Scaled
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.transforms import Arctan, Power

CORRECTIONS = [NormalTheory(), SecondOrder(), Smearing(64), BinnedSmearing(4, 16), SmoothIsotonic(10)]
INNER = [LogMSE(), PointHead(Arctan(10.0)), PointHead(Power(0.5)), Scaled(LogMSE()), LogSUN(), MSE(), Ranked(LogMSE())]
Y = torch.randn(500, generator=torch.Generator().manual_seed(0), dtype=torch.float64).exp() * 10.0
BATCH = {"a": torch.linspace(-1.0, 1.0, 9)}


def calibrated(inner, correction):
    """A head calibrated on outputs that follow the target loosely."""
    head = Corrected(inner, correction).prepare(Y)
    noise = raw_for(head, len(Y), seed=1, scale=0.3)
    raw = tuple((value.double() + head.inner.transform(Y).unsqueeze(1).expand_as(value)) for value in noise)
    return head.calibrate(raw, Y), raw


def learned(head):
    """Whether the correction differs from one that has seen nothing."""
    fresh = head.correction.unfitted().state_dict()
    return any(not torch.equal(value, fresh[key]) for key, value in head.correction.state_dict().items())


@pytest.mark.parametrize("correction", CORRECTIONS, ids=name)
@pytest.mark.parametrize("inner", INNER, ids=name)
class TestCorrected:
    def test_trains_as_its_inner_head_and_predicts_as_it_until_calibrated(self, inner, correction):
        head, inner = Corrected(inner, correction).prepare(Y), inner.prepare(Y)
        raw, y = raw_for(head, 20), Y[:20].float()
        for key, term in inner.loss(raw, y).items():
            assert torch.equal(head.loss(raw, y)[key], term)
        assert head.loss(raw, y).keys() == inner.loss(raw, y).keys()
        torch.testing.assert_close(head(raw), inner(raw))
        torch.testing.assert_close(head.undebiased(raw), inner.undebiased(raw))
        assert all(map(torch.equal, head.initial_outputs(Y), inner.initial_outputs(Y)))

    def test_calibration_changes_the_prediction_and_not_the_original(self, inner, correction):
        before = Corrected(inner, correction).prepare(Y)
        head, raw = calibrated(inner, correction)
        assert learned(head)
        assert not learned(before)
        assert torch.equal(Corrected(inner, correction).prepare(Y)(raw), before(raw))
        # The base is what debiasing started from.
        torch.testing.assert_close(head.undebiased(raw), before.undebiased(raw))

    def test_prediction_is_the_correction_of_the_inner_point(self, inner, correction):
        head, raw = calibrated(inner, correction)
        u = head.inner.point(raw)
        expected = correction.fit(u, Y, head.inner.transform)(u)
        torch.testing.assert_close(head(raw), expected)

    def test_text_and_state_dict_rebuild_it(self, inner, correction):
        head, raw = calibrated(inner, correction)
        again = loads(dumps(head))
        assert dumps(again) == dumps(head)
        assert learned(head)
        assert not learned(again)  # text alone does not carry what was learned
        again.load_state_dict(head.state_dict())
        assert torch.equal(again(raw), head(raw))

    def test_prepare_forgets(self, inner, correction):
        head, raw = calibrated(inner, correction)
        torch.testing.assert_close(head.prepare(Y)(raw), head.inner(raw))

    def test_stays_in_the_credible_range(self, inner, correction):
        head, _ = calibrated(inner, correction)
        low, high = head.inner.transform.bounds
        for scale in (1.0, 1e4, -1e4):
            pred = head(raw_for(head, 50, scale=scale))
            assert pred.isfinite().all()
            assert (pred >= low).all()
            assert (pred <= high * (1 + 1e-6)).all()

    def test_has_no_parameters(self, inner, correction):
        assert not list(Corrected(inner, correction).parameters())


@pytest.mark.parametrize("correction", CORRECTIONS, ids=name)
def test_export_equals_eager(correction):
    head, _ = calibrated(LogMSE(), correction)
    model = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), head).eval()
    batch = torch.export.Dim("batch")
    exported = torch.export.export(model, (BATCH,), dynamic_shapes=({"a": {0: batch}},)).module()
    for rows in (9, 4):
        part = {"a": BATCH["a"][:rows]}
        torch.testing.assert_close(exported(part), model(part))
    assert not torch.allclose(model(BATCH), model.head.undebiased(model.raw(BATCH)))


def test_gts_around_a_corrected_head_starts_at_the_mean():
    head = GTS(Corrected(LogMSE(), Smearing())).prepare(Y)
    start = tuple(value.unsqueeze(0) for value in head.initial_outputs(Y))
    assert head(start).item() == pytest.approx(Y.mean().item(), rel=1e-6)


def test_weights_reach_the_correction():
    head = Corrected(LogMSE(), Smearing()).prepare(Y)
    raw = (head.initial_outputs(Y)[0].expand(len(Y), 1),)
    weight = torch.linspace(0.0, 1.0, len(Y), dtype=torch.float64)
    expected = (Y * weight).sum() / weight.sum()
    assert head.calibrate(raw, Y, weight)(raw)[0].item() == pytest.approx(expected.item(), rel=1e-4)
    assert head.calibrate(raw, Y)(raw)[0].item() == pytest.approx(Y.mean().item(), rel=1e-4)


def test_model_state_round_trip_and_copies():
    head, _ = calibrated(LogMSE(), SmoothIsotonic())
    model = Model(Constant(), head)
    torch.nn.init.constant_(model.network.outputs[0].bias, 2.0)
    again = Model(Constant(), loads(dumps(head)), seed=1)
    again.load_state_dict(model.state_dict())
    x = torch.zeros(3, 1)
    assert (model(x) > 0.0).all()
    assert torch.equal(again(x), model(x))
    clone = copy.deepcopy(model)
    clone.head.correction.after.mul_(2.0)
    assert not torch.equal(clone(x), model(x))


def test_around_a_trained_base():
    """Warm start: the correction stands around the base that is handed over."""
    base = LogMSE().prepare(Y)
    head = Corrected(LogMSE(), Smearing()).prepare(Y).wrap(base)
    assert head.inner is base
    assert head.correction.transform == base.transform
