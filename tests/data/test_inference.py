import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from encoding import same
from transun.data import Features, HashedId, Id, infer

NAN = float("nan")


DATA = Path(os.environ.get("TRANSUN_DATA", Path(__file__).parents[3] / "shared" / "data"))


def kinds(features: Features) -> dict[str, str]:
    return {name: str(kind) for name, kind in features.columns.items()}


def test_inference_by_rule() -> None:
    n = 400
    row = np.arange(n)
    frame = pd.DataFrame(
        {
            "order_id": row,
            "userID": row % 150,
            "hour": row % 24,
            "count": row // 2,
            "price": row / 7,
            "music": np.where(row % 3 == 0, NAN, row % 4),
            "click": row % 2 == 0,
            "note": [f"n{i}" for i in row],
            "city": ["Rom", "Ulm"] * (n // 2),
            "range": ["(10,50]", "(50,90]", "(90,200]", "500+"] * (n // 4),
            "tags": ["a|b|c"[: 1 + 2 * (i % 3)] if i % 5 else "c|a" for i in row],
            "day": [f"2022-04-{1 + i % 28:02d}" for i in row],
            "ts": pd.Timestamp("2022-01-01 05:00") + pd.to_timedelta(row, "h"),
            "bought": [[1] * (i % 4) for i in row],
            "item_0": row % 9,
            "item_1": np.where(row % 2, row % 9, -1),
            "score_0": row % 9,
            "score_1": row % 7,
            "empty": [None] * n,
            "same": [3] * n,
            "gmv": row * 1.0,
            "w": np.ones(n),
            "leak": row * 1.0,
        }
    )
    features = infer(frame, "gmv", weight="w", exclude=["leak"], columns={"city": HashedId(50)})
    assert kinds(features) == {
        "item": "Bag(layout=Numbered(count=2))",
        "userID": "Id(min_count=2)",
        "hour": "Id()",
        "count": "Number()",
        "price": "Number()",
        "music": "Id()",
        "click": "Id()",
        "range": "Id()",
        "tags": "Bag(layout=Split())",
        "day": "Datetime(parts=('weekday', 'month', 'age', 'day'))",
        "ts": "Datetime()",
        "bought": "Bag()",
        "score_0": "Id()",
        "score_1": "Id()",
        "city": "HashedId(rows=50)",
    }
    summary = features.summary()
    lines = {line.split()[0]: line for line in summary.splitlines()}
    assert set(lines) == {"column", *features.columns, "order_id", "note", "empty", "same"}
    assert "left out" in lines["order_id"]
    assert "another id in every row" in lines["order_id"]
    assert "another text in every row" in lines["note"]
    assert "missing in every row" in lines["empty"]
    assert "one value in every row" in lines["same"]
    assert "33.5 %" in lines["music"]
    assert "6 ids" in lines["music"]  # 0, 1, 2, 3, missing and unseen
    assert "named as an id" in lines["userID"]
    assert "declared" in lines["city"]
    assert same(features.encode(frame), Features(features.columns).fit(frame).encode(frame))


def test_inference_keeps_a_stem_that_is_a_column() -> None:
    rows = {"item": [1, 2], "item_0": [3, 4], "item_1": [-1, 5], "y": [1.0, 2.0]}
    features = infer(rows, "y")
    assert features.bags == {"item_": 4}
    assert features.ids == {"item": 3}


def test_long_lists_are_cut() -> None:
    features = infer({"x": [list(range(80)), [1]], "y": [1.0, 2.0]}, "y")
    assert features.encode({"x": [list(range(80))]})["x"].shape == (1, 50)
    assert "up to 80 values, cut to the first 50" in features.summary()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: infer({"x": [1]}, "y"), "there is no column 'y'"),
        (lambda: infer({"x": [1], "y": [NAN]}, "y"), "target 'y', row 0 is missing"),
        (lambda: infer({"x": [1], "y": [1.0]}, "y", exclude=["z"]), "there is no column 'z'"),
        (lambda: infer({"x": [1], "y": [1.0]}, "y"), "no column of the table is of use for 'y'"),
    ],
)
def test_inference_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def real(name: str) -> Path:
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"there is no {path}: set TRANSUN_DATA to the folder of the real data sets")
    return path


