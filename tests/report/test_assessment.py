"""A metric that joins `transun.metrics.STANDARD` appears in every report, and nothing else has to be edited."""

import io

import numpy as np
import pytest
from rich.console import Console

from transun import metrics
from transun.data import read_table
from transun.diagnosis import diagnose
from transun.diagnosis.assessment import assess
from transun.metrics.paired import paired_differences
from transun.report.comparison import Comparison, comparison_document
from transun.report.diagnosis import diagnosis_document
from transun.report.model import assessment_blocks

pytest.importorskip("scipy")

ADDED = metrics.SMRE


@pytest.fixture
def rows(monkeypatch):
    assert ADDED not in metrics.STANDARD
    monkeypatch.setattr(metrics, "STANDARD", (*metrics.STANDARD, ADDED))
    rng = np.random.default_rng(0)
    pred = rng.uniform(1.0, 9.0, 500)
    return pred, pred * rng.gamma(2.0, 0.5, 500), read_table({"shop": rng.choice(["a", "b"], 500)})


def printed(blocks):
    console = Console(file=io.StringIO(), width=100)
    for block in blocks:
        block.terminal(console)
    return console.file.getvalue()


def test_a_diagnosis_shows_it(rows):
    pred, y, _ = rows
    document = diagnosis_document(diagnose(y, pred, progress=False))
    value = ADDED.format(ADDED(pred, y)).replace("-", "−")
    for text in (document.html(), document.markdown(), printed(document.brief)):
        assert ADDED.title in text
        assert value in text
    assert ADDED.meaning in document.html()


def test_an_assessment_of_a_model_shows_it(rows):
    pred, y, shops = rows
    blocks = assessment_blocks(assess(pred, y, None, shops))
    assert ADDED.title in printed(blocks)
    segments = blocks[1]
    assert f"{ADDED.name}, 99 %" in segments.header


def test_a_comparison_shows_it(rows):
    pred, y, _ = rows
    preds = {"a": pred, "b": 1.1 * pred}
    comparison = Comparison(
        "rows",
        "y",
        len(y),
        {name: assess(each, y) for name, each in preds.items()},
        dict.fromkeys(preds, "MSE()"),
        dict.fromkeys(preds, 1),
        dict.fromkeys(preds),
        paired_differences(preds, y, None, metrics.STANDARD),
    )
    document = comparison_document(comparison)
    for text in (document.html(), document.markdown(), printed(document.brief)):
        assert ADDED.title in text
