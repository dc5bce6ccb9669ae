"""A model remembers its columns: rows in any format predict alike, what training has not seen is said, text passes."""

import csv
import io
import json
import sys

import numpy as np
import pytest

from transun.tables import load, train
from transun.training import Recipe

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """A model whose ids are digits written as text, with a truth value and instants of Tokyo."""
    folder = tmp_path_factory.mktemp("coded")
    rng = np.random.default_rng(0)
    rows = 600
    code = rng.integers(1, 21, rows)
    frame = pl.DataFrame(
        {
            "code": [f"{c:03d}" if c < 20 else "A20" for c in code],
            "member": rng.random(rows) < 0.5,
            "at": pl.Series(rng.integers(0, 10**6, rows) * 1000, dtype=pl.Int64)
            .cast(pl.Datetime("ms"))
            .dt.replace_time_zone("UTC")
            .dt.convert_time_zone("Asia/Tokyo"),
            "year": rng.integers(2015, 2024, rows),
            "gmv": np.exp(0.2 * code) * rng.lognormal(0, 0.5, rows),
        }
    )
    frame.write_parquet(folder / "rows.parquet")
    train(folder / "rows.parquet", "gmv", "LogMSE()", recipe=Recipe(epochs=3), progress=False).save(folder / "model")
    return folder


def predictions(run, model, data, out, *options):
    run("predict", model, data, "--out", out, *options)
    return pl.read_parquet(out)["prediction"].to_numpy()


def test_csv_and_parquet_predict_the_same(coded, run, tmp_path):
    frame = pl.read_parquet(coded / "rows.parquet")
    new = frame.filter(pl.col("code") != "A20").head(200)  # digits only: a guess would make them numbers
    new.write_parquet(tmp_path / "new.parquet")
    expected = predictions(run, coded / "model", tmp_path / "new.parquet", tmp_path / "p.parquet")
    np.testing.assert_array_equal(load(coded / "model").predict(tmp_path / "new.parquet").numpy(), expected)
    written = {
        "digits": new,
        "capitals": new.with_columns(member=pl.col("member").cast(pl.String).str.to_titlecase()),
        "utc": new.with_columns(at=pl.col("at").dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%dT%H:%M:%S%:z")),
        "offset": new.with_columns(at=pl.col("at").dt.to_string("%Y-%m-%d %H:%M:%S%:z")),
        "local": new.with_columns(at=pl.col("at").dt.replace_time_zone(None)),
    }
    for name, same in written.items():
        same.write_csv(tmp_path / f"{name}.csv")
        same.write_parquet(tmp_path / f"{name}.parquet")
        for ending in ("csv", "parquet"):
            got = predictions(run, coded / "model", tmp_path / f"{name}.{ending}", tmp_path / "q.parquet")
            np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=f"{name}.{ending}")
    new.write_csv(tmp_path / "semicolons.csv", separator=";")
    np.testing.assert_allclose(
        predictions(run, coded / "model", tmp_path / "semicolons.csv", tmp_path / "q.parquet"), expected, rtol=1e-6
    )