@pytest.mark.parametrize(
    ("name", "target", "exclude", "expected"),
    [
        (
            "kuairand_pure",
            "play_time_s",
            ["is_click", "long_view", "part"],
            {"video_id": "Id(min_count=2)", "tag": "Bag(layout=Split(separator=','))", "duration_s": "Number()"},
        ),
        (
            "online_retail_orders",
            "gmv",
            ["InvoiceNo"],
            {"item": "Bag(layout=Numbered(count=20), of=Id(min_count=2))", "ts": "Datetime()", "Country": "Id()"},
        ),
        ("lastfm2k_plays", "weight", [], {"userID": "Id(min_count=2)", "artistID": "Id(min_count=2)"}),
        (
            "movietweetings100k",
            "rating",
            ["ts"],
            {"movie_id": "Id(min_count=2)", "genres": "Bag(layout=Split())", "year": "Number(periods=True)"},
        ),
    ],
)
def test_real_tables_are_understood(name: str, target: str, exclude: list[str], expected: dict[str, str]) -> None:
    path = real(name)
    features = infer(path, target, exclude=exclude)
    assert expected.items() <= kinds(features).items()
    data = features.to_dataset(path, target)
    assert isinstance(data.x, dict)
    for key, size in features.ids.items():
        assert isinstance(size, int)
        assert 0 <= int(data.x[key].min()) <= int(data.x[key].max()) < size


def test_real_ids_are_those_of_pandas() -> None:
    path = real("kuairand_pure")
    frame = pd.read_parquet(path, columns=["author_id", "upload_type", "music_type"])
    tensors = Features({name: Id() for name in frame}).fit(path).encode(path)
    for name in frame:
        codes, _ = pd.factorize(frame[name], sort=True, use_na_sentinel=False)
        np.testing.assert_array_equal(tensors[name].numpy(), codes + 1)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", [2015, 2016, 2017, 2019], "Number(periods=True)"),  # years
        ("x", [1995, 2003, 2019, 2021], "Number(periods=True)"),  # years with gaps
        ("x", [30, 31, 32, 33, 34], "Number()"),  # weeks
        ("cut_week", [8, 12, 23, 44], "Number(periods=True)"),  # weeks with gaps
        ("WeekNumber", [1, 2, 3, 4, 5, 6, 7, 8], "Number(periods=True)"),
        ("month", [202211, 202212, 202301], "Number(periods=True)"),
        ("x", [8, 12, 16, 20, 24], "Number()"),  # evenly spread
        ("month", [1, 2, 3, 4, 5, 6], "Id()"),  # begins again
        ("day_of_week", [0, 1, 2, 3, 4], "Id()"),
        ("x", [1, 2, 3, 4, 5, 6], "Id()"),  # codes
        ("x", [0, 1, 2], "Id()"),
        ("x", [10, 20, 30, 40], "Id()"),  # codes with gaps
        ("x", [3, 17, 58, 90, 91], "Id()"),
        ("week_id", [30, 31, 32, 33, 34], "Id()"),
        ("x", [7, 8], "Id()"),
    ],
)
def test_years_and_weeks_are_numbers_with_an_order(name, values, kind):
    rows = {name: (values * 120)[:120], "y": [1.0, 2.0] * 60}
    assert str(infer(rows, "y").columns[name]) == kind


def test_a_new_year_is_beyond_the_others():
    features = infer({"year": [2015, 2016, 2017] * 40, "y": [1.0, 2.0] * 60}, "y")
    known, new = features.encode({"year": [2017, 2018]})["year"].tolist()
    assert new > known


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_row_index_of_a_file_is_no_feature(name):
    features = infer({name: range(120), "x": [0, 1] * 60, "y": [1.0, 2.0] * 60}, "y")
    assert list(features.columns) == ["x"]
    assert "row index" in features.why[name]


Y = np.random.default_rng(0).lognormal(0.0, 2.0, 400)
NOISE = np.random.default_rng(1).standard_normal(400)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (1.2 * Y, True),
        (-np.log(Y), True),  # falls with the target
        (np.round(Y, 1) + 3.0, True),
        (np.where(np.arange(400) % 9, Y, NAN), True),  # where it is known
        (Y + 0.01 * NOISE, True),
        (Y * np.exp(0.5 * NOISE), False),  # a good feature
        (NOISE, False),
        ((Y > 1).astype(float), False),  # two values
        (1e300 * NOISE, False),
        (np.where(np.arange(400) == Y.argmax(), 1e9, NOISE), False),  # one row makes up a correlation
    ],
)
def test_a_column_that_gives_the_target_away_is_named(values, told):
    features = infer({"x": values, "z": NOISE > 0, "y": Y}, "y")
    assert ("FOLLOWS THE TARGET" in features.why["x"]) == told
    assert "x" in features.columns  # said, not decided
    assert ("FOLLOWS THE TARGET" in features.summary()) == told


