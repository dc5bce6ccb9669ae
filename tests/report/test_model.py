"""The reports of a model and of a comparison: pages that load nothing, the same numbers in Markdown and JSON."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from pages import Collector
from transun import Bag, Features, Id, embedding_mlp, read_table
from transun.data import Split
from transun.diagnosis.evaluation import evaluate_held_out
from transun.metrics.paired import paired_differences
from transun.report.assessment import level_table
from transun.report.comparison import Comparison, comparison_document
from transun.report.document import Document
from transun.report.formatting import as_json, number
from transun.report.model import model_document, model_report, thinned
from transun.tables.plan import make_plan
from transun.tables.training import hold_out, train_plan
from transun.training import Adam, Recipe

pytest.importorskip("pyarrow")
pytest.importorskip("scipy")

HOSTILE = "<script>alert(1)</script>"
COLUMN = '"><img src=x onerror=alert(1)>'
TARGET = "gmv`*|<b>"


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    rows = 900
    item = rng.integers(0, 9, rows)
    data = {
        COLUMN: rng.choice([HOSTILE, "b|c", "](javascript:alert(1))"], rows),
        "genres": rng.choice(["x|y", "y", "z|x"], rows),
        "item": item,
        TARGET: (1.0 + item) * rng.lognormal(1.0, 0.8, rows),
    }
    recipe = Recipe(Adam(0.01), epochs=3, batch_size=64)
    rest, test = hold_out(read_table(data), 0.2, seed=0)
    features = Features({COLUMN: Id(), "genres": Bag(Split("|")), "item": Id()})
    plan = make_plan(rest, TARGET, head="LogSUN()", features=features)
    model = train_plan(plan, rest, embedding_mlp(plan.features), recipe, progress=False)
    assessment = evaluate_held_out(model, test, [COLUMN, "item"])
    return model_report("orders<b>.csv", plan, recipe, 0.2, "single rows of orders<b>.csv", model, assessment)


@pytest.fixture(scope="module")
def comparison(report):
    rng = np.random.default_rng(1)
    y = rng.lognormal(0.0, 1.0, 300)
    names = {"a<b>": y * 1.1, "second": y}
    return Comparison(
        "rows<b>",
        TARGET,
        300,
        dict.fromkeys(names, report.assessment),
        dict.fromkeys(names, "LogSUN()"),
        dict.fromkeys(names, 10),
        {"a<b>": None, "second": 1.5},
        paired_differences(names, y),
    )


@pytest.fixture(params=["model", "comparison"])
def page(request):
    if request.param == "model":
        return model_document(request.getfixturevalue("report")).html()
    return comparison_document(request.getfixturevalue("comparison")).html()


def test_nothing_is_loaded_and_names_are_text(page):
    found = Collector.read(page)
    assert found.count("script") == 1  # it sorts tables
    assert found.count("img") == 0
    assert not re.search(r"https?://", page)
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert len(page) < 500_000


def test_the_page_shows_every_part(report):
    page = model_document(report).html()
    for part in (
        "loss term inner.point",
        "loss term bias",
        "PGR, validation rows",
        "RMSE, validation rows",
        "mean slope κ",
        "signed TRE",
        "Feature plan",
        "parameters",
        "By segment",
        "99 %",
    ):
        assert part in page, part
    assert page.count("<svg") == 6  # two loss terms, two looks, errors and slopes by level


def test_markdown_and_json_have_the_numbers_of_the_page(report):
    text, data = model_document(report).markdown(), json.loads(as_json(report))
    pgr = report.assessment.metric("PGR")
    assert f"{pgr.value:.3f}" in text
    assert f"{pgr.value:.3f}" in model_document(report).html()
    found = {one["name"]: one["value"] for one in data["assessment"]["metrics"]}
    assert found["PGR"] == pgr.value
    assert set(data["curves"]) == {"inner.point", "bias"}
    assert [look["step"] for look in data["checks"]] == [look.step for look in report.checks]
    assert "<script>" not in text
    assert "<img" not in text


def test_a_markdown_table_keeps_its_columns(report):
    """A name with a bar must not open a cell."""
    for block in model_document(report).markdown().split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_comparison_in_markdown(comparison):
    text = comparison_document(comparison).markdown()
    assert "## Paired differences" in text
    assert "a<b>" not in text
    assert "second − a" in text


def test_not_a_number_is_null():
    assert json.loads(as_json({"a": float("nan"), "b": [float("inf"), 1.0]})) == {"a": None, "b": [None, 1.0]}


def test_curves_are_thinned_to_means(report):
    from transun.training.history import Step

    steps = [Step(index, 0, 0.1, {"point": float(index)}) for index in range(1000)]
    curve = thinned(steps)["point"]
    assert len(curve) <= 120
    assert all(x == pytest.approx(y) for x, y in curve)  # the mean of a straight line is on it
    assert thinned([]) == {}


def test_in_a_real_browser(page, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    assert browser.complaints(path) == []
    browser.run("document.querySelector('th:nth-child(2) button').click()")
    values = browser.run("[...document.querySelector('table').tBodies[0].rows].map(r => Number(r.cells[1].dataset.v))")
    assert values == sorted(values, reverse=True)


WORDS_BROKEN = """[...document.querySelectorAll('th button')].flatMap(button => {
  const text = button.firstChild, words = [...text.data.matchAll(/\\S+/g)];
  return words.filter(word => { const range = document.createRange(); range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length); return range.getClientRects().length > 1; }).map(word => word[0]);
})"""


def test_on_a_phone_tables_scroll_with_a_hint_and_titles_are_whole(report, browser, tmp_path):
    """A table of a report that is wider than the phone shades the edge beyond which it goes on."""
    path = tmp_path / "page.html"
    levels = Document("t", "s", [level_table(report.assessment.levels)], [])
    path.write_text(levels.html(), encoding="utf-8")
    browser.open(path, 390, "light")
    assert browser.run("document.documentElement.scrollWidth") <= 390
    wide = "(frame => frame.scrollWidth > frame.clientWidth)(document.querySelector('.scroll'))"
    assert browser.run(wide)
    assert browser.run("getComputedStyle(document.querySelector('.scroll')).backgroundImage").count("gradient") == 4
    assert browser.run(WORDS_BROKEN) == []


def test_amounts_have_their_unit(report):
    page = Collector.read(model_document(replace(report, unit="€")).html())
    assert f"€{number(report.summary.mean)}" in page.text
    assert "mean predicted in €" in page.text


def test_segments_of_the_table_are_those_of_the_rows(report):
    (items,) = [table for table in report.assessment.segments if table.column == "item"]
    assert sum(segment.rows for segment in items.segments) == report.assessment.rows


@pytest.mark.parametrize(
    ("out_of_time", "stopped_early", "reason"),
    [
        (True, True, "The budget ended the training: with more seconds the model may get better."),
        (False, True, "Stopped early: the validation error no longer fell."),
        (False, False, ""),
    ],
)
def test_a_reader_is_told_why_the_training_ended(report, out_of_time, stopped_early, reason):
    cost = replace(report.cost, out_of_time=out_of_time, stopped_early=stopped_early)
    text = model_document(replace(report, cost=cost)).markdown()
    assert reason in text
    assert ("The budget ended" in text, "Stopped early" in text) == (out_of_time, stopped_early and not out_of_time)
