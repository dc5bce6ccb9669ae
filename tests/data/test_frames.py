"""Frames of every library at the one door."""

import pandas as pd
import pyarrow as pa
import pytest

from frame_libraries import LIBRARIES
from transun.data import drop_missing, read_table
from transun.data.frames import arrow_table, in_memory, is_frame, pandas_frame
from transun.data.table import column_array

TABLE = pa.table({"item": [3, 1, None], "price": [1.5, None, 2.0], "city": ["Rom", None, "Ulm"]})


@pytest.fixture(params=LIBRARIES)
def frame(request):
    return LIBRARIES[request.param](TABLE)


@pytest.mark.filterwarnings("ignore::UserWarning:modin")
def test_the_rows_are_the_same(frame):
    assert is_frame(frame)
    table = read_table(frame, ["city", "item"])
    assert {name: column_array(table, name).to_pylist() for name in table.column_names} == {
        "city": ["Rom", None, "Ulm"],
        "item": [3, 1, None],
    }


@pytest.mark.filterwarnings("ignore::UserWarning:modin")
def test_rows_can_be_picked(frame):
    table, dropped = drop_missing(frame, "price")
    assert column_array(table, "city").to_pylist() == ["Rom", "Ulm"]
    assert dropped == 1


def test_text_of_polars_may_be_inside_other_values():
    pl = pytest.importorskip("polars")
    columns = {
        "list": [["a", None], [], None],
        "lists": [[["a"]], [], None],
        "bytes": [b"a", b"", None],
        "struct": [{"x": "a"}, {"x": None}, None],
        "pair": pl.Series([["a", "b"], ["c", "d"], None], dtype=pl.Array(pl.String, 2)),
        "category": pl.Series(["a", "b", None], dtype=pl.Categorical),
    }
    frame = pl.DataFrame(columns)
    picked = read_table(frame).filter(pa.array([False, True, True]))
    assert picked.to_pylist() == frame[1:].to_dicts()


@pytest.mark.filterwarnings("ignore::UserWarning:modin")
def test_a_regressor_gets_pandas(frame):
    made = pandas_frame(frame)
    assert isinstance(made, pd.DataFrame)
    assert made["price"].fillna(0.0).tolist() == [1.5, 0.0, 2.0]


def test_a_pandas_frame_is_not_copied():
    frame = pd.DataFrame({"a": [1]})
    assert pandas_frame(frame) is frame


def test_only_the_columns_of_a_query_that_are_wanted_are_computed():
    pl = pytest.importorskip("polars")

    def fail(column):
        raise AssertionError("computed")

    query = pl.LazyFrame({"item": [1, 2]}).with_columns(
        pl.col("item").map_batches(fail, return_dtype=pl.Int64).alias("other")
    )
    assert arrow_table(query, ["item"]).to_pydict() == {"item": [1, 2]}


@pytest.mark.parametrize("value", [3, [1, 2], TABLE["item"], pd.Series([1.0])])
def test_what_is_no_frame_passes_unchanged(value):
    assert not is_frame(value)
    assert in_memory(value) is value
    assert pandas_frame(value) is value


def test_frames_of_a_cluster_are_refused():
    pytest.importorskip("dask.dataframe", reason="the extra `dask` is not installed")
    from dask.dataframe import from_pandas

    with pytest.raises(TypeError, match=r"may not fit into this machine.*transun\.engines"):
        read_table(from_pandas(pd.DataFrame({"a": [1]}), npartitions=1))
