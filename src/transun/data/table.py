"""Tables from wherever they are - frames, arrays, files - as one Arrow table, with errors that say what to do."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

_SUFFIXES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
# What pyarrow makes of the unnamed index of a pandas frame: row labels, never a feature.
_INDEX = re.compile(r"__index_level_\d+__")


def read_table(source: Any, columns: Iterable[str] | None = None) -> "pa.Table":
    """A pyarrow table from a frame, a dict of columns, or a path; memory is shared where the source allows it.

    Frames are taken through the Arrow interface, which pandas, polars, DuckDB and others offer alike. NaN counts as
    missing in pandas frames and dicts, as these have no other way to say it.

    Args:
        source: a pyarrow table; a pandas or polars frame; a dict of equally long arrays or lists, where a 2-D array is
            a column of lists; the path of a CSV or Parquet file, or of a folder, whose Parquet files are read in the
            order of their names. Types of a CSV column are guessed from all its values, and empty text is missing.
        columns: the columns wanted, in this order; None keeps all. Parquet files are read for these columns only.

    >>> read_table({"item": [3, 1], "price": [1.5, float("nan")]})["price"].null_count
    1

    """
    wanted = None if columns is None else tuple(columns)
    if isinstance(source, (str, PathLike)):
        table = _from_path(Path(source), wanted)
    elif isinstance(source, Mapping):
        pa = need("pyarrow")
        # Arrays of unequal length are pyarrow's own, clear, error.
        table = pa.table({str(name): _from_values(str(name), values) for name, values in source.items()})
    else:
        table = _from_frame(source)
    _refuse_duplicates(table.column_names)
    return table if wanted is None else table.select(require(table.column_names, wanted))


def require(names: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """The wanted names if all are there, else an error with the nearest ones.

    >>> require(["price", "item"], ["prise"])
    Traceback (most recent call last):
    ValueError: there is no column 'prise': did you mean 'price'? The table has price, item
    """
    there, wanted = list(names), list(wanted)
    for name in wanted:
        if name not in there:
            near = " or ".join(map(repr, get_close_matches(name, there, n=2)))
            shown = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
            raise ValueError(
                f"there is no column {name!r}: {f'did you mean {near}? ' if near else ''}The table has {shown}"
            )
    return wanted


def files(folder: Path) -> list[Path]:
    """The Parquet files of a folder and its subfolders, by name; hidden ones are what other programs left behind."""
    found = sorted(
        path
        for path in folder.rglob("*.parquet")
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )
    if not found:
        raise ValueError(f"the folder {folder} holds no *.parquet file")
    return found


def _from_path(path: Path, wanted: tuple[str, ...] | None) -> "pa.Table":
    if path.is_dir():
        pa = need("pyarrow")
        # Permissive: files written on other days may hold the same column in another width.
        table = pa.concat_tables([_from_parquet(part, wanted) for part in files(path)], promote_options="permissive")
    elif not path.exists():
        near = get_close_matches(path.name, [other.name for other in path.parent.glob("*")], n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise FileNotFoundError(f"there is no file {path}{hint}")
    elif not path.name.lower().endswith(_SUFFIXES):
        raise ValueError(f"{path}: cannot tell the format by its name; known endings are {', '.join(_SUFFIXES)}")
    elif path.stat().st_size == 0:
        raise ValueError(f"{path} is an empty file: nothing was ever written to it")
    else:
        table = _from_parquet(path, wanted) if path.name.lower().endswith(".parquet") else _from_csv(path)
    if len(table) == 0:
        raise ValueError(f"{path} has no rows")
    return table


def _from_parquet(path: Path, wanted: tuple[str, ...] | None) -> "pa.Table":
    pa, parquet = need("pyarrow"), need("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            _refuse_duplicates(file.schema_arrow.names, path)
            columns = None if wanted is None else require(file.schema_arrow.names, wanted)
            return file.read(columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(
            f"{path} is truncated or no Parquet file ({_first_line(error)}): write or download it again"
        ) from error


def _from_csv(path: Path) -> "pa.Table":
    pa, compute, csv = (need(f"pyarrow{module}") for module in ("", ".compute", ".csv"))
    delimiter = "\t" if ".tsv" in path.name.lower() else ","
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter))
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is no readable CSV file: {_first_line(error)}") from error
    for index, field in enumerate(table.schema):
        if field.type == pa.string():
            empty = compute.equal(table[index], "")
            table = table.set_column(index, field.name, compute.if_else(empty, None, table[index]))
    return table


def _from_frame(source: Any) -> "pa.Table":
    pa = need("pyarrow")
    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(
            f"cannot read a table from {type(source).__name__}: give a pandas, polars or pyarrow table, "
            "a dict of columns, or the path of a CSV or Parquet file (a lazy frame: collect() it first)"
        )
    # pyarrow refuses duplicates of pandas in words of its own.
    _refuse_duplicates([str(name) for name in getattr(source, "columns", ())])
    try:
        table = pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        # pandas lets a column hold anything; Arrow's second argument names the column.
        what = "; ".join(map(str, error.args))
        raise ValueError(f"a column mixes kinds of values ({what}): make it one, e.g. all text") from error
    return table.select([name for name in table.column_names if not _INDEX.fullmatch(name)])


def _from_values(name: str, values: Any) -> "pa.Array":
    pa = need("pyarrow")
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if getattr(values, "ndim", 1) == 2:
        matrix = np.asarray(values)
        return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])
    try:
        # Tensors have an array interface that pyarrow does not look for.
        return pa.array(np.asarray(values) if hasattr(values, "__array__") else values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name!r} mixes kinds of values: {_first_line(error)}") from error


def _refuse_duplicates(names: Iterable[str], path: Path | None = None) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{path or 'the table'} has more than one column {twice[0]!r}: rename or drop one, "
            "or which of them is meant depends on their order"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(". ")