def test_evaluation_reads_as_prediction_does(coded, run, tmp_path):
    new = pl.read_parquet(coded / "rows.parquet").filter(pl.col("code") != "A20")
    new.write_parquet(tmp_path / "new.parquet")
    new.write_csv(tmp_path / "new.csv")
    of_parquet, of_csv = (
        json.loads(run("evaluate", coded / "model", tmp_path / f"new.{ending}", "--by", "code", "--json").out)
        for ending in ("parquet", "csv")
    )
    assert of_csv["assessment"]["rows"] == of_parquet["assessment"]["rows"]
    for one, other in zip(of_csv["assessment"]["metrics"], of_parquet["assessment"]["metrics"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-5)
    segments = [
        {segment["value"] for table in result["assessment"]["segments"] for segment in table["segments"]}
        for result in (of_csv, of_parquet)
    ]
    assert segments[0] == segments[1]
    assert "001" in segments[0]


def test_what_training_has_not_seen_is_said_and_limited(here, run):
    frame = pl.read_csv("orders.csv").head(200)
    changed = frame.with_columns(country=pl.col("country").str.to_lowercase() + " ", price=pl.col("price") + 1e6)
    changed.write_csv("new.csv")
    frame.write_csv("old.csv")
    assert run("predict", "model", "old.csv", "--max-unseen", 0, "--out", "p.csv").err == ""
    told = run("predict", "model", "new.csv", "--out", "p.csv")
    assert told.out == "200 predictions written to p.csv\n"
    assert "column 'country': 200 of 200 values (100.0 %) were not seen in training" in told.err
    assert "'de ' is 'DE'" in told.err
    assert "column 'price': 200 of 200 numbers are above" in told.err
    shift = json.loads(run("predict", "model", "new.csv", "--out", "p.csv", "--json").out)["shift"]
    assert (shift["country"]["unseen"], shift["price"]["above"], shift["item_id"]["unseen"]) == (200, 200, 0)

    for out in ("limited.csv", "-"):
        stopped = run("predict", "model", "new.csv", "--max-unseen", 0.5, "--out", out, code=2)
        assert "column 'country': 100.0 % of 200 values were not seen in training" in stopped.err
        assert "--max-unseen allows 50 %" in stopped.err
        assert stopped.out == ""
    assert not (here / "limited.csv").exists()
    assert "'country'" in run("evaluate", "model", "new.csv", "--max-unseen", 0.5, code=2).err
    call = ("compare", "model", "other", "new.csv", "--out", "comparison")
    assert "'country'" in run(*call, "--max-unseen", 0.5, code=2).err
    assert not list((here / "comparison").glob("*"))

    assert "column 'country': 200 of 200" in run("evaluate", "model", "new.csv").err
    assert json.loads(run("evaluate", "model", "new.csv", "--json").out)["shift"]["country"]["unseen"] == 200
    compared = run(*call)
    assert "other: column 'country': 200 of 200" in compared.err
    assert json.loads((here / "comparison" / "comparison.json").read_text())["shift"]["other"]["country"]["unseen"]


def test_missing_values_are_said_where_training_had_none(here, run):
    pl.read_csv("orders.csv").head(50).with_columns(country=pl.lit(None, pl.String)).write_csv("new.csv")
    told = run("predict", "model", "new.csv", "--out", "p.csv")
    assert "column 'country': 50 of 50 rows have no value, and in training every row had one" in told.err


HEADER = ["zip", "key", "at", "rate", "free", "yes", "note"]
KEPT = [
    ["00100", "18446744073709551616", "2022-04-25 10:00:00+02:00", "1.10", "0.00", "False", 'say "hi", all'],
    ["10115", "18446744073709551617", "2022-04-25", "NA", "-0", "TRUE", "  "],
    ["", "", "", "", "", "", ""],
]


def with_kept_columns(path, rows=50):
    """Orders beside columns that a reader would like to improve."""
    frame = pl.read_csv("orders.csv").head(rows)
    with path.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*HEADER, *frame.columns])
        for number, row in enumerate(frame.iter_rows()):
            lines.writerow([*KEPT[number % len(KEPT)], *row])
    return path


def test_kept_columns_pass_through_as_they_are_written(here, run):
    with_kept_columns(here / "kept.csv")
    keep = [part for name in [*HEADER, "item_id"] for part in ("--keep", name)]
    run("predict", "model", "kept.csv", *keep, "--out", "p.csv")
    written = run("predict", "model", "kept.csv", *keep, "--out", "-").out
    assert written == (here / "p.csv").read_text()
    rows = list(csv.reader(io.StringIO(written, newline="")))
    given = list(csv.reader(io.StringIO((here / "kept.csv").read_text(), newline="")))
    item = given[0].index("item_id")
    assert [row[:-1] for row in rows] == [[*row[: len(HEADER)], row[item]] for row in given]


