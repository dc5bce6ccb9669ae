"""A tracker gets what the history has, once a check, on one rank; it changes nothing and survives interruptions."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from rank_jobs import Recorder
from transun import NetworkRegressor, Recipe, train
from transun.backbones import EmbeddingMLP, Trees
from transun.data import Dataset, OrderLog
from transun.heads import MSE, LogSUN, Poisson, Scaled
from transun.models.network import Model
from transun.training.loop import fit
from transun.training.mixing import fit_parts
from transun.training.recipe import plain_recipe
from transun.training.row_split import RowSplit

LOG = OrderLog(orders=1200, users=30, items=20, history=2)
DATA, VALID = LOG.dataset(stop=1000), LOG.dataset(1000)
NETWORK = EmbeddingMLP(LOG.sizes, {"history": "item"}, dim=2, hidden=(8,), dropout=0.3)
# 10 steps an epoch, of which there are two, and a check every 4 steps.
RECIPE = plain_recipe(epochs=2, batch_size=100, checks_per_epoch=3)
CHECKED = [4, 8, 12, 16, 20]


class Drawing(Recorder):
    """A tracker that draws random numbers, as whoever draws a sample of weights would."""

    def log(self, step, values):
        super().log(step, values)
        torch.rand(7)
        torch.manual_seed(0)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def trained(tracker=None, *, valid=VALID, recipe=RECIPE, **settings):
    model = Model(NETWORK, LogSUN())
    return model, fit(model, DATA, recipe, valid=valid, tracker=tracker, **settings)


@pytest.mark.parametrize("valid", [VALID, None], ids=["validation rows", "none"])
def test_numbers_are_those_of_the_steps_and_checks(valid):
    tracker, steps = Recorder(), []
    _, history = trained(tracker, valid=valid, on_step=steps.append)
    assert [step for step, _ in tracker.calls] == CHECKED
    for (stop, values), check in zip(tracker.calls, history.checks or [None] * 5, strict=True):
        since = steps[stop - 4 : stop]
        assert values.pop("loss/total") == pytest.approx(np.mean([sum(step.terms.values()) for step in since]))
        assert values.pop("learning_rate") == since[-1].rate
        for term in since[0].terms:
            assert values.pop(f"loss/{term}") == pytest.approx(np.mean([step.terms[term] for step in since]))
        assert values == ({} if check is None else {f"valid/{name}": value for name, value in check.values.items()})


def test_a_tracker_changes_no_result():
    plain, history = trained()
    tracked, same = trained(Drawing())
    assert torch.equal(weights(plain), weights(tracked))
    assert (same.steps, same.checks) == (history.steps, history.checks)


@pytest.mark.parametrize("valid", [VALID, None], ids=["validation rows", "none"])
@pytest.mark.parametrize("at", [5, 7, 19])
def test_a_resumed_training_tracks_the_same_numbers(at, valid, tmp_path):
    def stop(step):
        if step.step == at:
            raise KeyboardInterrupt

    whole, tracker = Recorder(), Recorder()
    trained(whole, valid=valid)
    with pytest.raises(KeyboardInterrupt):
        trained(tracker, valid=valid, resume=tmp_path / "state.pt", on_step=stop)
    interrupted = [step for step, _ in tracker.calls]
    assert interrupted == [step for step in CHECKED if step <= at + 1]
    trained(tracker, valid=valid, resume=tmp_path / "state.pt")
    # Only where there are no validation rows, whose checks are remembered, may a step come twice, with equal numbers.
    assert len(tracker.calls) <= len(whole.calls) + (valid is None)
    assert dict(tracker.calls) == dict(whole.calls)
    assert all(values == dict(whole.calls)[step] for step, values in tracker.calls)


def test_the_finish_is_numbered_on():
    tracker = Recorder()
    trained(tracker, recipe=plain_recipe(epochs=1, batch_size=100, finish=2))
    assert [step for step, _ in tracker.calls] == [10, 20, 30]


def test_folds_have_names_of_their_own():
    a = torch.arange(400.0) % 7
    data = Dataset({"a": a}, 1.0 + a)
    tracker = Recorder()
    model = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), Scaled(Poisson()))
    recipe = Recipe(epochs=1)
    split = RowSplit.of(data, None, recipe)
    _, history = fit_parts(model, split, Trees(numeric=("a",)), recipe, tracker=tracker, progress=False)
    prefixes = [next(iter(values)).partition("/")[0] for _, values in tracker.calls]
    assert prefixes == [f"fold_{number}" for number in range(1, history.mixtures + 1)]
    assert history.mixtures > 1


def test_train_and_the_regressor_pass_it_on():
    table = {"item": [1, 2] * 100, "gmv": [1.0, 3.0] * 100}
    tracker = Recorder()
    model = train(table, "gmv", MSE(), recipe=Recipe(epochs=2), tracker=tracker, progress=False)
    assert [step for step, _ in tracker.calls] == [check.step for check in model.history.checks]
    model.update(table, Recipe(epochs=1), tracker=tracker, progress=False)
    assert len(tracker.calls) == len(model.history.checks) + 1
    regressor = clone(NetworkRegressor(MSE(), recipe=Recipe(epochs=2), tracker=Recorder()))
    regressor.fit(np.array([[1.0], [2.0]] * 100), np.array([1.0, 3.0] * 100))
    assert len(regressor.tracker.calls) == 2


def test_an_error_of_the_tracker_is_raised_and_leaves_a_usable_model():
    class Full:
        def log(self, step, values):
            raise OSError("the disk is full")

    model = Model(NETWORK, LogSUN())
    with pytest.raises(OSError, match="the disk is full"):
        fit(model, DATA, RECIPE, valid=VALID, tracker=Full())
    assert not model.training
