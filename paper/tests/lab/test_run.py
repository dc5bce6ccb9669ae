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
from transun.training.loop import fit
from transun.training.optimisers import SGD, Adam, cosine
from transun_paper.lab.encoded_dataset import Frozen
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
    assert json.loads(again.text)["training"] == "Recipe(SGD(0.1), 3, 512, cosine, None, patience=None)"
    assert again != run.with_seed(8)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_has_a_text(method):
    run = Run("tiny-0", method.head, correction=method.correction)
    assert Run.parse(run.text).text == run.text


def test_methods_have_names_of_their_own():
    assert len({method.name for method in METHODS}) == len(METHODS)


def test_a_report_is_what_fit_and_the_metrics_say(frozen):
    report = execute([Run("tiny-0", LogSUN(), TRAINING, NET, seed=4)], frozen)[0]
    model = Model(NET.build(frozen), LogSUN(), 4)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging, "seed": 4}
    fit(model, frozen.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=frozen.valid, progress=False)
    pred, y = predict(model, frozen.test).double().numpy(), frozen.test.y.double().numpy()
    found = report["metrics"]
    assert found["STRE"] == pytest.approx((pred - y).sum() / pred.sum(), abs=1e-4)
    assert found["NRMSE"] == pytest.approx(math.sqrt(np.square(pred - y).mean()) / y.mean(), rel=1e-4)
    assert found["SMRE"] == pytest.approx(((pred - y) / pred).mean(), abs=1e-4)
    train = predict(model, frozen.train).double().numpy()
    assert report["train"]["PGR"] == pytest.approx(train.mean() / frozen.train.y.double().numpy().mean(), rel=1e-4)
    assert report["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert report["bytes"] == 4 * report["parameters"]
    assert report["steps"] == 2 * math.ceil(500 / 64)
    json.dumps(report, allow_nan=False)


def test_company_changes_nothing(frozen):
    run = Run("tiny-0", LogSUN(), TRAINING, NET)
    alone = execute([run], frozen)[0]
    company = execute([run, run.with_seed(1), run.with_seed(2)], frozen)
    assert company[0]["metrics"] == pytest.approx(alone["metrics"], rel=1e-4)
    assert company[1]["metrics"]["NRMSE"] != company[0]["metrics"]["NRMSE"]
    assert company[0]["lanes"] == 3


def test_corrections_read_the_same_model(frozen):
    run = Run("tiny-0", LogMSE(), TRAINING, NET)
    corrected = [Run("tiny-0", LogMSE(), TRAINING, NET, correction) for correction in (Smearing(), NormalTheory())]
    plain, smeared, normal = execute([run, *corrected], frozen)
    assert plain["looks"] == smeared["looks"] == normal["looks"]
    model = Model(NET.build(frozen), LogMSE(), 0)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging}
    fit(model, frozen.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=frozen.valid, progress=False)
    expected = predict(calibrate(model, frozen.valid, Smearing()), frozen.test).mean() / frozen.test.y.mean()
    assert smeared["metrics"]["PGR"] == pytest.approx(float(expected), rel=1e-4)
    assert plain["metrics"]["PGR"] < smeared["metrics"]["PGR"]


def test_the_slope_by_bin_is_that_of_the_head(frozen):
    report = execute([Run("tiny-0", LogSUN(), TRAINING, NET)], frozen)[0]
    bins = report["bins"]["target"]
    model = Model(NET.build(frozen), LogSUN(), 0)
    options = {"epochs": 2, "batch_size": 64, "averaging": TRAINING.averaging}
    fit(model, frozen.train, lab_recipe(optimiser=Adam(1e-2), **options), valid=frozen.valid, progress=False)
    base = model.head.undebiased(model.raw(frozen.test.x)).detach().double().numpy()
    order = np.argsort(frozen.test.y.numpy(), kind="stable")
    first = order[: int(bins["count"][0])]
    assert bins["slope"][0] == pytest.approx((1.0 / (base[first] + 1.0)).mean(), rel=1e-4)
    assert len(bins["slope"]) == len(bins["count"]) == 20
    assert sum(bins["count"]) == len(frozen.test)
    assert "slope" not in execute([Run("tiny-0", LogMSE(), TRAINING, NET)], frozen)[0]["bins"]["target"]


def test_a_network_that_cannot_be_stacked_is_trained_in_turn(frozen):
    run = Run("tiny-0", LogMSE(), TRAINING, MLP(dim=4, hidden=(8,), dropout=0.2))
    reports = execute([run, run.with_seed(1)], frozen)
    assert [report["lanes"] for report in reports] == [1, 1]
    assert all(math.isfinite(report["metrics"]["NRMSE"]) for report in reports)


def test_a_refusal_and_a_divergence_are_reports(frozen):
    negative = Dataset(frozen.train.x, -frozen.train.y)
    refused = Frozen("tiny", negative, frozen.valid, frozen.test, frozen.ids, frozen.bags, frozen.numeric)
    run = Run("tiny-0", LogMSE(), TRAINING, NET)
    assert "target" in execute([run], refused)[0]["failed"]
    diverging = Run("tiny-0", LogMSE(), lab_recipe(optimiser=SGD(1e20), batch_size=32), NET)
    assert "became" in execute([diverging], frozen)[0]["failed"]


def test_runs_of_different_models_are_not_one_job(frozen):
    with pytest.raises(ValueError, match="group them"):
        execute([Run("tiny-0", LogMSE()), Run("tiny-0", LogSUN())], frozen)
