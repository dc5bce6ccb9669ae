"""One table as a frame of every library, for laws that hold whatever library a frame is of."""

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest


def _pandas(table: pa.Table) -> Any:
    pytest.importorskip("pandas")
    return table.to_pandas()


def _polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def _lazy_polars(table: pa.Table) -> Any:
    return _polars(table).lazy()


def _duckdb(table: pa.Table) -> Any:
    # A connection of its own, which the relation keeps alive; other tests may have settings in the default one.
    duckdb = pytest.importorskip("duckdb", reason="the extra `duckdb` is not installed")
    return duckdb.connect().from_arrow(table)


def _modin(table: pa.Table) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Modin about its engines, and about a pandas that is too new for it
        modin = pytest.importorskip("modin.pandas", reason="modin is missing or too old", exc_type=ImportError)
        return modin.DataFrame(table.to_pandas())


LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "lazy polars": _lazy_polars,
    "Arrow": lambda table: table,
    "DuckDB": _duckdb,
    "Modin": _modin,
}
