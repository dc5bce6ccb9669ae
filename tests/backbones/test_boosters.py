"""Libraries of boosted trees: the trees that they give back predict what the library predicts."""

from dataclasses import replace

import numpy as np
import pytest

from transun.backbones.boosters import BoostedRows, Boosting, BoostingTask, LightGBM, ScikitLearn
from transun.backbones.boosting_loss import SquaredLogs, TweedieDeviance

BOOSTERS = [LightGBM(), ScikitLearn()]
SMALL = Boosting(TweedieDeviance(), leaves=8, rate=0.05, by_means=True)
LARGE = Boosting(TweedieDeviance(1.3), leaves=31, rate=0.03, by_means=False)
LINEAR = replace(LARGE, linear=True)
LOGS = replace(LINEAR, loss=SquaredLogs())


@pytest.fixture(params=BOOSTERS, ids=lambda booster: booster.name)
def booster(request):
    pytest.importorskip({"LightGBM": "lightgbm", "scikit-learn": "sklearn"}[request.param.name])
    return request.param


@pytest.mark.parametrize("settings", [SMALL, LARGE, LINEAR, LOGS], ids=["small", "large", "linear", "logs"])
def test_the_trees_are_those_of_the_library(booster, settings, monkeypatch) -> None:
    """Its own predictions, caught on the way, equal those of the trees that are given back."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=600), rng.integers(1, 9, 600) * 3]).astype(np.float32)
    y = settings.loss.learned(np.exp(rng.normal(size=600)) * (1.0 + (x[:, 1] % 2)))
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
    trees = booster.fit(BoostingTask(data, valid, [1], settings, progress=False)).trees
    model = fit_walk(trees)
    if booster.name == "scikit-learn":
        from sklearn.ensemble import HistGradientBoostingRegressor

        again = HistGradientBoostingRegressor(
            loss=settings.loss.scikit_learn,
            learning_rate=settings.rate,
            max_leaf_nodes=settings.leaves,
            max_depth=12,
            l2_regularization=1.0,
            categorical_features=[1],
            early_stopping=False,
            max_iter=len(trees),
            random_state=0,
        )
        caught["pred"] = again.fit(data.x, data.y, data.weight).predict(x)
    # A library's prediction is what its loss learns: a logarithm, or an amount.
    pred = np.exp(caught["pred"]) if settings is LOGS else caught["pred"]
    np.testing.assert_allclose(model(x), pred, rtol=1e-5)


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
                slopes = tree.slopes[-1 - node] if tree.slopes else {}
                logs[number] += sum(slope * float(row[column]) for column, slope in slopes.items())
        return np.exp(logs)

    return predict


def noisy_rows(settings: Boosting) -> BoostedRows:
    """Rows of a number and of codes, most of whose amounts is chance, so that boosting ends early."""
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.normal(size=1_200), rng.integers(0, 6, 1_200)]).astype(np.float32)
    y = np.exp(0.5 * x[:, 0] + 0.2 * x[:, 1]) * rng.gamma(1.0, 1.0, 1_200)
    return BoostedRows(x, settings.loss.learned(y / y.mean()), rng.uniform(0.5, 2.0, 1_200))


@pytest.mark.parametrize("settings", [SMALL, LARGE, LINEAR, LOGS], ids=["small", "large", "linear", "logs"])
@pytest.mark.parametrize("stopped", [True, False])
def test_the_amounts_of_training_rows_are_those_of_the_trees(booster, settings, stopped) -> None:
    """Also where the best ensemble has fewer trees than the library has fitted."""
    rows = noisy_rows(settings)
    data = BoostedRows(rows.x[:800], rows.y[:800], rows.weight[:800])
    valid = BoostedRows(rows.x[800:], rows.y[800:], None) if stopped else None
    most = settings.most_trees if stopped else 20
    settings = booster.nearest(replace(settings, most_trees=most))
    boosted = booster.fit(BoostingTask(data, valid, [1], settings, progress=False))
    assert len(boosted.trees) < most if stopped else len(boosted.trees) == most
    np.testing.assert_allclose(boosted.amounts, fit_walk(boosted.trees)(data.x), rtol=1e-5)


def test_any_number_of_threads_boosts_the_same_trees():
    """Sums behind linear leaves are added up thread by thread, and differ in the last digits."""
    pytest.importorskip("lightgbm")
    data = noisy_rows(LINEAR)
    one, three = (
        LightGBM().fit(BoostingTask(data, None, [1], replace(LINEAR, most_trees=30), threads=threads, progress=False))
        for threads in (1, 3)
    )
    np.testing.assert_allclose(one.amounts, three.amounts, rtol=1e-9)


@pytest.mark.parametrize("trees", [1, 3, 60])
def test_without_validation_rows_there_are_as_many_trees_as_are_allowed(booster, trees):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 2)).astype(np.float32)
    data = BoostedRows(x, rng.gamma(2.0, 0.5, 500), None)
    settings = Boosting(TweedieDeviance(), 8, 0.1, False, most_trees=trees)
    assert len(booster.fit(BoostingTask(data, None, [], settings, progress=False)).trees) == trees


def test_as_many_trees_on_the_same_rows_are_the_same_trees(booster):
    """What validation rows ended can be boosted again without them."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(900, 2)).astype(np.float32)
    y = np.exp(x[:, 0]) * rng.gamma(4.0, 0.25, 900)
    data, valid = BoostedRows(x[:600], y[:600], None), BoostedRows(x[600:], y[600:], None)
    trees = booster.fit(BoostingTask(data, valid, [], SMALL, progress=False)).trees
    as_many = replace(SMALL, most_trees=len(trees))
    again = booster.fit(BoostingTask(data, None, [], as_many, progress=False)).trees
    np.testing.assert_allclose(fit_walk(again)(x), fit_walk(trees)(x), rtol=1e-6)


