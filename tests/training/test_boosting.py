"""Boosted trees: the model predicts what the library predicts, means of ids leak nothing, totals are right."""

import numpy as np
import pytest
import torch

from transun.backbones import Trees
from transun.data import Dataset
from transun.training.boosters import BoostedRows, Boosting, BoostingTask, LightGBM, ScikitLearn
from transun.training.boosting import LARGE_TREES, SMALL_TREES, fit_trees

BOOSTERS = [LightGBM(), ScikitLearn()]


def rows(n: int, seed: int, sigma: float = 1.0) -> Dataset:
    """Amounts that depend on a number and on an id; another id, of which there are many, says nothing."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.rand(n, generator=generator)
    shop = torch.randint(1, 7, (n,), generator=generator)
    user = torch.randint(1, n // 3, (n,), generator=generator)
    noise = (sigma * torch.randn(n, generator=generator) - sigma**2 / 2).exp()
    return Dataset({"a": a, "shop": shop, "user": user}, (1.0 + 4.0 * (a > 0.5)) * shop * noise)


@pytest.fixture(params=BOOSTERS, ids=lambda booster: booster.name)
def booster(request):
    pytest.importorskip({"LightGBM": "lightgbm", "scikit-learn": "sklearn"}[request.param.name])
    return request.param


@pytest.mark.parametrize("settings", [SMALL_TREES, LARGE_TREES], ids=["small", "large"])
def test_the_trees_are_those_of_the_library(booster, settings, monkeypatch) -> None:
    """Its own predictions, caught on the way, equal those of the trees that are given back."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=600), rng.integers(1, 9, 600) * 3]).astype(np.float32)
    y = np.exp(rng.normal(size=600)) * (1.0 + (x[:, 1] % 2))
    data = BoostedRows(x[:400], y[:400], rng.uniform(0.5, 2.0, 400))
    valid = BoostedRows(x[400:], y[400:], None)
    library = {"LightGBM": "lightgbm.Booster", "scikit-learn": "sklearn.ensemble.HistGradientBoostingRegressor"}
    caught = {}
    name = library[booster.name]
    if booster.name == "LightGBM":
        import lightgbm

        original = lightgbm.Booster.dump_model

        def dump(self, num_iteration=None, **others):
            caught["pred"] = self.predict(x, num_iteration=num_iteration)
            return original(self, num_iteration=num_iteration, **others)

        monkeypatch.setattr(f"{name}.dump_model", dump)
    trees = booster.fit(BoostingTask(data, valid, [1], settings, progress=False))
    model = fit_walk(trees)
    if booster.name == "scikit-learn":
        from sklearn.ensemble import HistGradientBoostingRegressor

        again = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=settings.rate,
            max_leaf_nodes=settings.leaves,
            max_depth=12,
            l2_regularization=1.0,
            categorical_features=[1],
            early_stopping=False,
            max_iter=len(trees) - 1,
            random_state=0,
        )
        caught["pred"] = again.fit(data.x, data.y, data.weight).predict(x)
    np.testing.assert_allclose(model(x), caught["pred"], rtol=1e-5)


def fit_walk(trees):
    """Predictions of plain trees, node by node."""

    def predict(x):
        logs = np.zeros(len(x))
        for tree in trees:
            for number, row in enumerate(x):
                node = 0 if tree.columns else -1
                while node >= 0:
                    question, value = tree.questions[node], row[tree.columns[node]]
                    yes = int(value) in question if isinstance(question, frozenset) else value <= question
                    node = tree.yes[node] if yes else tree.no[node]
                logs[number] += tree.values[-1 - node]
        return np.exp(logs)

    return predict


@pytest.mark.parametrize("settings", [SMALL_TREES, LARGE_TREES], ids=["small", "large"])
def test_the_total_of_the_training_rows_is_right(booster, settings) -> None:
    data, valid = rows(900, 1), rows(300, 2)
    model = fit_trees(data, valid, Trees({"shop": 7, "user": 300}, {}, ("a",)), settings, booster=booster)
    assert float(model(data.x).detach().double().sum()) == pytest.approx(float(data.y.sum()), rel=1e-5)