def test_spearman_is_that_of_scipy():
    from scipy.stats import pearsonr, spearmanr

    from transun.data.inference import _correlation, _ranks

    both = np.stack([np.round(Y), np.round(Y * np.exp(NOISE))])
    assert _correlation(both) == pytest.approx(pearsonr(*both).statistic)
    assert _correlation(np.stack([_ranks(part) for part in both])) == pytest.approx(spearmanr(*both).statistic)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([{"a": 1}, {"a": 2}] * 60), "struct<a: int64> .*write its fields as columns of their own"),
        (pa.array([[("a", 1)], []] * 60, pa.map_(pa.string(), pa.int64())), "map<.*write its entries as columns"),
        (pa.array([1, 2] * 60, pa.duration("s")), r"duration\[s\] .*such as seconds"),
        (pa.array([1, 2] * 60, pa.time32("s")), r"time32\[s\] .*such as hours"),
        (pa.array([b"a", b"b"] * 60), "binary .*write it as text"),
        (pa.array([[0.5, 1.5], [0.25]] * 60), "lists of fractions.*write each element as a column of its own"),
        (pa.array([[[1]], [[2]]] * 60), "lists of list<.*> are no kind"),
        (pa.array([[], None] * 60, pa.list_(pa.int64())), "lists without a value"),
        (
            pa.array([2**70, 2**70 + 1] * 60, pa.decimal128(38, 0)),
            "integers of more than 15 digits: write them as text",
        ),
        (
            pa.array([2**70, None] * 60, pa.decimal128(38, 0)),
            "integers of more than 15 digits: write them as text",
        ),
        (pa.array(["1,234", "5,678", "901"] * 40), "numbers with commas.*write 1234.5"),
        (pd.arrays.IntervalArray.from_breaks([0, 1, 2])[[0, 1] * 60], "struct<.*write its fields"),
    ],
)
def test_what_no_kind_reads_is_left_out_with_a_remedy(column, reason):
    frame = pd.DataFrame({"x": [0, 1] * 60, "y": [1.0, 2.0] * 60})
    source = (
        pa.table({"odd": column, "x": frame["x"], "y": frame["y"]})
        if isinstance(column, pa.Array)
        else (frame.assign(odd=column))
    )
    features = infer(source, "y")
    assert list(features.columns) == ["x"]
    assert re.search(reason, features.why["odd"])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([[1.0, None], [2.0]] * 60), "Bag()"),  # pandas writes integers so
        (pa.RunEndEncodedArray.from_arrays([60, 120], pa.array([1.5, 2.5])), "Number()"),
        (pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "t", "v"), pa.array([5, 9] * 60)), "Id()"),
    ],
)
def test_other_encodings_are_decoded(column, kind):
    features = infer(pa.table({"odd": column, "y": [1.0, 2.0] * 60}), "y")
    assert str(features.columns["odd"]) == kind


def test_one_text_among_numbers_is_named():
    texts = [f"{i / 7:.3f}" for i in range(200)]
    texts[150] = "abc"
    twice = {"price": texts * 2, "y": [1.0, 2.0] * 200}
    assert "numbers but for 1 such as 'abc' in row 150" in infer(twice, "y").why["price"]
    once = {"price": texts, "x": [0, 1] * 100, "y": [1.0, 2.0] * 100}
    assert "numbers but for 1 such as 'abc' in row 150" in infer(once, "y").why["price"]
    words = {"city": ["Rom", "Ulm", "1"] * 40, "y": [1.0, 2.0] * 60}
    assert "but for" not in infer(words, "y").why["city"]


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_integers_above_64_bits_are_told(make):
    with pytest.raises(ValueError, match="integers above 2⁶³: give them as text"):
        infer(make({"x": [2**70, 2**70 + 1], "y": [1.0, 2.0]}), "y")


def test_a_text_that_never_repeats_is_no_id_even_where_some_are_missing():
    names = [None, *(f"u{row}" for row in range(1, 200))]
    features = infer({"name": names, "item": [row % 3 for row in range(200)], "y": range(200)}, "y")
    assert list(features.columns) == ["item"]
    assert features.why["name"] == "another text in every row: nothing to learn for new ones"


@pytest.mark.parametrize("form", ["{:02d}.{:02d}.2025", "{1:02d}/{0:02d}/2025", "2025/{1:02d}/{0:02d}"])
def test_dates_that_cannot_be_read_as_times_are_named(form):
    days = [form.format(row % 28 + 1, row % 12 + 1) for row in range(200)]
    why = infer({"day": days, "y": range(200)}, "y").why["day"]
    assert f"column 'day', row 0: {days[0]!r} is no time as in 2022-04-25 13:05:00; write it so" in why
