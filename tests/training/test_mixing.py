"""Mixtures keep what their parts promise."""

import copy
import math

import pytest
import torch

from transun.backbones import Constant, EmbeddingMLP, Trees
from transun.data import Dataset
from transun.heads import LogMSE, Poisson, Scaled
from transun.models import Model
from transun.training.mixing import _folds, fit_parts, why_no_trees
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe
from transun.training.row_split import RowSplit


def rows(n: int, seed: int) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    a = torch.rand(n, generator=generator)
    return Dataset({"a": a}, (1.0 + 9.0 * (a > 0.5)) * (0.2 * torch.randn(n, generator=generator)).exp())


def network() -> Model:
    return Model(EmbeddingMLP(numeric=("a",), hidden=(8,)), Scaled(Poisson()))


def test_the_parts_are_trained_and_mixed() -> None:
    pytest.importorskip("sklearn")
    valid = rows(400, 1)
    split = RowSplit.of(rows(16_000, 0), valid, Recipe())  # too many rows for folds
    model, history = fit_parts(network(), split, Trees(numeric=("a",)), Recipe(epochs=1), progress=False)
    assert history.mixtures == 1
    assert sum(part.share for part in history.parts) == pytest.approx(1.0)
    assert sum(part.small for part in history.parts) == pytest.approx(1.0)
    assert {part.name.split()[0] for part in history.parts} == {"trees", "network"}
    # What was reported is what the model does on the validation rows.
    error = float((model(valid.x).detach().double() - valid.y.double()).square().mean().sqrt())
    assert error == pytest.approx(history.mixed_error, rel=1e-4)
    assert history.mixed_rows == len(valid)
    assert history.mixed_error <= 1.05 * min(part.error for part in history.parts)


def test_the_total_of_unseen_rows_is_that_of_the_shares_for_large_amounts() -> None:
    pytest.importorskip("sklearn")
    valid = rows(4_000, 1)
    split = RowSplit.of(rows(16_000, 0), valid, Recipe())
    recipe = Recipe(epochs=1, refit=False)
    model, _ = fit_parts(network(), split, Trees(numeric=("a",)), recipe, progress=False)
    large = copy.deepcopy(model)
    large.head = model.head.replace(small=None)
    mixed, amount = (float(each(valid.x).detach().double().sum()) for each in (model, large))
    assert mixed == pytest.approx(amount, rel=1e-5)


def test_the_total_of_the_network_is_made_right_before_it_is_mixed() -> None:
    """Without a factor the network predicts exp(mean of ln(1 + y)) - 1, and with it the mean of y."""
    pytest.importorskip("sklearn")
    generator = torch.Generator().manual_seed(0)
    a, y = torch.rand(16_000, generator=generator), torch.randn(16_000, generator=generator).exp()
    split = RowSplit.of(Dataset({"a": a}, y), Dataset({"a": a}, y), Recipe())
    for balanced, constant in ((False, y.log1p().mean().expm1()), (True, y.mean())):
        _, history = fit_parts(
            Model(Constant(), LogMSE()),  # which starts there
            split,
            Trees(numeric=("a",)),
            Recipe(Adam(1e-9), epochs=1),
            balanced=balanced,
            progress=False,
        )
        error = next(part.error for part in history.parts if part.name == "network")
        assert error == pytest.approx((y - constant).square().mean().sqrt().item(), rel=1e-4)


def test_a_small_table_is_trained_on_several_times() -> None:
    pytest.importorskip("sklearn")
    valid = rows(400, 1)
    split = RowSplit.of(rows(6_000, 0), valid, Recipe())
    model, history = fit_parts(None, split, Trees(numeric=("a",)), Recipe(), progress=False)
    assert history.mixtures == 6  # five folds, and all rows
    assert history.mixed_rows == 400
    error = float((model(valid.x).detach().double() - valid.y.double()).square().mean().sqrt())
    # The square of a mean is at most the mean of squares.
    assert error <= history.mixed_error * (1.0 + 1e-6)


@pytest.mark.parametrize(("many", "refit"), [(8_000, True), (8_000, False), (400, True)])
def test_trees_learn_from_validation_rows_in_the_end(many: int, refit: bool) -> None:
    """Validation rows hold amounts that training rows lack: who did not learn them predicts half of their sum."""
    pytest.importorskip("sklearn")
    low = rows(40_000, 0)
    low = low.take((low.x["a"] <= 0.5).nonzero().squeeze(-1)[:16_000])
    valid = rows(many, 1)
    model, history = fit_parts(
        None, RowSplit.of(low, valid, Recipe()), Trees(numeric=("a",)), Recipe(refit=refit), progress=False
    )
    both = low.joined(valid)
    totals = {
        name: float(model(part.x).detach().double().sum() / part.y.sum())
        for name, part in (("training", low), ("all", both))
    }
    learns = refit and many >= 0.1 * len(low)
    assert {part.refitted for part in history.parts if part.share or part.small} == {learns}
    # Every part has the right total, and their mean nearly so.
    assert totals["all" if learns else "training"] == pytest.approx(1.0, abs=0.02)
    if not learns:
        assert totals["all"] < 0.95


