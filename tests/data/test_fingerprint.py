"""Equal rows have equal fingerprints wherever they come from; any change shows."""

import numpy as np
import pytest

from transun.data.fingerprint import fingerprint

pl = pytest.importorskip("polars")

ROWS = {
    "gmv": [1.5, 2.0, None],
    "item": ["a", None, "ü|b"],
    "number": [3, -1, 7],
    "when": np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[us]"),
    "tags": [["x"], [], ["y", "z"]],
}


def frame(**changes):
    return pl.DataFrame(ROWS | changes)


def test_the_same_from_csv_and_parquet(tmp_path):
    flat = frame().drop("tags", "when")
    flat.write_csv(tmp_path / "a.csv")
    flat.write_parquet(tmp_path / "a.parquet")
    found = {fingerprint(source, flat.columns) for source in (tmp_path / "a.csv", tmp_path / "a.parquet", flat)}
    assert len(found) == 1


def test_order_of_columns_and_pieces_do_not_matter():
    whole = frame()
    cut = pl.concat([whole[:1], whole[1:]], rechunk=False).select(reversed(whole.columns))
    sliced = pl.concat([whole, whole])[3:]
    assert fingerprint(whole, whole.columns) == fingerprint(cut, whole.columns) == fingerprint(sliced, whole.columns)


@pytest.mark.parametrize(
    "changes",
    [
        {"gmv": [1.5, 2.0, 0.0]},
        {"gmv": [1.5, 2.1, None]},
        {"item": ["aü", None, "|b"]},
        {"number": [-1, 3, 7]},
        {"when": np.array(["2024-01-01", "2024-01-02", "2024-01-04"], "datetime64[us]")},
        {"tags": [["x"], ["y"], ["z"]]},
    ],
)
def test_any_change_shows(changes):
    assert fingerprint(frame(), ROWS) != fingerprint(frame(**changes), ROWS)


def test_empty_text_is_missing_as_in_a_csv_file():
    assert fingerprint(frame(), ROWS) == fingerprint(frame(item=["a", "", "ü|b"]), ROWS)


def test_a_name_and_a_column_more_show():
    assert fingerprint(frame(), ["gmv"]) != fingerprint(frame().rename({"gmv": "x"}), ["x"])
    assert fingerprint(frame(), ["gmv"]) != fingerprint(frame(), ["gmv", "item"])
