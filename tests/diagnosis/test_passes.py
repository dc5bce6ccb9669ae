"""A diagnosis is made of sums: any chunks, in any order and grouping, give the numbers of a single reading."""

import pickle
from dataclasses import asdict

import numpy as np
import pytest

from transun.data import read_table
from transun.data.columns import Chunk
from transun.diagnosis import diagnose_rows, diagnose_table, passes
from transun.diagnosis.assessment import assess, assess_sums
from transun.diagnosis.interval import TOTALS
from transun.diagnosis.passes import first_pass, second_pass
from transun.diagnosis.reading import ColumnNames, ColumnRows
from transun.metrics import STANDARD


class Scattered:
    """The rows of a table in random chunks, some empty, whose pickled summaries are added in a random tree."""

    def __init__(self, table, seed):
        self.table, self.schema, self.rng = table, table.schema, np.random.default_rng(seed)

    def total(self, summarise, label="reading", show=None):
        cuts = np.sort(self.rng.integers(0, len(self.table) + 1, 12))
        bounds = list(zip([0, *cuts], [*cuts, len(self.table)], strict=True))
        summarise = pickle.loads(pickle.dumps(summarise))
        chunks = [Chunk(int(start), self.table.slice(start, stop - start), int(stop)) for start, stop in bounds]
        summaries = [pickle.loads(pickle.dumps(summarise(chunk))) for chunk in chunks]
        while len(summaries) > 1:
            one = summaries.pop(self.rng.integers(len(summaries)))
            other = summaries.pop(self.rng.integers(len(summaries)))
            summaries.append(one + other)
        return summaries[0]


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    typical = rng.lognormal(3.0, 0.8, rows)
    y = typical * rng.lognormal(0.0, 1.0, rows)
    y[rng.random(rows) < 0.01] = np.nan
    pred = np.where(rng.random(rows) < 0.003, np.inf, typical)
    country = np.where(rng.random(rows) < 0.02, None, rng.choice(["IT", "FR", "DE"], rows))
    age, shop = rng.normal(40.0, 10.0, rows), rng.integers(0, 9, rows)
    return read_table({"y": y, "p": pred, "country": country, "age": age, "shop": shop, "w": rng.integers(0, 4, rows)})


def assert_same(one, other, where="diagnosis"):
    """Everything alike: texts and counts equal, numbers to 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name, value in one.items():
            assert_same(value, other[name], f"{where}.{name}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for index, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{index}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True), where
    else:
        assert one == other, where


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
