"""What a table holds, at a glance."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transun.data.reading import read_path
from transun.data.table import read_table
from transun.data.values import as_numbers, read
from transun.support.extras import need

__all__ = ["Overview", "overview"]


@dataclass(frozen=True)
class Overview:
    """The number of rows, and of each column its name, type, share missing, smallest and largest number."""

    rows: int
    columns: list[dict[str, Any]]


def overview(source: Any) -> Overview:
    """A look at every column of a table, which is read whole.

    >>> overview({"gmv": [1.0, None, 3.0]}).columns
    [{'name': 'gmv', 'type': 'double', 'missing': '33.3 %', 'smallest': '1', 'largest': '3'}]
    """
    table = read_path(source) if isinstance(source, str | Path) else read_table(source)
    return Overview(len(table), [_column(table, name) for name in table.column_names])


def _column(table: Any, name: str) -> dict[str, Any]:
    types = need("pyarrow").types
    array = read(table, name)
    missing = f"{100 * array.null_count / max(len(array), 1):.1f} %"
    low = high = ""
    if types.is_integer(array.type) or types.is_floating(array.type):
        numbers = as_numbers(name, array)
        fine = numbers[np.isfinite(numbers)]
        low, high = (f"{fine.min():g}", f"{fine.max():g}") if len(fine) else ("", "")
    kind = str(array.type).removeprefix("large_")
    return {"name": name, "type": kind, "missing": missing, "smallest": low, "largest": high}