def test_trees_learn_what_there_is_to_learn(booster) -> None:
    """Of the variance of the means, which is known here, trees explain nearly all where there is little noise."""
    data, valid, test = rows(3000, 3, 0.1), rows(1000, 4, 0.1), rows(2000, 5, 0.1)
    model = fit_trees(data, valid, Trees({"shop": 7, "user": 1000}, {}, ("a",)), booster=booster)
    mean = (1.0 + 4.0 * (test.x["a"] > 0.5)) * test.x["shop"]
    assert float((model(test.x).detach() - mean).square().mean() / mean.var()) < 0.02


def test_a_mean_that_a_row_sees_does_not_contain_its_target() -> None:
    """A mean of ids that occur once must be the overall mean: any other value would come from the row itself."""
    from transun.training.boosting import _seen_by_training_rows

    n = 50
    data = Dataset({"user": torch.arange(n)}, torch.arange(1.0, n + 1.0))
    matrix = Trees(ids={"user": n}).columns()
    columns = _seen_by_training_rows(matrix, data, torch.ones(n), 1.0, 0)
    assert columns[matrix.meanings.index(("user", "means"))].abs().max() == 0.0


@pytest.mark.parametrize("unit", [1e-12, 1e15])
def test_the_unit_of_the_target_does_not_matter(booster, unit: float) -> None:
    data, valid = rows(600, 6), rows(200, 7)
    inputs = Trees({"shop": 7, "user": 200}, {}, ("a",))
    plain = fit_trees(data, valid, inputs, booster=booster)
    scaled = fit_trees(
        Dataset(data.x, data.y.double() * unit), Dataset(valid.x, valid.y.double() * unit), inputs, booster=booster
    )
    torch.testing.assert_close(scaled(valid.x).double() / unit, plain(valid.x).double(), rtol=1e-3, atol=0.0)


def test_no_second_is_no_endless_boosting(booster) -> None:
    data, valid = rows(600, 6), rows(200, 7)
    model = fit_trees(data, valid, Trees({"shop": 7, "user": 200}, {}, ("a",)), booster=booster, seconds=0.0)
    assert model.backbone.trees < 60
    assert bool(model(valid.x).isfinite().all())


def test_bags_are_seen_by_their_size_and_the_means_of_their_ids(booster) -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 5, (800, 3), generator=generator)
    codes[::2, 1:] = -1
    y = (codes >= 0).sum(1) * 10.0 + (codes[:, 0] == 3) * 100.0
    data = Dataset({"items": codes}, y)
    model = fit_trees(data, data, Trees(bags={"items": 5}), booster=booster)
    error = (model(data.x).detach() - y).abs().mean() / y.mean()
    assert error < 0.5 * (y - y.mean()).abs().mean() / y.mean()


def test_the_deviance_can_end_the_boosting_and_shrinkage_keeps_leaves_small(booster):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (2_000, 1)).astype(np.float32)
    y = np.where(x[:, 0] == 0, 0.5, 1.5) * rng.gamma(4.0, 0.25, 2_000)
    data, valid = BoostedRows(x[:1_000], y[:1_000], None), BoostedRows(x[1_000:], y[1_000:], None)
    spans = []
    for shrinkage in (0.0, 1e9):
        settings = Boosting(1.0, 8, 0.1, False, shrinkage=shrinkage, most_trees=40, stop_by="deviance")
        trees = booster.fit(BoostingTask(data, valid, [], settings, progress=False))
        logs = np.log(fit_walk(trees)(np.array([[0.0], [1.0]], np.float32)))
        spans.append(float(logs[1] - logs[0]))
    # ln 3 after 40 steps of a tenth (LightGBM halves them), known to 0.5·√(2/500) = 3 %; nothing after none.
    assert spans[0] > 0.5 * np.log(3.0)
    assert spans[0] < np.log(3.0) + 0.1
    assert abs(spans[1]) < 1e-3
