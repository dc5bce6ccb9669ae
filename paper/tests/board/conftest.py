import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transun_paper.board.tables import BOARD_TABLES, NUMBERS, FileTable, TableSplit


def made_up(rows=900, seed=0):
    """Amounts whose mean depends on a number and a category; gamma noise of 22 %, exposure from 0.5 to 1.5."""
    draw = np.random.default_rng(seed)
    x, kind = draw.uniform(0.0, 2.0, rows), draw.choice(["a", "b", "c"], rows)
    exposure = draw.uniform(0.5, 1.5, rows)
    mean = exposure * np.exp(x + np.select([kind == "a", kind == "b"], [0.0, 0.7], 1.4))
    return pa.table({"x": x, "kind": kind, "exposure": exposure, "y": mean * draw.gamma(20.0, 0.05, rows)})


@pytest.fixture(scope="session")
def split():
    return TableSplit.of_parts("made_up", "y", "exposure", [made_up(900, 0), made_up(300, 1), made_up(300, 2)])


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A table `made_up` of the registry, in a folder of data of its own."""
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "data"))
    table = FileTable("made_up", "y", NUMBERS, "exposure")
    parts = pa.array(np.random.default_rng(3).choice(["train", "valid", "test"], 900, p=[0.6, 0.2, 0.2]))
    table.file.parent.mkdir(parents=True)
    pq.write_table(made_up().append_column("part", parts), table.file)
    monkeypatch.setitem(BOARD_TABLES, table.name, table)
    return table
