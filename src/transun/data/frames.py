"""The one door for data frames: of pandas, polars, Arrow, DuckDB, Modin and whatever else narwhals knows.

Inside, a table is a `pyarrow.Table`. A regressor of another library gets a pandas frame, which all of them read.
"""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.schema import refuse_duplicates, require_columns
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PANDAS_INDEX", "arrow_table", "in_memory", "is_frame", "pandas_frame"]

PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""The names that pyarrow gives to the unnamed index of a pandas frame: row labels, never a feature."""


def is_frame(value: Any) -> bool:
    """Whether a value has named columns, as a frame does, rather than being an array, a list or a series.

    >>> import pyarrow
    >>> is_frame(pyarrow.table({"price": [1.5]})), is_frame([[1.5]])
    (True, False)
    """
    return _as_narwhals(value) is not value


def in_memory(frame: Any, columns: Iterable[str] | None = None) -> Any:
    """The result of a query, such as a DuckDB relation or a lazy frame of polars, as an Arrow table.

    In a masked array, whose mask most libraries ignore, NaN takes the place of what is masked. Anything else is
    returned as it is. Frames of a cluster are refused: their rows may not fit into this machine.

    Args:
        frame: of any library, or no frame at all.
        columns: the columns that a query is computed for; None for all.

    >>> import polars
    >>> in_memory(polars.LazyFrame({"price": [1.5], "item": [3]}), ["item"]).to_pydict()
    {'item': [3]}

    """
    if isinstance(frame, np.ma.MaskedArray):
        return np.ma.filled(frame.astype(np.float64), np.nan)
    query = _as_narwhals(frame)
    if not isinstance(query, need("narwhals").LazyFrame):
        return frame
    library = query.implementation
    if library.is_dask() or library.is_spark_like():
        raise TypeError(
            f"the rows of a {library.value} frame may not fit into this machine: diagnose, evaluate and predict them "
            "where they are by transun.engines, or collect them into a pandas frame first"
        )
    if columns is not None:
        query = query.select(require_columns(query.collect_schema().names(), columns))
    return query.collect("pyarrow").to_native()


def arrow_table(frame: Any, columns: Iterable[str] | None = None) -> "pa.Table":
    """A frame as an Arrow table; memory is shared where its library allows it.

    Args:
        frame: of any library.
        columns: the columns that a query is computed for; None for all. A frame in memory is read whole.

    >>> import pandas
    >>> arrow_table(pandas.DataFrame({"price": [1.5]}, index=[7])).to_pydict()
    {'price': [1.5]}

    """
    pa = need("pyarrow")
    if isinstance(frame, pa.Table):
        return frame
    frame = in_memory(frame, columns)
    if isinstance(frame, pa.Table):
        return frame
    # The Arrow interface is the shortest way, and known to more libraries; Modin does not have it.
    has_arrow = hasattr(frame, "__arrow_c_stream__")
    if _is_series(frame):
        raise TypeError(
            f"cannot read a table from a {type(frame).__name__}, which is one column without the others: give a frame, "
            "or a dict {'name': column}"
        )
    if not has_arrow and not is_frame(frame):
        raise TypeError(
            f"cannot read a table from {type(frame).__name__}: give a frame of pandas, polars, Arrow, DuckDB or Modin, "
            "a dict of columns, or the path of a CSV or Parquet file"
        )
    try:
        table = pa.table(frame) if has_arrow else _as_narwhals(frame).to_arrow()
    except OverflowError as error:
        raise ValueError("a column holds integers above 2⁶³: give them as text") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        # pandas lets a column hold anything; Arrow's second argument names the column.
        details = "; ".join(map(str, error.args))
        raise ValueError(f"a column mixes kinds of values ({details}): make it one, e.g. all text") from error
    return table.select([name for name in table.column_names if not PANDAS_INDEX.fullmatch(name)])


def pandas_frame(features: Any) -> Any:
    """The features of a regressor of another library: frames as pandas frames, anything else as it is.

    scikit-learn, LightGBM, XGBoost and CatBoost all read pandas frames, with their categories. Not all read frames of
    every other library, and LightGBM ends the process at a polars column of categories. Where pandas is not
    installed, frames are passed on as they are, because scikit-learn reads those of polars and Arrow too.

    >>> import polars
    >>> type(pandas_frame(polars.DataFrame({"price": [1.5]}))).__module__
    'pandas'
    >>> pandas_frame([[1.5]])
    [[1.5]]
    """
    features = in_memory(features)
    return _as_narwhals(features).to_pandas() if is_frame(features) and find_spec("pandas") else features


def _as_narwhals(value: Any) -> Any:
    """The frame in the interface of narwhals; a value that narwhals does not know as a frame is returned as it is."""
    narwhals = need("narwhals")
    try:
        return narwhals.from_native(value, pass_through=True)
    except narwhals.exceptions.DuplicateError:
        refuse_duplicates([str(name) for name in getattr(value, "column_names", value.columns)])
        raise


def _is_series(value: Any) -> bool:
    narwhals = need("narwhals")
    return isinstance(narwhals.from_native(value, series_only=True, pass_through=True), narwhals.Series)
