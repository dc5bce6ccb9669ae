"""A seed trained in company takes the steps that `fit` takes alone."""

import pytest
import torch

from transun.backbones import ByCardinality, EmbeddingMLP
from transun.heads import GTS, MSE, TPM, ZILN, LogMSE, LogSUN, OptDist, Ranked, Scaled
from transun.models.network import Model
from transun.training.averaging import EMA, Tail
from transun.training.evaluation import predict
from transun.training.optimisers import SGD, AdagradDecay, Adam, linear
from transun_paper.lab.execute import fit_in_turn
from transun_paper.lab.run import MLP, lab_recipe
from transun_paper.lab.stacked_network import can_stack
from transun_paper.lab.train_seeds import fit_together

SEEDS = (3, 0, 8)
NET = MLP(dim=4, hidden=(12, 8, 6))


def both(frozen, head, training, net=NET):
    backbone = net.build(frozen)
    alone, company = ([Model(backbone, head, seed) for seed in SEEDS] for _ in range(2))
    histories = fit_in_turn(alone, frozen.train, frozen.valid, training)
    return alone, company, histories, fit_together(company, frozen.train, frozen.valid, training)


def assert_alike(frozen, alone, company, histories, together):
    for model, other, history, found in zip(alone, company, histories, together, strict=True):
        torch.testing.assert_close(predict(other, frozen.test), predict(model, frozen.test), rtol=1e-4, atol=1e-5)
        assert [check.step for check in found.checks] == [check.step for check in history.checks]
        assert found.best.step == history.best.step
        assert (found.stopped_early, found.rows) == (history.stopped_early, history.rows)
        assert found.best.values["NRMSE"] == pytest.approx(history.best.values["NRMSE"], rel=1e-5)
        assert found.steps[-1].terms == pytest.approx(history.steps[-1].terms, rel=1e-3)


@pytest.mark.parametrize("shared", range(5))
def test_every_way_to_share(frozen, shared):
    assert_alike(
        frozen, *both(frozen, LogSUN(shared=shared), lab_recipe(optimiser=Adam(3e-3), epochs=2, batch_size=64))
    )


HEADS = [
    Scaled(MSE()),
    ZILN(),
    TPM(4),
    OptDist(count=2, shared=1),  # draws random numbers in training
    GTS(OptDist(count=2), shared=2),
    Ranked(LogSUN()),  # rows see each other
    LogMSE(),
]


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_every_kind_of_head(frozen, head):
    assert_alike(frozen, *both(frozen, head, lab_recipe(optimiser=SGD(0.05), epochs=1, batch_size=64)))


TRAININGS = [
    lab_recipe(optimiser=Adam(1e-2), epochs=3, batch_size=100, decay=linear, averaging=None),
    lab_recipe(
        optimiser=Adam(1e-2, weight_decay=1e-3), epochs=2, batch_size=77, averaging=Tail(0.3), checks_per_epoch=3
    ),
    lab_recipe(optimiser=AdagradDecay(period=5), epochs=2, batch_size=64, averaging=EMA(0.9), patience=None),
]


@pytest.mark.parametrize("training", TRAININGS, ids=["decayed", "tail", "adagrad"])
def test_every_part_of_training(frozen, training):
    assert_alike(frozen, *both(frozen, LogSUN(), training))


def test_every_seed_stops_for_itself(frozen):
    training = lab_recipe(optimiser=Adam(3e-2), epochs=12, batch_size=32, averaging=None, patience=1)
    alone, company, histories, together = both(frozen, LogMSE(), training)
    assert_alike(frozen, alone, company, histories, together)
    assert len({history.rows for history in together}) > 1
    assert any(history.stopped_early for history in together)


def test_without_columns_of_ids(frozen):
    backbone = EmbeddingMLP(numeric=("price",), hidden=(8,))
    alone, company = ([Model(backbone, LogMSE(), seed) for seed in SEEDS] for _ in range(2))
    training = lab_recipe(optimiser=SGD(0.05), batch_size=64)
    histories = fit_in_turn(alone, frozen.train, frozen.valid, training)
    assert_alike(frozen, alone, company, histories, fit_together(company, frozen.train, frozen.valid, training))


def test_a_seed_that_diverges_fails_by_itself(frozen):
    *_, histories, together = both(frozen, LogMSE(), lab_recipe(optimiser=SGD(1e20), epochs=2, batch_size=32))
    assert all(isinstance(found, FloatingPointError) for found in (*histories, *together))


def test_what_cannot_be_stacked():
    columns = {"ids": {"a": 3}}
    assert can_stack(EmbeddingMLP(**columns))
    assert not can_stack(EmbeddingMLP(**columns, dropout=0.1))
    assert not can_stack(EmbeddingMLP(**columns, dim=ByCardinality()))