def test_debiased_tables_keep_their_columns_as_they_are_written(here, run):
    with_kept_columns(here / "kept.csv", rows=600)
    run("debias", "kept.csv", "--target", "gmv", "--pred", "predicted", "--out", "fixed.csv")
    before, after = ((here / name).read_text().splitlines() for name in ("kept.csv", "fixed.csv"))
    assert [line.rsplit(",", 1)[0] for line in after] == before


def test_a_kept_column_has_the_type_of_training_in_parquet(coded, run, tmp_path):
    pl.read_parquet(coded / "rows.parquet").filter(pl.col("code") != "A20").write_csv(tmp_path / "new.csv")
    run(
        "predict",
        coded / "model",
        tmp_path / "new.csv",
        "--keep",
        "code",
        "--keep",
        "gmv",
        "--out",
        tmp_path / "p.parquet",
    )
    table = pl.read_parquet(tmp_path / "p.parquet")
    assert table["code"][0].startswith("0")
    assert table["gmv"].dtype == pl.Float64


def test_a_model_is_debiased_on_rows_of_its_types(coded, run, tmp_path):
    pl.read_parquet(coded / "rows.parquet").filter(pl.col("code") != "A20").write_csv(tmp_path / "new.csv")
    call = ("debias", coded / "model", tmp_path / "new.csv", "--epochs", 1, "--out", tmp_path / "debiased")
    run(*call)
    shift = json.loads(
        run("predict", tmp_path / "debiased", tmp_path / "new.csv", "--out", tmp_path / "p.csv", "--json").out
    )["shift"]
    assert shift["code"]["unseen"] == 0


def test_a_pipe_is_read_as_a_file_is(here, run, monkeypatch):
    content = (here / "orders.csv").read_text().replace(",", ";").encode("utf-16")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    run("predict", "model", "-", "--out", "p.parquet")
    np.testing.assert_allclose(
        pl.read_parquet("p.parquet")["prediction"], load("model").predict("orders.parquet"), rtol=1e-5
    )


QUICK = ("--target", "gmv", "--head", "LogMSE()", "--epochs", 1, "--exclude", "predicted")


def test_columns_that_no_kind_reads_are_left_out_of_a_training(here, run):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table("orders.parquet").slice(0, 300)
    odd = {
        "fields": pa.array([{"a": 1}, {"a": 2}] * 150),
        "entries": pa.array([[("a", 1)], []] * 150, pa.map_(pa.string(), pa.int64())),
        "took": pa.array(range(300), pa.duration("s")),
        "vector": pa.array([[0.5, 1.5], [2.5, 3.5]] * 150),
    }
    for name, values in odd.items():
        table = table.append_column(name, values)
    pq.write_table(table, "odd.parquet")
    told = run("fit", "odd.parquet", *QUICK, "--out", "new").out
    assert load("new").features.why.keys() >= odd.keys()
    assert not load("new").features.columns.keys() & odd.keys()
    assert all(name in told for name in odd)
    run("predict", "new", "odd.parquet", "--keep", "fields", "--out", "p.parquet")
    assert (
        "CSV cannot hold column 'fields', which is struct"
        in run("predict", "new", "odd.parquet", "--keep", "fields", "--out", "p.csv", code=2).err
    )


def test_a_column_that_gives_the_target_away_is_named_in_the_plan(here, run):
    told = " ".join(run("fit", "orders.csv", *QUICK, "--out", "new").out.split())
    assert "FOLLOWS" in told  # refunded = 0.1 · gmv
    assert "FOLLOWS" in load("new").features.why["refunded"]


