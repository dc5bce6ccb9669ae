"""One training by 1, 2 and 4 ranks: the same batches, losses, checks, weights and totals, whatever share each has."""

from dataclasses import replace

import pytest
import torch

from rank_jobs import (
    LOG,
    TEST,
    Case,
    ShardedOrder,
    count_bytes,
    save_sharded,
    train,
    train_interrupted,
    train_sharded,
    train_shards,
    train_tracked,
)
from transun.backbones import DIN, Dice, EmbeddingMLP
from transun.heads import LogMSE, LogSUN, Ranked
from transun.models.checkpoint import load_model
from transun.training.averaging import EMA
from transun.training.evaluation import evaluate
from transun.training.loop import fit
from transun.training.optimisers import Adam, RowWise
from transun.training.recipe import Recipe

MLP = EmbeddingMLP(LOG.sizes, {"history": "item"}, ("log_price",), dim=4, hidden=(16, 8), dropout=0.2)
INTEREST = DIN(
    LOG.sizes,
    history={"history": "item"},
    dim=4,
    hidden=(8,),
    unit=(4,),
    unit_activation=Dice(1.0),
    activation=Dice(1.0),
)
# 257 rows in batches of 64: the last batch has one row, so that all ranks but one have none.
RECIPE = Recipe(Adam(0.01), epochs=2, batch_size=64, averaging=EMA(0.9), clip=0.5, checks_per_epoch=2, patience=3)
ROWWISE = replace(RECIPE, optimiser=RowWise(0.05, dense=Adam(0.01)))
CASES = {
    "dense": Case(MLP, LogSUN(shared=1), RECIPE),
    "weighted rows": Case(MLP, LogSUN(shared=1), RECIPE, weighted=True),
    "tables by row": Case(MLP, LogSUN(shared=0), ROWWISE),
    "statistics of the batch": Case(INTEREST, LogSUN(shared=1), ROWWISE),
    "losses of pairs of rows": Case(MLP, Ranked(LogMSE()), RECIPE, weighted=True),
}


def assert_alike(one, other, tolerance=1e-9):
    assert one.rows == other.rows
    for mine, theirs in ((one.losses, other.losses), (one.checks, other.checks)):
        assert len(mine) == len(theirs)
        for first, second in zip(mine, theirs, strict=True):
            assert first == pytest.approx(second, rel=tolerance, abs=tolerance)
    assert one.total == pytest.approx(other.total, rel=tolerance)
    weights = [torch.tensor(outcome.weights, dtype=torch.float64) for outcome in (one, other)]
    torch.testing.assert_close(*weights, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_ranks_trains_the_same_model(pool, name):
    alone = train(CASES[name])
    assert len(alone.losses) == 10
    assert len(alone.checks) == 4
    for size in (2, 4):
        outcomes = pool.run(size, train, CASES[name])
        assert_alike(outcomes[0], alone)
        assert all(outcome.weights == outcomes[0].weights for outcome in outcomes)  # copies are equal to the last bit


@pytest.mark.parametrize("counts", [[257, 0, 0, 0], [3, 220, 0, 34]], ids=str)
@pytest.mark.parametrize("name", ["tables by row", "losses of pairs of rows"])
def test_ranks_with_very_different_rows_of_their_own(pool, name, counts):
    case = CASES[name]
    model = case.model()
    history = fit(model, ShardedOrder(case.rows(), counts), case.recipe)
    outcomes = pool.run(4, train_shards, case, counts)
    assert outcomes[0].rows == history.rows == 2 * 257
    for terms, step in zip(outcomes[0].losses, history.steps, strict=True):
        assert terms == pytest.approx(step.terms, rel=1e-9)
    assert outcomes[0].total == pytest.approx(evaluate(model, TEST)["PGR"], rel=1e-9)


def test_ctrl_c_on_one_rank_stops_all_after_the_same_step_and_the_rest_can_be_resumed(pool, tmp_path):
    case, file = CASES["tables by row"], tmp_path / "training.pt"
    # The signal comes at the end of step 6, and the ranks ask each other at the end of step 7.
    assert [steps for steps, _ in pool.run(2, train_interrupted, case, str(file), 6)] == [8, 8]
    assert file.exists()
    resumed, whole = (pool.run(2, train_interrupted, case, str(path), None) for path in (file, tmp_path / "other.pt"))
    assert resumed[0][1].weights == whole[0][1].weights
    assert resumed[0][1].losses == whole[0][1].losses
    assert not file.exists()


@pytest.mark.parametrize("everywhere", [True, False])
def test_rank_0_alone_tracks_whether_or_not_other_ranks_have_a_tracker(pool, everywhere):
    alone = train_tracked(CASES["dense"], everywhere)
    calls = pool.run(2, train_tracked, CASES["dense"], everywhere)
    assert calls[1] == []
    for (step, values), (expected_step, expected) in zip(calls[0], alone, strict=True):
        assert step == expected_step
        assert values == pytest.approx(expected, rel=1e-9)
    assert len(alone) == 4


def test_what_is_sent_does_not_grow_with_the_table(pool):
    """Ids below 300, in tables of 5 thousand and of 200 thousand rows: 4 steps of a few kilobytes."""
    small, large = (pool.run(2, count_bytes, size)[0] for size in (5_000, 200_000))
    assert small == large
    dense, ids, header = 4 * (8 * 8 + 8 + 8 + 1 + 1), 32 * (8 + 4 * 4), 200
    assert 4 * dense < small <= 4 * (dense + ids + header)


def test_rows_of_sharded_tables_count_among_what_is_sent(pool):
    """In 4 steps, 128 rows look up 2 ids each, all different: a request, the row, the gradient with its id."""
    small, large = (pool.run(2, count_bytes, size, True) for size in (5_000, 200_000))
    assert small == large
    dense, ids, header = 4 * (8 * 8 + 8 + 8 + 1 + 1), 8 + 4 * 4 + 8 + 4 * 4, 500
    least = 128 * 2 * ids + 2 * 4 * dense
    assert least < sum(small) <= least + 2 * 4 * header


def test_tables_sharded_over_ranks_are_trained_and_saved_as_an_ordinary_model(pool, tmp_path):
    case = CASES["tables by row"]
    alone = train(case)
    outcomes = pool.run(2, train_sharded, case, str(tmp_path / "model"))
    for rank, (outcome, rows, loaded) in enumerate(outcomes):
        for terms, expected in zip(outcome.losses, alone.losses, strict=True):
            assert terms == pytest.approx(expected, rel=1e-9)
        assert loaded == outcome.total
        sizes = [size for _ in range(2) for size in LOG.sizes.values() if size >= 100]  # two branches, shared=0
        assert rows == [len(range(rank, size, 2)) for size in sizes]
    model = load_model(tmp_path / "model")
    assert evaluate(model, TEST)["PGR"] == pytest.approx(outcomes[0][0].total, rel=1e-9)
    weights = torch.cat([value.double().flatten() for value in model.state_dict().values()])
    torch.testing.assert_close(weights, torch.tensor(alone.weights, dtype=torch.float64), rtol=1e-6, atol=1e-7)


def test_the_rank_that_writes_a_sharded_model_writes_its_intervals_too(pool, tmp_path):
    """Another rank could do so before there is a model that they are of."""
    assert pool.run(2, save_sharded, str(tmp_path)) == [True, False]
    assert (tmp_path / "0" / "intervals.json").is_file()
