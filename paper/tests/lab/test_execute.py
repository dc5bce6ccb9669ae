import json
import math

import numpy as np
import pytest

from transun.corrections import NormalTheory, Smearing
from transun.data import Dataset
from transun.heads import GTS, LogMSE, LogSUN, OptDist
from transun.models.network import Model
from transun.training.calibration import calibrate
from transun.training.evaluation import predict
from transun.training.fusion import fuse
from transun.training.loop import fit
from transun.training.optimisers import SGD, Adam, cosine
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.execute import execute
from transun_paper.lab.methods import METHODS
from transun_paper.lab.run import MLP, Run, lab_recipe

NET = MLP(dim=4, hidden=(8,))
TRAINING = lab_recipe(optimiser=Adam(1e-2), epochs=2, batch_size=64)


def test_a_run_survives_its_text():
    training = lab_recipe(optimiser=SGD(0.1), epochs=3, decay=cosine, averaging=None, patience=None)
    run = Run("tiny-0", GTS(OptDist(), shared=1), training, NET, Smearing(64), seed=7)
    again = Run.parse(run.text)
    assert again == run
    assert json.loads(again.text)["training"] == (
        "Recipe(SGD(0.1), 3, 512, cosine, None, monitor=NormalisedRootMeanSquaredError(), patience=None, "
        "checks_per_epoch=1)"
    )
    assert again != run.with_seed(8)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_has_a_text(method):
    run = Run("tiny-0", method.head, correction=method.correction)
    assert Run.parse(run.text).text == run.text


def test_methods_have_names_of_their_own():
    assert len({method.name for method in METHODS}) == len(METHODS)


def test_a_report_is_what_fit_and_the_metrics_say(encoded):
    report = execute([Run("tiny-0", LogSUN(), TRAINING, NET, seed=4)], encoded)[0]
    model = Model(NET.build(encoded), LogSUN(), 4)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging, "seed": 4}
    fit(model, encoded.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=encoded.valid, progress=False)
    pred, y = predict(model, encoded.test).double().numpy(), encoded.test.y.double().numpy()
    found = report["metrics"]
    assert found["STRE"] == pytest.approx((pred - y).sum() / pred.sum(), abs=1e-4)
    assert found["NRMSE"] == pytest.approx(math.sqrt(np.square(pred - y).mean()) / y.mean(), rel=1e-4)
    assert found["SMRE"] == pytest.approx(((pred - y) / pred).mean(), abs=1e-4)
    train = predict(model, encoded.train).double().numpy()
    assert report["train"]["PGR"] == pytest.approx(train.mean() / encoded.train.y.double().numpy().mean(), rel=1e-4)
    assert report["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert report["bytes"] == 4 * report["parameters"]
    assert report["steps"] == 2 * math.ceil(500 / 64)
    json.dumps(report, allow_nan=False)


def test_corrections_read_the_same_model(encoded):
    run = Run("tiny-0", LogMSE(), TRAINING, NET)
    corrected = [Run("tiny-0", LogMSE(), TRAINING, NET, correction) for correction in (Smearing(), NormalTheory())]
    plain, smeared, normal = execute([run, *corrected], encoded)
    assert plain["looks"] == smeared["looks"] == normal["looks"]
    model = Model(NET.build(encoded), LogMSE(), 0)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging}
    fit(model, encoded.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=encoded.valid, progress=False)
    expected = predict(calibrate(model, encoded.valid, Smearing()), encoded.test).mean() / encoded.test.y.mean()
    assert smeared["metrics"]["PGR"] == pytest.approx(float(expected), rel=1e-4)
    assert plain["metrics"]["PGR"] < smeared["metrics"]["PGR"]


def test_the_slope_by_bin_is_that_of_the_head(encoded):
    report = execute([Run("tiny-0", LogSUN(), TRAINING, NET)], encoded)[0]
    bins = report["bins"]["target"]
    model = Model(NET.build(encoded), LogSUN(), 0)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging}
    fit(model, encoded.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=encoded.valid, progress=False)
    base = model.head.undebiased(model.raw(encoded.test.x)).detach().double().numpy()
    order = np.argsort(encoded.test.y.numpy(), kind="stable")
    first = order[: int(bins["count"][0])]
    unit = model.head.scheme.scale  # of z, in which y·κ is 1 on average
    assert bins["slope"][0] == pytest.approx((unit / (base[first] + 1.0)).mean(), rel=1e-4)
    assert len(bins["slope"]) == len(bins["count"]) == 20
    assert sum(bins["count"]) == len(encoded.test)
    assert "slope" not in execute([Run("tiny-0", LogMSE(), TRAINING, NET)], encoded)[0]["bins"]["target"]


def test_a_refusal_and_a_divergence_are_reports(encoded):
    negative = Dataset(encoded.train.x, -encoded.train.y)
    refused = EncodedDataset("tiny", negative, encoded.valid, encoded.test, encoded.ids, encoded.bags, encoded.numeric)
    run = Run("tiny-0", LogMSE(), TRAINING, NET)
    assert "target" in execute([run], refused)[0]["failed"]
    diverging = Run("tiny-0", LogMSE(), lab_recipe(optimiser=SGD(1e20), batch_size=32), NET)
    assert "became" in execute([diverging], encoded)[0]["failed"]


def test_runs_of_different_models_are_not_one_job(encoded):
    with pytest.raises(ValueError, match="group them"):
        execute([Run("tiny-0", LogMSE()), Run("tiny-0", LogSUN())], encoded)
    with pytest.raises(ValueError, match="group them"):
        execute([Run("tiny-0", LogMSE()), Run("tiny-0", LogMSE(), seed=1)], encoded)


def test_fused_runs_share_the_model_and_predict_its_base_below_a_threshold(encoded):
    run = Run("tiny-0", LogSUN(), TRAINING, NET)
    fused = Run("tiny-0", LogSUN(), TRAINING, NET, fused=True)
    assert fused.trained == run.trained
    assert Run.parse(fused.text) == fused != run
    plain, below = execute([run, fused], encoded)
    assert plain["looks"] == below["looks"]
    model = Model(NET.build(encoded), LogSUN(), 0)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging}
    fit(model, encoded.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=encoded.valid, progress=False)
    expected = predict(fuse(model, encoded.valid), encoded.test).mean() / encoded.test.y.mean()
    assert below["metrics"]["PGR"] == pytest.approx(float(expected), rel=1e-4)
