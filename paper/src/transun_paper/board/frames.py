"""Tables as pandas frames, in the form that libraries of boosted trees read without further work."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transun.data.table import as_numbers, column_array
from transun.support.extras import need
from transun_paper.board.tables import TableSplit

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Frames:
    """The features of a split table as frames: text as categories, times as their count of units, numbers as they are.

    The categories are those of the training rows; a value that they lack is missing. Whole numbers stay numbers, ids
    among them, since nobody told the libraries otherwise.
    """

    train: "pd.DataFrame"
    valid: "pd.DataFrame"
    test: "pd.DataFrame"

    @classmethod
    def of(cls, data: TableSplit) -> "Frames":
        """The frames of a split table."""
        names = data.test.column_names
        categories = {name: _categories(data.train, name) for name in names if _is_text(data.train, name)}
        return cls(*(_frame(part, names, categories) for part in (data.train, data.valid, data.test)))

    @property
    def categorical(self) -> list[str]:
        """The columns of categories."""
        return [str(name) for name in self.train.select_dtypes("category").columns]

    def map(self, change: Any) -> "Frames":
        """The frames after a change that is made to each of them."""
        return Frames(change(self.train), change(self.valid), change(self.test))


def _is_text(table: "pa.Table", name: str) -> bool:
    types = need("pyarrow").types
    stored = column_array(table, name).type
    return bool(types.is_large_string(stored) or types.is_boolean(stored))


def _text(table: "pa.Table", name: str) -> "pa.Array":
    return column_array(table, name).cast(need("pyarrow").large_string())


def _categories(table: "pa.Table", name: str) -> list[str]:
    return sorted(_text(table, name).unique().drop_null().to_pylist())


def _frame(table: "pa.Table", names: list[str], categories: dict[str, list[str]]) -> "pd.DataFrame":
    pandas = need("pandas")
    columns = {}
    for name in names:
        if name in categories:
            text = _text(table, name)
            known = need("pyarrow").array(categories[name], text.type)
            index = need("pyarrow.compute").index_in(text, value_set=known)
            codes = index.fill_null(-1).to_numpy(zero_copy_only=False)
            columns[name] = pandas.Categorical.from_codes(codes, categories=categories[name])
        else:
            columns[name] = as_numbers(f"column {name!r}", _numeric(table, name))
    return pandas.DataFrame(columns)


def _numeric(table: "pa.Table", name: str) -> "pa.Array":
    pa, array = need("pyarrow"), column_array(table, name)
    return array.cast(pa.int64()) if pa.types.is_temporal(array.type) else array
