"""The page of a watch."""

import numpy as np
import pytest

from transun.report.watching import WatchReport, watch_document
from transun.watching import PredictedRows, watch
from transun.watching.reading import Calendar


@pytest.fixture(scope="module")
def report():
    """A hundred predictions a day, half of them in each shop; from day 60 on a fifth more comes."""
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(90), 100)
    pred = rng.uniform(5.0, 15.0, len(day))
    amount = pred * rng.gamma(16.0, 1.0 / 16.0, len(day)) * np.where(day >= 60, 1.2, 1.0)
    shops = {"shop": (day % 2, ("A", "B"))}
    rows = PredictedRows(day, pred, np.arange(len(day)), np.zeros(len(day), int), amount, 89, shops)
    return WatchReport("model", "gmv", watch(rows, 45, 365), Calendar("day", np.datetime64("2026-01-01")))


def test_a_browser_has_no_complaint(report, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(watch_document(report).html(), encoding="utf-8")
    assert "more comes than was expected" in path.read_text(encoding="utf-8")
    assert browser.complaints(path) == []
