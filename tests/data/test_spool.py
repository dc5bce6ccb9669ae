"""A spool: what was appended is read, in memory or from files."""

import pyarrow as pa
import pytest

from transun.data.spool import Spool

TABLES = {
    "numbers": [pa.table({"x": pa.array([1, 2])}), pa.table({"x": [1.5]}), pa.table({"x": pa.array([3], pa.int8())})],
    "texts": [
        pa.table({"x": pa.array(["a", "b"]).dictionary_encode()}),
        pa.table({"x": pa.nulls(2)}),
        pa.table({"x": ["c"]}),
    ],
}


@pytest.mark.parametrize("memory", [0, 1 << 20], ids=["files", "memory"])
@pytest.mark.parametrize("kind", TABLES)
def test_rows_come_back_in_order_whatever_their_types(kind, memory):
    with Spool(memory) as spool:
        for table in TABLES[kind]:
            spool.append(table)
        columns = spool.columns()
        for _ in range(2):  # they can be read again
            chunks = list(columns.chunks())
            values = [value for chunk in chunks for value in chunk.table["x"].to_pylist()]
            assert values == [value for table in TABLES[kind] for value in table["x"].to_pylist()]
            assert [chunk.first for chunk in chunks] == sorted({chunk.first for chunk in chunks})