def test_folders_say_what_is_read_and_what_is_left_out(here, run):
    folder = here / "days"
    (folder / ".ipynb_checkpoints").mkdir(parents=True)
    frame = pl.read_csv("orders.csv")
    for number, part in enumerate((frame.head(900), frame.tail(600))):
        part.write_csv(folder / f"{number}.csv")
    frame.write_csv(folder / ".ipynb_checkpoints" / "0-checkpoint.csv")
    (folder / "notes.txt").write_text("hello")
    sentence = "days: 2 files are read, 0.csv to 1.csv; left out: .ipynb_checkpoints/0-checkpoint.csv, notes.txt"
    informed = run("info", "days", "--json")
    assert json.loads(informed.out)["rows"] == 1500
    assert sentence in informed.err
    assert sentence in run("predict", "model", "days", "--out", "p.parquet").err
    assert len(pl.read_parquet("p.parquet")) == 1500
    np.testing.assert_allclose(
        pl.read_parquet("p.parquet")["prediction"], load("model").predict("orders.parquet"), rtol=1e-5
    )
    frame.write_parquet(folder / "2.parquet")
    for command in (
        ("info", "days"),
        ("fit", "days", *QUICK, "--out", "new"),
        ("predict", "model", "days", "--out", "p.csv"),
        ("evaluate", "model", "days"),
        ("diagnose", "days", "--target", "gmv", "--pred", "predicted"),
        ("debias", "days", "--target", "gmv", "--pred", "predicted", "--out", "fixed.csv"),
    ):
        assert "files of several formats, as 2.parquet and 0.csv" in run(*command, code=2).err


def test_files_that_differ_in_types_are_named_with_the_column(here, run):
    folder = here / "days"
    folder.mkdir()
    frame = pl.read_parquet("orders.parquet")
    frame.write_parquet(folder / "a.parquet")
    frame.with_columns(pl.col("item_id").cast(pl.String)).write_parquet(folder / "b.parquet")
    for command in (
        ("info", "days"),
        ("fit", "days", *QUICK, "--out", "new"),
        ("predict", "model", "days", "--out", "p.csv"),
        ("evaluate", "model", "days"),
        ("diagnose", "days", "--target", "gmv", "--pred", "predicted", "--by", "item_id"),
    ):
        told = run(*command, code=2).err
        assert "b.parquet: column 'item_id' holds text, but numbers in" in told
        assert "write both files alike" in told


@pytest.mark.parametrize("command", [("fit", "new.csv", *QUICK), ("predict", "model", "new.csv", "--out", "p.csv")])
def test_another_code_page_is_told_with_the_remedy(here, run, command):
    frame = pl.read_csv("orders.csv").with_columns(country=pl.lit("Österreich"))
    (here / "new.csv").write_bytes(frame.write_csv().encode("cp1252"))
    assert "new.csv is not in UTF-8" in run(*command, code=2).err


@pytest.mark.parametrize(
    "command",
    [
        ("diagnose", "huge.csv", "--target", "gmv", "--pred", "predicted"),
        ("debias", "huge.csv", "--target", "gmv", "--pred", "predicted", "--out", "fixed.csv"),
        ("evaluate", "model", "huge.csv"),
    ],
)
def test_targets_that_cannot_be_squared_are_refused(here, run, command):
    pl.read_csv("orders.csv").with_columns(gmv=pl.col("gmv") * 1e300).write_csv("huge.csv")
    assert "the target of row 0 is" in run(*command, code=2).err


def test_a_mistake_far_down_is_named_with_its_row(here, run):
    frame = pl.read_csv("orders.csv").with_columns(pl.col("price").cast(pl.String))
    long = pl.concat([frame] * 25)
    wrong = long.with_columns(price=pl.when(pl.int_range(pl.len()) == 33_000).then(pl.lit("cheap")).otherwise("price"))
    wrong.write_csv("wrong.csv")
    told = run("predict", "model", "wrong.csv", "--out", "p.csv", code=2).err
    assert "rows from 32,768 on" in told
    assert f"column 'price', row {33_000 - 32_768}: 'cheap' is text, not a number" in told