@pytest.mark.parametrize(("paid", "again"), [(1.0, True), (0.1, False)])
def test_noise_is_worth_boosting_again_for_the_order_alone(paid: float, again: bool) -> None:
    """Where one row in ten pays, by chance, means explain 4 % of the variance; the total holds no surprise."""
    pytest.importorskip("sklearn")
    generator = torch.Generator().manual_seed(0)
    a = torch.rand(12_000, generator=generator)
    pays = (torch.rand(12_000, generator=generator) < paid).float()
    data = Dataset({"a": a}, (1.0 + 9.0 * (a > 0.5)) * pays)
    _, history = fit_parts(None, RowSplit.of(data, data, Recipe()), Trees(numeric=("a",)), Recipe(), progress=False)
    *amounts, order = history.parts
    assert {part.refitted for part in amounts if part.share > 0.0} == {again}
    assert order.share == 0.0
    assert order.refitted is (order.small > 0.0)


def test_a_budget_that_is_used_up_leaves_no_time_to_boost_again() -> None:
    pytest.importorskip("sklearn")
    split = RowSplit.of(rows(800, 0), rows(400, 1), Recipe())
    histories = [
        fit_parts(None, split, Trees(numeric=("a",)), Recipe(budget=budget), progress=False)[1]
        for budget in (None, 1e-6)
    ]
    assert [any(part.refitted for part in history.parts) for history in histories] == [True, False]


def test_every_row_of_a_fold_is_left_out_once() -> None:
    data = Dataset({"a": torch.arange(3_000.0)}, torch.ones(3_000))
    for valid in (None, rows(100, 1)):
        split = RowSplit.of(data, valid, Recipe())
        *folds, whole = _folds(split, seed=0)
        assert whole == (split.train, split.valid, split.valid, 2, True)
        assert sorted(torch.cat([fold.stopping.x["a"] for fold in folds]).tolist()) == list(range(3_000))
        for rows_of_fold, stopping, deciding, votes, refit in folds:
            assert votes == 1
            assert not refit
            assert not set(rows_of_fold.x["a"].tolist()) & set(stopping.x["a"].tolist())
            assert deciding is (stopping if valid is None else valid)


@pytest.mark.parametrize("alone", ["target", "weight"])
def test_folds_of_which_one_has_all_there_is_to_learn_are_none(alone: str) -> None:
    """One row pays, or one of those that count; whoever leaves it out has nothing to learn."""
    pytest.importorskip("sklearn")
    paying, one = torch.arange(1_000) % 2 * 1.0, (torch.arange(1_000) == 77) * 1.0
    data, valid = Dataset({"a": torch.rand(1_000)}, one if alone == "target" else paying), rows(200, 1)
    if alone == "weight":
        data, valid = Dataset(data.x, data.y, one), Dataset(valid.x, valid.y, torch.ones(200))
    split = RowSplit.of(data, valid, Recipe())
    assert [fold.votes for fold in _folds(split, seed=0)] == [1]
    _, history = fit_parts(None, split, Trees(numeric=("a",)), Recipe(), progress=False)
    assert history.mixtures == 1


def test_a_budget_ends_the_training() -> None:
    pytest.importorskip("sklearn")
    split = RowSplit.of(rows(800, 0), rows(400, 1), Recipe())
    recipe = Recipe(epochs=100_000, patience=None, budget=1.0)
    _, history = fit_parts(network(), split, Trees(numeric=("a",)), recipe, progress=False)
    assert history.out_of_time
    assert history.rows < 100_000 * len(split.data)


@pytest.mark.parametrize(("budget", "ended"), [(1e-6, True), (None, False)])
def test_a_budget_ends_trees_too(budget: float | None, ended: bool) -> None:
    pytest.importorskip("sklearn")
    split = RowSplit.of(rows(800, 0), rows(400, 1), Recipe())
    _, history = fit_parts(None, split, Trees(numeric=("a",)), Recipe(budget=budget), progress=False)
    assert history.out_of_time is ended


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (-torch.ones(500), "not negative"),
        (torch.zeros(500), "all targets are zero"),
        (torch.ones(50), "trees need 200"),
    ],
)
def test_where_trees_cannot_be_fitted_there_is_a_reason(y: torch.Tensor, reason: str) -> None:
    data = Dataset({"a": torch.zeros(len(y))}, y)
    assert reason in (why_no_trees(RowSplit.of(data, data, Recipe())) or "")


def test_a_recipe_without_a_budget_has_no_clock() -> None:
    with pytest.raises(ValueError, match="budget > 0"):
        Recipe(budget=0.0)
    assert Recipe().budget is None
    assert math.isfinite(Recipe(budget=3.0).budget or 0.0)
