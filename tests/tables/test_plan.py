"""The plan: heads by the shape of the target, and names that are nearly right."""

import numpy as np
import pytest
import torch
from scipy import stats

from transun import MSE, EmbeddingMLP, TabM, embedding_mlp
from transun.data import read_table
from transun.heads import GTS, Head, LogSUN
from transun.models.network import Model
from transun.tables import plan as planning
from transun.tables import train
from transun.tables.plan import make_plan, parse_head, plan_debiasing, recommend, summarise_target
from transun.training import Recipe

pytest.importorskip("pyarrow")


def test_the_summary_is_scipy_s():
    y = np.random.default_rng(0).lognormal(0.0, 1.0, 5001)
    y[:100] = 0.0
    found = summarise_target(torch.from_numpy(y))
    assert found.mean == pytest.approx(y.mean())
    assert found.median == pytest.approx(np.median(y))
    assert found.skewness == pytest.approx(stats.skew(y))
    assert found.typical == pytest.approx(np.median(y[y > 0]), rel=0.01)
    assert found.zeros == pytest.approx(100 / 5001)
    assert (found.negative, found.rows, found.largest) == (0.0, 5001, y.max())


AMOUNTS = (
    "Blend((Scaled(Poisson()), Scaled(LogSUN(shared='all')), EGMN(entropy=0, regression=0)), "
    "(0.5, 0.5, 0), (0.25, 0.25, 0.5), shared='all', costs=(1, 1, 0.1))"
)


@pytest.mark.parametrize(
    ("draw", "head"),
    [
        (lambda rng: rng.lognormal(3.0, 1.0, 4000), AMOUNTS),
        (lambda rng: 0.001 * rng.lognormal(0.0, 1.0, 4000), AMOUNTS),
        (lambda rng: np.where(rng.random(4000) < 0.6, 0.0, rng.exponential(30.0, 4000)), AMOUNTS),
        (lambda rng: rng.normal(0.0, 1.0, 4000), "Scaled(TranSUN(Asinh()))"),
        (lambda rng: rng.normal(100.0, 5.0, 4000), "Scaled(MSE())"),
        (lambda rng: np.full(4000, 7.0), "Scaled(MSE())"),
        (lambda rng: np.zeros(4000), "Scaled(MSE())"),
    ],
)
def test_recommendations_suit_the_target(draw, head):
    y = torch.from_numpy(draw(np.random.default_rng(0)))
    found, why = recommend(summarise_target(y))
    assert found == head
    assert len(why) > 40
    assert isinstance(parse_head(found).prepare(y), Head)  # and can be trained on it


@pytest.mark.parametrize(("rows", "members"), [(400, 8), (25_000, 4), (60_000, None)])
def test_members_beside_trees_are_fewer_the_more_rows_there_are(rows, members):
    table = read_table({"x": np.arange(rows) % 7, "gmv": np.random.default_rng(0).lognormal(0.0, 1.0, rows)})
    beside_trees, alone = make_plan(table, "gmv"), make_plan(table, "gmv", only="network")
    assert getattr(beside_trees.backbone(), "members", None) == (members or 1)
    assert alone.backbone().members == 8
    assert isinstance(beside_trees.backbone(), EmbeddingMLP if members is None else TabM)
    assert isinstance(alone.backbone(embedding_mlp), EmbeddingMLP)  # whoever names a network gets it


@pytest.mark.parametrize("name", planning._methods())
def test_every_head_that_is_proposed_can_be_built(name):
    assert isinstance(parse_head(f"{name}()"), Head)


def test_own_choice_is_kept():
    plan = make_plan(read_table({"item": [1, 2, 1, 2], "gmv": [1.0, 2.0, 3.0, 900.0]}), "gmv", head="Gamma()")
    assert (plan.head_text, plan.why) == ("Gamma()", "named by you")


def test_the_lines_of_the_plan_are_those_of_the_summary():
    table = {"item": ["a", "b"] * 60, "price": np.arange(120.0) / 7, "flat": [1.0] * 120, "gmv": [1.0, 9.0] * 60}
    plan = make_plan(read_table(table), "gmv")
    lines = plan.features.summary().splitlines()[1:]
    assert [row[0] for row in plan.column_summary()] == [line.split()[0] for line in lines]
    assert [row[4] for row in plan.column_summary()] == [line.split("  ")[-1].strip() for line in lines]
    assert plan.column_summary()[-1][:2] == ("flat", "left out")


@pytest.mark.parametrize(("level", "eps"), [(10.0, 1.0), (0.004, 0.004)])
def test_a_branch_around_a_trained_model(level, eps):
    rng = np.random.default_rng(0)
    table = {"item": rng.integers(0, 3, 200), "gmv": level * rng.lognormal(0.0, 0.1, 200)}
    base = train(table, "gmv", MSE(), recipe=Recipe(epochs=1), progress=False)
    plan = plan_debiasing(base, read_table(table))
    head, model = plan.head, Model(base.model.backbone, plan.head).eval()
    assert isinstance(head, GTS)
    assert head.scheme.eps == pytest.approx(eps, rel=0.5)
    assert "GTS" in plan.head_text
    # Its first branch fits the trained one, as `fit(base=...)` needs it.
    model.prepare(base.dataset(table).targets(), base.model)
    x = base.features.encode(table)
    undebiased = model.over_members(model.head.undebiased(model.raw(x)))
    torch.testing.assert_close(undebiased, base.predict(table))


def test_a_second_branch_is_refused():
    table = {"item": [1, 2, 1, 2], "gmv": [1.0, 2.0, 3.0, 9.0]}
    base = train(table, "gmv", LogSUN(), recipe=Recipe(epochs=1), progress=False)
    with pytest.raises(ValueError, match="bias branch already"):
        plan_debiasing(base, read_table(table))


def test_no_target_is_a_missing_column_and_no_clash_with_no_weight():
    with pytest.raises(ValueError, match="there is no column None"):
        make_plan(read_table({"item": ["a", "b"], "gmv": [1.0, 2.0]}), None)
