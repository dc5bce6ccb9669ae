"""The whole diagnosis: weights, missing values, segments, and the same answer from memory and from files."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from scipy.stats import norm

from transun.data import read_table
from transun.data.sample import HashSample
from transun.diagnosis import diagnose, diagnose_table, passes
from transun.diagnosis.segmentation import MOST, by_number, by_text, holm
from transun.metrics import PGR, STANDARD, XAUC, bin_by_prediction

pl = pytest.importorskip("polars")


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    country = rng.choice(["IT", "FR", "DE"], rows)
    sigma = np.where(country == "IT", 1.3, 0.5)
    typical = np.exp(3.0 + 0.8 * rng.normal(size=rows))
    return {
        "y": typical * np.exp(sigma * rng.normal(size=rows)),
        "p": typical,
        "country": country.tolist(),
        "age": rng.normal(40.0, 10.0, rows),
        "w": rng.integers(1, 4, rows),
    }


def test_metrics_are_those_of_the_metrics_room():
    rows = table()
    found = {one.name: one for one in diagnose(rows["y"], rows["p"], weight=rows["w"]).metrics}
    assert list(found) == [metric.name for metric in STANDARD]
    for metric in STANDARD:
        estimate = found[metric.name]
        assert estimate.value == pytest.approx(metric(rows["p"], rows["y"], rows["w"])), metric.name
        assert estimate.low <= estimate.value <= estimate.high
    assert found["XAUC"].high - found["XAUC"].low == pytest.approx(
        2 * norm.ppf(0.995) * XAUC.standard_error(rows["p"], rows["y"], rows["w"])
    )


def test_levels_are_deciles_of_the_prediction():
    rows = table()
    levels, bins = diagnose(rows["y"], rows["p"]).levels, bin_by_prediction(rows["p"], rows["y"])
    assert [level.rows for level in levels] == [300] * 10
    np.testing.assert_allclose([level.pred for level in levels], bins.pred, rtol=1e-9)
    np.testing.assert_allclose([level.actual.value for level in levels], bins.y, rtol=1e-9)
    np.testing.assert_allclose([level.pgr.value for level in levels], bins.pgr, rtol=1e-9)


def test_weights_count_repetitions():
    rows = table(1000)
    weighted = diagnose(rows["y"], rows["p"], weight=rows["w"])
    repeated = diagnose(np.repeat(rows["y"], rows["w"]), np.repeat(rows["p"], rows["w"]))
    for a, b in zip(weighted.metrics, repeated.metrics, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9)
    assert weighted.shape.quantiles == repeated.shape.quantiles
    # A weight is part of its row: the repeated rows know no more than the weighted ones.
    wide, narrow = weighted.metric("PGR"), repeated.metric("PGR")
    assert wide.high - wide.low > narrow.high - narrow.low


def test_the_worst_segment_is_named():
    rows = table()
    found = diagnose(rows["y"], rows["p"], by={"country": rows["country"], "age": rows["age"]})
    assert "worst in country = IT" in found.verdict.text
    segments = {segment.value: segment for segment in found.segments[0].segments}
    italy = np.array(rows["country"]) == "IT"
    assert segments["IT"].metric("PGR").value == pytest.approx(rows["p"][italy].sum() / rows["y"][italy].sum())
    assert segments["IT"].rows == italy.sum()
    assert sum(segment.share for segment in segments.values()) == pytest.approx(1.0)
    assert len(found.segments[1].segments) == 10


def test_equal_segments_have_no_worst():
    rng = np.random.default_rng(1)
    pred = rng.gamma(5.0, 1.0, 5000)
    found = diagnose(2.0 * pred * rng.gamma(9.0, 1 / 9, 5000), pred, by={"shop": rng.choice(list("abcdefgh"), 5000)})
    assert found.verdict.biased
    assert "worst" not in found.verdict.text
    assert "alike in all segments" in found.verdict.text


def test_files_frames_and_arrays_agree(tmp_path):
    rows = table()
    frame = pl.DataFrame(rows)
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=700)
    frame.write_csv(tmp_path / "a.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    frame[:1000].write_parquet(folder / "1.parquet")
    frame[1000:].write_parquet(folder / "2.parquet")
    csvs = tmp_path / "csvs"
    csvs.mkdir()
    frame[:1000].write_csv(csvs / "1.csv")
    frame[1000:].write_csv(csvs / "2.csv")
    sources = [tmp_path / "a.parquet", tmp_path / "a.csv", folder, csvs, frame, frame.to_pandas(), read_table(rows)]
    found = [diagnose_table(source, "y", "p", ["country"], "w", name="same", progress=False) for source in sources]
    by = {"country": rows["country"]}
    arrays = diagnose(rows["y"], rows["p"], by, rows["w"], name="same")
    assert found[0].source.rows == 3000
    for other in [*found[1:], arrays]:
        assert other.verdict == found[0].verdict
        np.testing.assert_allclose([m.low for m in other.metrics], [m.low for m in found[0].metrics], rtol=1e-9)
        assert [s.rows for s in other.segments[0].segments] == [s.rows for s in found[0].segments[0].segments]
        assert other.advice == found[0].advice


def test_missing_and_infinite_rows_are_left_out_and_counted():
    rows = table(1000)
    y, pred = rows["y"].copy(), rows["p"].copy()
    y[[3, 5]], pred[7] = np.nan, np.inf
    found = diagnose(y, pred)
    keep = np.isfinite(y) & np.isfinite(pred)
    assert found.source.used == 997
    assert found.metric("PGR").value == pytest.approx(PGR(pred[keep], y[keep]))
    assert any("2 of 1,000 rows" in text and "row 3 " in text for text in found.skipped)
    assert any("'prediction' is infinite" in text and "row 7 " in text for text in found.skipped)


def test_rows_of_weight_zero_are_left_out():
    rows = table(1000)
    weight = np.where(np.arange(1000) < 100, 0.0, 1.0)
    found = diagnose(rows["y"], rows["p"], weight=weight)
    assert found.source.used == 900
    assert found.metrics == diagnose(rows["y"][100:], rows["p"][100:]).metrics
    assert any("100 of 1,000 rows" in text and "is 0" in text for text in found.skipped)


def test_the_sample_does_not_depend_on_the_pieces():
    numbers = np.arange(50_000)
    whole = HashSample.of(1000, numbers, {"y": numbers.astype(float)})
    pieces = [HashSample.of(1000, part, {"y": part.astype(float)}) for part in np.array_split(numbers, 37)]
    joined = reduce(add, reversed(pieces)).in_order()
    np.testing.assert_array_equal(whole["y"], joined["y"])
    assert 500 - 70 <= len(whole) <= 1000  # a halving leaves about half, three standard errors at the least
    assert whole["y"].mean() == pytest.approx(25_000, abs=3 * 50_000 / 12**0.5 / len(whole) ** 0.5)
    folds = np.bincount(whole.folds(5, whole.subset(400)), minlength=5)
    assert folds.sum() == 400
    assert folds.min() > 80 - 3 * 8


def test_missing_segments_and_rare_values_have_their_own_lines():
    rows = table(2000)
    label = [None if index < 50 else f"s{index % 30:02d}" for index in range(2000)]
    found = diagnose(rows["y"], rows["p"], by={"shop": label}).segments[0]
    titles = [segment.value for segment in found.segments]
    assert len(titles) == MOST + 2
    assert titles[-2:] == ["all others", "missing"]
    assert found.segments[-1].rows == 50
    assert sum(segment.rows for segment in found.segments) == 2000
    assert "30 values" in found.how


def test_a_large_table_is_sampled_and_says_so(monkeypatch):
    rows = table(6000)
    whole = diagnose(rows["y"], rows["p"], by={"country": rows["country"]})
    assert whole.sampled == ()
    monkeypatch.setattr(passes, "SAMPLE", 2000)
    monkeypatch.setattr(passes, "LABELS", 500)
    found = diagnose(rows["y"], rows["p"], by={"country": rows["country"]})
    assert 1000 <= found.source.sampled <= 2000
    assert f"{found.source.sampled:,} of the 6,000 rows" in found.sampled[0]
    # Totals and segments are of all rows, whatever the sample.
    assert found.metric("PGR").value == whole.metric("PGR").value
    assert {s.value: s.rows for s in found.segments[0].segments} == {
        s.value: s.rows for s in whole.segments[0].segments
    }
    assert sum(level.rows for level in found.levels) == 6000
    xauc = found.metric("XAUC")
    assert xauc.low <= whole.metric("XAUC").value <= xauc.high


def test_signed_targets_are_diagnosed():
    rng = np.random.default_rng(5)
    mean = rng.normal(3.0, 2.0, 4000)
    found = diagnose(mean + rng.normal(size=4000), mean)
    assert found.verdict.kind == "fine"
    assert found.shape.negative > 0.0
    assert any("below 0" in text for text in found.skipped)
    assert len(found.corrections) > 1


def test_few_rows_are_diagnosed_without_corrections():
    found = diagnose([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    assert found.corrections == ()
    assert any("fewer than" in text for text in found.skipped)


@pytest.mark.parametrize(
    ("y", "pred", "kwargs", "message"),
    [
        ([5.0] * 9, range(9), {}, "in every row"),
        ([1.0], [1.0], {}, "one usable row"),
        ([1.0, 2.0], [0.0, 0.0], {}, "total of the predictions"),
        ([1.0, 2.0], [1.0, -9.0], {}, "total of the predictions"),
        ([-1.0, -2.0], [1.0, 2.0], {}, "turn the sign around"),
        ([np.nan, np.nan], [1.0, 2.0], {}, "no row is left"),
        ([1.0, 2.0], [1.0, 2.0], {"weight": [1.0, -1.0]}, "cannot be negative"),
        ([1.0, 2.0], [1.0, 2.0], {"weight": [0.0, 0.0]}, "no row is left"),
        ([1.0, 2.0], [1.0, 2.0], {"by": {"target": ["a", "b"]}}, "rename"),
        ([1.0, 2.0], [1.0, 2.0], {"by": {"a": ["a"]}}, "1 row and `y` 2"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(y, pred, kwargs, message):
    with pytest.raises(ValueError, match=message):
        diagnose(np.array(y, dtype=float), np.array(pred, dtype=float), **kwargs)


def test_holm_keeps_the_familywise_error():
    rng = np.random.default_rng(3)
    false = sum(min(holm(rng.uniform(size=20).tolist())) < 0.05 for _ in range(2000)) / 2000
    assert false == pytest.approx(1 - 0.9975**20, abs=3 * (0.05 * 0.95 / 2000) ** 0.5)  # all true: Bonferroni's level


def test_holm_by_hand():
    assert holm([0.001, 0.04, 0.03, 0.5]) == pytest.approx([0.004, 0.09, 0.09, 0.5])
    assert holm([]) == []


def test_ids_are_no_segments():
    with pytest.raises(ValueError, match="name rows, not segments"):
        by_text("order", [f"id{index}" for index in range(500)])


def test_ranges_hold_about_equally_many_rows():
    values = np.random.default_rng(4).lognormal(0.0, 2.0, 10_000)
    edges = by_number(values).edges
    counts = np.bincount(np.searchsorted(edges, values, side="right"))
    assert len(edges) == 9
    assert counts.min() > 990


def test_segments_of_reordered_rows_are_refused():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series([1.0, 2.0, 3.0] * 100)
    by = pandas.DataFrame({"shop": ["a", "b", "c"] * 100}, index=y.index[::-1])
    with pytest.raises(ValueError, match="y and by have the same row labels in another order"):
        diagnose(y, np.ones(300), by)


@pytest.mark.parametrize("wrong", [None, 3.0, "much"])
def test_what_is_no_column_is_named(wrong):
    with pytest.raises(ValueError, match=r"column 'prediction' is .*, not one value for each row"):
        diagnose([1.0, 2.0], wrong)