def test_the_deviance_can_end_the_boosting_and_shrinkage_keeps_leaves_small(booster):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (2_000, 1)).astype(np.float32)
    y = np.where(x[:, 0] == 0, 0.5, 1.5) * rng.gamma(4.0, 0.25, 2_000)
    data, valid = BoostedRows(x[:1_000], y[:1_000], None), BoostedRows(x[1_000:], y[1_000:], None)
    spans = []
    for shrinkage in (0.0, 1e9):
        settings = Boosting(TweedieDeviance(stop_by="deviance"), 8, 0.1, False, shrinkage, most_trees=40)
        trees = booster.fit(BoostingTask(data, valid, [], settings, progress=False)).trees
        logs = np.log(fit_walk(trees)(np.array([[0.0], [1.0]], np.float32)))
        spans.append(float(logs[1] - logs[0]))
    # ln 3 after 40 steps of a tenth (LightGBM halves them), known to 0.5·√(2/500) = 3 %; nothing after none.
    assert spans[0] > 0.5 * np.log(3.0)
    assert spans[0] < np.log(3.0) + 0.1
    assert abs(spans[1]) < 1e-3


def test_linear_leaves_follow_a_line_between_the_rows():
    """y = e^x without noise: constant leaves are steps, linear ones are not."""
    pytest.importorskip("lightgbm")
    x = np.linspace(-1.0, 1.0, 2_000, dtype=np.float32)[:, None]
    data = BoostedRows(x, np.exp(x[:, 0].astype(np.float64)), None)
    errors = []
    for linear in (False, True):
        settings = Boosting(TweedieDeviance(), 4, 0.3, False, most_trees=60, linear=linear)
        trees = LightGBM().fit(BoostingTask(data, None, [], settings, progress=False)).trees
        assert any(tree.slopes for tree in trees) == linear
        errors.append(float(np.abs(fit_walk(trees)(x) / data.y - 1.0).mean()))
    assert errors[1] < 0.6 * errors[0]


def test_squared_logs_learn_geometric_means(booster):
    """y = m·e^(N(0, 1)) - least in two groups: the trees predict e^E[ln(y + least)] = m, not the mean m·√e."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, (4_000, 1)).astype(np.float32)
    loss = SquaredLogs()
    y = np.where(x[:, 0] == 0, 1.0, 5.0) * np.exp(rng.standard_normal(4_000)) - loss.least
    settings = Boosting(loss, 2, 0.3, False, shrinkage=0.0, most_trees=60)
    trees = booster.fit(BoostingTask(BoostedRows(x, loss.learned(y), None), None, [], settings, progress=False)).trees
    logs = np.log(fit_walk(trees)(np.array([[0.0], [1.0]], np.float32)))
    # The standard error of a mean of 2,000 logarithms, and once more for the four fifths of them that a tree sees.
    np.testing.assert_allclose(logs, [0.0, np.log(5.0)], atol=4.0 * 2.0 / np.sqrt(2_000))


def test_scikit_learn_has_its_own_nearest_settings():
    nearest = ScikitLearn().nearest
    assert nearest(LINEAR) == nearest(LARGE) == replace(LARGE, loss=TweedieDeviance())
    assert nearest(LOGS) == replace(LARGE, loss=SquaredLogs())
    assert LightGBM().nearest(LOGS) == LOGS
