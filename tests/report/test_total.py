"""The page of a total: the same sentence everywhere, refusals with their reason, names from the data escaped."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from transun.report.total import TotalReport, total_document, total_json
from transun.totals import total_of


def amounts(n):
    return np.random.default_rng(0).gamma(2.0, 3.0, n)


def report(y, **keywords):
    n = len(y)
    segment = np.where(np.arange(n) % 2 == 0, "<north>", "south")
    totals = total_of(
        np.ones(500), np.ones(n), y, segment=np.tile(["<north>", "south"], 250), labelled_segment=segment, **keywords
    )
    return TotalReport("model", "new.csv", "labelled.csv", "gmv", totals)


@pytest.fixture(scope="module")
def answered():
    return report(amounts(400))


def test_page_and_markdown_say_the_sentence(answered):
    document, sentence = total_document(answered), answered.totals.whole.sentence()
    assert sentence.startswith("The total is ")
    assert sentence in document.html()
    assert "95 % interval" in sentence
    assert "<north>" not in document.html()
    assert "&lt;north&gt;" in document.html()
    assert document.markdown().startswith("# What will these rows add up to?")


def test_json_holds_every_number(answered):
    values = json.loads(total_json(answered))
    assert values["totals"]["whole"]["value"] == pytest.approx(answered.totals.whole.value)
    assert values["totals"]["segments"][0]["totals"]["south"]["labelled"] == 200
    assert values["totals"]["cap"] is None


def test_a_refusal_is_on_the_page_with_its_remedy():
    page = total_document(report(np.append(amounts(399), 1e6)))
    assert "no interval" in page.html()
    assert "Label about 4,000" in page.markdown()


def test_what_would_halve_the_interval_is_said(answered):
    whole = answered.totals.whole
    assert math.isinf(whole.units_to_halve)  # 500 new rows beside 400 labelled ones: luck is nearly half
    assert "the luck of the new rows themselves" in total_document(answered).markdown()
    few = report(amounts(70))
    assert f"About {few.totals.whole.units_to_halve:,.0f} labelled instead of 70" in total_document(few).markdown()


def test_a_cap_is_mentioned():
    assert "a total of capped ones" in total_document(report(amounts(400), cap=5.0)).markdown()


def test_a_segment_without_an_interval_has_its_reason_below_the_table():
    page = total_document(report(np.append(amounts(399), 1e6))).markdown()
    assert "south: no interval, because one of 200 errors carries" in page


def test_segments_without_an_interval_for_one_reason_are_named_together():
    # Both segments have the same amounts.
    heavy = 3.0 * stats.pareto(1.1).ppf(np.repeat((np.arange(200) + 0.5) / 200, 2))
    page = total_document(report(heavy)).markdown()
    assert page.count("no interval, because the largest amounts fall off so slowly") == 1
    assert "south: no interval, because the largest" in page


def test_a_browser_has_no_complaint(answered, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(total_document(answered).html(), encoding="utf-8")
    assert browser.complaints(path) == []
