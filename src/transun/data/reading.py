"""A whole table from a path, folders of CSV files among them."""

from pathlib import Path
from typing import TYPE_CHECKING

from transun.data.table import read_table
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_path"]

_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def read_path(path: str | Path) -> "pa.Table":
    """The rows of a file or of a folder in memory: as `read_table`, and a folder of CSV files in the order of names.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, value in (("b", 2.5), ("a", 1)):
    ...     _ = (folder / f"{name}.csv").write_text(f"gmv{chr(10)}{value}{chr(10)}")
    >>> read_path(folder)["gmv"].to_pylist()
    [1.0, 2.5]
    """
    place = Path(path)
    tables = sorted(part for part in place.rglob("*") if part.name.lower().endswith(_CSV)) if place.is_dir() else []
    if not tables or any(place.rglob("*.parquet")):
        return read_table(place)
    # Permissive: a file may have whole numbers where another has fractions.
    return need("pyarrow").concat_tables(map(read_table, tables), promote_options="permissive")
