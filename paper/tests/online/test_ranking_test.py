"""A small simulated A/B test: its parts agree with each other, and its page is made from them."""

from pathlib import Path

import pytest
import torch

from transun_paper.lab.store import Store
from transun_paper.online.ranking_test import ARMS, SCENARIOS, assign_arms, computation
from transun_paper.pages.paper import paper_page
from transun_paper.tables.online import ONLINE

pytest.importorskip("tea_tasting")
SMALL = {"orders": 3_000, "users": 2_000, "items": 40, "visits": 6_000, "candidates": 8, "shown": 2, "epochs": 1}


@pytest.fixture(scope="module")
def result():
    return computation("returns", 0, SMALL).compute(Path())


def test_the_gain_is_that_of_the_true_values(result):
    for pair, test in result["tests"].items():
        new, base = (result["true_values"][name] for name in pair.split(" vs. "))
        assert test["gain"] == pytest.approx(new / base - 1.0, abs=1e-5)
    assert result["true_values"]["truth"] == max(result["true_values"].values())
    assert result["same_order"]


def test_every_impression_of_both_periods_is_counted(result):
    assert result["impressions"] == 2 * 6_000 * 2


def test_totals_of_the_logarithm_are_too_low_and_those_of_logsun_are_not(result):
    assert result["totals"]["LogMSE"] < 0.6
    assert result["totals"]["LogSUN"] > result["totals"]["LogMSE"]


def test_users_areassign_armsed_by_the_planned_shares():
    log = SCENARIOS["product"].market(SMALL | {"users": 20_000}, 0).log
    arm = assign_arms(log, (0.15, 0.20, 0.09))
    shares = torch.bincount(arm, minlength=len(ARMS)) / len(arm)
    expected = torch.tensor([0.15, 0.20, 0.09]) / 0.44
    assert (shares - expected).abs().max() < 4.0 * (0.25 / 20_000) ** 0.5
    assert torch.equal(arm, assign_arms(log, (0.15, 0.20, 0.09)))


def test_the_page_is_made_of_the_store(result, tmp_path):
    store = Store(tmp_path)
    for work in ONLINE.computations({}, quick=True):
        # Every computation gets the same result: that of a test, and that of the measurement of speed.
        store.keep(work.text, result | {"seconds": 2.0, "impressions": 1_000_000})
    report = ONLINE.report(store, {}, quick=True) | {
        "version": "0",
        "torch": "2",
        "command": "transun-paper reproduce online",
    }
    page = paper_page(report)
    gain = 100 * result["tests"]["LogSUN vs. LogMSE"]["gain"]
    assert f"{gain:.4f} ± 0.0000" in page
    assert "| LogSUN vs. LogMAE | short video, 6 % vs. 6 % of the traffic, 1 month | 1.83 |" in page
    assert {claim["holds"] for claim in report["claims"]} <= {"yes", "no", "undecided", "unknown"}


def test_a_table_without_runs_says_so(tmp_path):
    report = ONLINE.report(Store(tmp_path), {}, quick=True)
    assert all(row["failed"] == "not run yet" for table in report["tables"] for row in table["rows"])
