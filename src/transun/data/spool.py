"""Tables that are made once and read several times: in memory while small, from then on in a temporary file."""

import tempfile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from transun.data.columns import Columns
from transun.data.encodings import concatenate
from transun.data.formats import PARQUET, MemoryStream
from transun.support.extras import need
from transun.support.files import naming_full_disk

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Spool"]

# Bytes in memory from which on tables go to a file: a few million numbers.
_MEMORY = 1 << 26


class Spool:
    """Tables appended one after the other, which are then read as `Columns`; the file is removed at the end.

    Args:
        memory: bytes of tables that are kept in memory.

    >>> with Spool() as spool:
    ...     spool.append(read_table({"y": [1.0, 2.0]}))
    ...     spool.append(read_table({"y": [3.0]}))
    ...     [chunk.numbers("y").tolist() for chunk in spool.columns().chunks()]
    [[1.0, 2.0, 3.0]]

    """

    def __init__(self, memory: int = _MEMORY) -> None:
        self.memory = memory
        self._tables: list[pa.Table] = []
        self._bytes = 0
        self._folder = tempfile.TemporaryDirectory(prefix="transun-")
        self._writer: Any = None

    def append(self, table: "pa.Table") -> None:
        """Add some rows. The types of a file are those of the tables that were in memory before it."""
        with naming_full_disk(self._path, "make room, or set TMPDIR to a folder on another disk"):
            self._append(table)

    def _append(self, table: "pa.Table") -> None:
        if self._writer is not None:
            self._writer.write_table(table.cast(self._writer.schema))
            return
        self._tables.append(table)
        self._bytes += table.nbytes
        if self._bytes > self.memory:
            joined = self._joined()
            self._writer = need("pyarrow.parquet").ParquetWriter(self._path, joined.schema)
            self._writer.write_table(joined)
            self._tables = []

    def columns(self) -> Columns:
        """All rows so far; nothing can be appended afterwards."""
        if self._writer is None:
            return Columns(MemoryStream(self._joined()))
        self._writer.close()
        return Columns(PARQUET.stream([self._path], self._writer.schema.names))

    def _joined(self) -> "pa.Table":
        return concatenate(self._tables)

    @property
    def _path(self) -> Path:
        return Path(self._folder.name) / "rows.parquet"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()
