"""Tables that are made once and read several times: in memory while small, from then on in temporary files."""

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

# Bytes in memory from which on tables go to files: a few million numbers.
_MEMORY = 1 << 26


class Spool:
    """Tables appended one after the other, which are then read as `Columns`; files are removed at the end.

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
        self._files: list[Path] = []
        self._writer: Any = None  # of the last file

    def append(self, table: "pa.Table") -> None:
        """Add some rows, in whatever types their columns are."""
        with naming_full_disk(Path(self._folder.name), "make room, or set TMPDIR to a folder on another disk"):
            self._append(table)

    def _append(self, table: "pa.Table") -> None:
        if self._writer is not None:
            self._write(table)
            return
        self._tables.append(table)
        self._bytes += table.nbytes
        if self._bytes > self.memory:
            self._write(concatenate(self._tables))
            self._tables = []

    def _write(self, table: "pa.Table") -> None:
        """Write to the last file, or begin another: a file has one type for each column, and rows may have others."""
        if self._writer is None or not self._writer.schema.equals(table.schema):
            if self._writer is not None:
                self._writer.close()
            self._files.append(Path(self._folder.name) / f"rows-{len(self._files)}.parquet")
            self._writer = need("pyarrow.parquet").ParquetWriter(self._files[-1], table.schema)
        self._writer.write_table(table)

    def columns(self) -> Columns:
        """All rows so far; nothing can be appended afterwards."""
        if self._writer is None:
            return Columns(MemoryStream(concatenate(self._tables)))
        self._writer.close()
        return Columns(PARQUET.stream(self._files, self._writer.schema.names))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()
