"""A diagnosis is made of sums: any chunks, in any order and grouping, give the numbers of a single reading."""

from dataclasses import asdict

import numpy as np
import pytest

from scattered import Scattered, assert_same
from transun.data import read_table
from transun.diagnosis import diagnose_rows, diagnose_table, passes
from transun.diagnosis.assessment import assess, assess_sums
from transun.diagnosis.interval import TOTALS
from transun.diagnosis.passes import first_pass, second_pass
from transun.diagnosis.reading import ColumnNames, ColumnRows
from transun.metrics import STANDARD


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    typical = rng.lognormal(3.0, 0.8, rows)
    y = typical * rng.lognormal(0.0, 1.0, rows)
    y[rng.random(rows) < 0.01] = np.nan
    pred = np.where(rng.random(rows) < 0.003, np.inf, typical)
    country = np.where(rng.random(rows) < 0.02, None, rng.choice(["IT", "FR", "DE"], rows))
    age, shop = rng.normal(40.0, 10.0, rows), rng.integers(0, 9, rows)
    return read_table({"y": y, "p": pred, "country": country, "age": age, "shop": shop, "w": rng.integers(0, 4, rows)})


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_scattered_rows_get_the_diagnosis_of_one_file(seed, sampled, monkeypatch):
    if sampled:
        monkeypatch.setattr(passes, "SAMPLE", 1500)
        monkeypatch.setattr(passes, "LABELS", 700)
    rows = table(4000, seed)
    by = ["country", "age", "shop"]
    whole = diagnose_table(rows, "y", "p", by, "w", name="data", progress=False)
    scattered = diagnose_rows(Scattered(rows, seed), "y", "p", by, "w", progress=False)
    assert len(whole.skipped) >= 3
    assert (whole.source.sampled < whole.source.used) == sampled
    assert_same(asdict(whole), asdict(scattered))


def test_scattered_rows_get_the_assessment_of_arrays():
    rows = table(3000, 5)
    kept = np.isfinite(rows["y"].to_numpy()) & np.isfinite(rows["p"].to_numpy()) & (rows["w"].to_numpy() > 0)
    kept_rows = rows.filter(kept)
    y, pred, weight = (kept_rows[name].to_numpy().astype(float) for name in ("y", "p", "w"))
    expected = assess(pred, y, weight, kept_rows.select(["country", "shop"]))
    source = ColumnRows(Scattered(rows, 0), ColumnNames("y", "p", "w", ("country", "shop")))
    first = first_pass(source)
    others = [metric for metric in STANDARD if metric.name not in TOTALS]
    assert_same(asdict(expected), asdict(assess_sums(first, second_pass(source, first, others))))


def test_what_holds_no_numbers_is_refused_before_any_row_is_read():
    class Unreadable(Scattered):
        def total(self, summarise, label="reading", show=None):
            raise AssertionError("a row was read")

    with pytest.raises(ValueError, match="column 'country' holds text, and must hold numbers"):
        diagnose_rows(Unreadable(table(10), 0), "y", "country")
    with pytest.raises(ValueError, match="'land'"):
        diagnose_rows(Unreadable(table(10), 0), "y", "p", ["land"])


def test_a_segment_that_the_sample_missed_has_totals_and_no_ranking():
    rng = np.random.default_rng(0)
    y = rng.lognormal(0.0, 1.0, 20_000)
    rows = read_table({"y": y, "p": np.ones(20_000), "shop": ["a"] * 19_999 + ["b"]})
    names = ColumnNames("y", "p", None, ("shop",))
    source = ColumnRows(Scattered(rows, 0), names)
    first = first_pass(source, sample_size=64)
    others = [metric for metric in STANDARD if metric.name not in TOTALS]
    (segments,) = assess_sums(first, second_pass(source, first, others)).segments
    rare = {segment.value: segment for segment in segments.segments}["b"]
    assert rare.metric("PGR").value == pytest.approx(1.0 / y[-1])
    assert np.isnan(rare.metric("XAUC").value)
