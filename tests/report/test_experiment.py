"""The page of an A/B test: its sentences, harmless names, and a plan."""

import json

import numpy as np
import pytest

from pages import Collector
from transun.experiments import LogColumns, abtest, plan_abtest
from transun.report.experiment import abtest_document, plan_document, verdict_on
from transun.report.formatting import as_json

pytest.importorskip("tea_tasting")
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    arm = np.array(["a", HOSTILE])[np.arange(4_000) % 2]
    gmv = (rng.random(4_000) < 0.5) * rng.exponential(10.0, 4_000) * np.where(arm == "a", 1.0, 1.5)
    land = np.array([HOSTILE, "a|b"])[np.arange(4_000) // 2 % 2]
    return {"user": np.arange(4_000), "arm": arm, "gmv": gmv, "old": rng.exponential(size=4_000), "land": land}


@pytest.fixture(scope="module")
def result(log):
    return abtest(log, LogColumns("user", "gmv", "arm", before="old", by=("land",)), control="a", name=HOSTILE)


def test_the_verdict_has_the_change_its_interval_and_the_arm(log, result):
    (effect,) = result.decisive
    text = verdict_on(result, effect)
    assert text.startswith(f"{HOSTILE} raises gmv per user by {100 * effect.change.value:.1f} %")
    assert "95 % interval" in text
    shuffled = log | {"arm": log["arm"][np.random.default_rng(1).permutation(4_000)]}
    quiet = abtest(shuffled, LogColumns("user", "gmv", "arm"), control="a")
    assert verdict_on(quiet, quiet.decisive[0]).startswith("No effect of")


def test_an_effect_that_only_one_look_shows_is_told():
    rng = np.random.default_rng(0)
    gmv = rng.exponential(size=2_000)
    arm = np.array(["a", "b"])[np.arange(2_000) % 2]
    # Scaled so that the new arm is 2.5 standard errors ahead: shown by 1.96 errors, and not by 3.
    gmv[arm == "b"] *= (1.0 + 2.5 * np.sqrt(2.0 / 1_000)) * gmv[arm == "a"].mean() / gmv[arm == "b"].mean()
    test = abtest({"user": np.arange(2_000), "arm": arm, "gmv": gmv}, LogColumns("user", "gmv", "arm"))
    assert "had one looked more than once, it would not be shown yet" in verdict_on(test, test.decisive[0])


def test_the_page_is_harmless_and_complete(result):
    document = abtest_document(result)
    page = Collector.read(document.html())
    assert page.count("script") == 1  # the page's own
    assert '<div class="verdict good">' in document.html()
    for words in ("Effects", "Arms", "What was known before", "By segment", "sample-ratio check", "always valid, 95 %"):
        assert words in page.text
    assert HOSTILE not in document.markdown()


def test_json_has_every_number(result):
    values = json.loads(as_json(result))
    assert values["effects"][0]["change"]["value"] == result.effects[0].change.value
    assert values["arms"][0]["users"] == 2_000
    assert values["sample_ratio"] == 1.0


def test_a_plan_opens_with_the_users_needed(log):
    plans = plan_abtest(log, LogColumns("user", "gmv"), 0.05)
    document = plan_document(plans, effect=0.05, power=0.8, level=0.95, name="log")
    assert f"need {plans[0].users_needed:,} users together" in document.markdown()
    assert "power with 4,000 users" in document.html()


def test_a_browser_has_no_complaint(result, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(abtest_document(result).html(), encoding="utf-8")
    assert browser.complaints(path) == []
