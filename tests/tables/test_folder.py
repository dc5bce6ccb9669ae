"""Folders larger than memory: parts that cover every row once, the features of all rows, and a model of them."""

import shutil
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transun import Features, LogSUN, Recipe, train
from transun.data import HoldOutGroups, HoldOutRows, HoldOutTime, infer, read_table
from transun.data.holdout import Split
from transun.data.vocabulary import IdCounts
from transun.metrics import PGR
from transun.tables import folder
from transun.tables.folder import is_larger_than_memory, survey_folder

ROWS = 6000


def orders(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 300, rows)
    gmv = (1.0 + item % 7) * rng.lognormal(0.0, 0.5, rows)
    gmv[rng.random(rows) < 0.01] = np.nan
    price = np.where(rng.random(rows) < 0.05, np.nan, rng.lognormal(1.0, 1.0, rows))
    return pa.table(
        {
            "item_id": [f"i{number}" for number in item],
            "user_id": rng.integers(0, 40, rows),
            "price": pa.array(price, from_pandas=True),
            "tags": [[f"t{number % 5}"] * int(number % 3) for number in item],
            "day": np.arange(rows) // 100 + 700,
            "number": np.arange(rows) + 0.5,
            "gmv": pa.array(gmv, from_pandas=True),
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    where = tmp_path_factory.mktemp("orders")
    table = orders()
    for index, first in enumerate(range(0, ROWS, 1500)):
        pq.write_table(table.slice(first, 1500), where / f"{index}.parquet", row_group_size=400)
    return where


RULES = [HoldOutRows(), HoldOutGroups("user_id"), HoldOutTime("day")]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_row_with_a_target_is_in_one_part(path, rule):
    surveyed = survey_folder(path, "gmv", Split(rule, 0.3, 0.2, seed=1, calibration_share=0.25), progress=False)
    pieces = (surveyed.train, surveyed.valid, surveyed.test, surveyed.calibration)
    parts = [read_table(part)["number"].to_numpy() for part in pieces]
    assert [len(part) for part in parts] == [len(part) for part in pieces]
    table = read_table(path)
    known = table["number"].to_numpy()[np.isfinite(table["gmv"].to_numpy())]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), known)
    assert surveyed.dropped == ROWS - len(known)
    # Shares are those of hashes of 6,000 rows, of 40 users or of 60 days.
    assert len(parts[2]) / len(known) == pytest.approx(0.3, abs=0.25 if rule.useless else 0.03)
    assert len(parts[3]) / len(known) == pytest.approx(0.7 * 0.25, abs=0.25 if rule.useless else 0.03)
    assert surveyed.rows == len(known) - len(parts[2])
    np.testing.assert_array_equal(surveyed.sample["gmv"].to_numpy(), read_table(surveyed.train)["gmv"].to_numpy())


def test_rows_that_are_kept_in_memory_are_not_read_again(path, tmp_path):
    copied = shutil.copytree(path, tmp_path / "orders")
    surveyed = survey_folder(copied, "gmv", Split(HoldOutRows(), 0.3, 0.2, calibration_share=0.25), progress=False)
    features = surveyed.fitted()
    table = read_table(copied)
    rows = dict(zip(table["number"].to_pylist(), table["gmv"].to_pylist(), strict=True))
    shutil.rmtree(copied)
    for read, part in ((surveyed.validation, surveyed.valid), (surveyed.calibration_rows, surveyed.calibration)):
        data = read(features, "gmv", None, None)
        assert data.y.tolist() == pytest.approx([rows[number] for number in part["number"].to_pylist()])
        assert part["number"].to_pylist() == sorted(part["number"].to_pylist())


def test_whole_users_and_the_last_days_are_held_out(path):
    users = survey_folder(path, "gmv", Split(HoldOutGroups("user_id"), 0.3), progress=False)
    parts = [set(read_table(part)["user_id"].to_pylist()) for part in (users.train, users.valid, users.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 40
    days = survey_folder(path, "gmv", Split(HoldOutTime("day"), 0.3, calibration_share=0.2), progress=False)
    parts = [read_table(part)["day"].to_numpy() for part in (days.train, days.valid, days.calibration, days.test)]
    for earlier, later in pairwise(parts):
        assert earlier.max() < later.min()


def test_the_features_of_a_small_folder_are_those_of_its_rows_in_memory(path):
    surveyed = survey_folder(path, "gmv", Split(test_share=0.2), exclude=["number"], progress=False)
    rows = read_table(surveyed.train)
    fitted = surveyed.fitted()
    assert fitted == Features(surveyed.features.columns, surveyed.features.why).fit(rows)
    assert {name: str(kind) for name, kind in fitted.columns.items()} == {
        name: str(kind) for name, kind in infer(rows, "gmv", exclude=["number"]).columns.items()
    }


def test_the_features_of_a_sample_are_near_those_of_all_rows(path, monkeypatch):
    monkeypatch.setattr(folder, "_SAMPLE_BYTES", 1)
    monkeypatch.setattr(folder, "_FEWEST", 1500)
    surveyed = survey_folder(path, "gmv", exclude=["number"], progress=False)
    assert 700 <= len(surveyed.sample) <= 1500 < len(surveyed.train)
    rows = read_table(surveyed.train)
    fitted, exact = surveyed.fitted(), surveyed.features.fit(rows)
    assert fitted.columns["item_id"] == exact.columns["item_id"]  # counted in all rows
    assert fitted.ids == exact.ids
    assert fitted.bags == exact.bags
    prices = rows.slice(0, 1000)
    a, b = (features.encode(prices)["price.rank"].numpy() for features in (fitted, exact))
    assert np.abs(a - b).max() < 1.5 * 1.63 / np.sqrt(len(surveyed.sample))  # Kolmogorov's 1 % quantile, and half more
    assert "learned from a random" in surveyed.description()


def test_counts_of_more_ids_than_fit_are_right_within_what_they_say():
    rng = np.random.default_rng(0)
    ids = rng.zipf(1.5, 30_000)
    true = dict(zip(*np.unique(ids, return_counts=True), strict=True))
    total = None
    for part in np.array_split(ids, 60):
        counts = IdCounts.of([pa.array(part)], capacity=500)
        total = counts if total is None else total + counts
    total = total.joined()
    known = set(total.frequent(1).to_pylist())
    assert len(known) <= 500
    assert total.missed <= len(ids) / 500
    assert known >= {number for number, count in true.items() if count > total.missed}


def test_a_streamed_training_is_like_one_in_memory(path):
    table = orders(2000, seed=9)
    test = table.filter(pa.array(np.isfinite(table["gmv"].to_numpy())))
    recipe, excluded = Recipe(epochs=4, batch_size=64), ["number", "day"]
    for settings in ({"head": LogSUN(shared=1)}, {}):
        streamed = train(path, "gmv", exclude=excluded, recipe=recipe, stream=True, progress=False, **settings)
        assert streamed.history.train_rows + streamed.history.valid_rows > 0.95 * ROWS
        y = test["gmv"].to_numpy()
        error = y.std() / y.mean() / np.sqrt(len(y))
        assert PGR(streamed.predict(test).numpy(), y) == pytest.approx(1.0, abs=0.05 + 3 * error)
    assert [part.name.split()[0] for part in streamed.history.parts] == ["trees", "trees", "trees", "network"]
    known = read_table(path).filter(pa.array(np.isfinite(read_table(path)["gmv"].to_numpy())))
    assert streamed.seen_share(known) > 0.8
    assert streamed.seen_share(test) == 0.0


def policies(rows, seed):
    """Two kinds of policies, of rates 100 and 300 a year, over a tenth of a year to a year."""
    rng = np.random.default_rng(seed)
    kind, years = rng.choice(["a", "b"], rows), rng.uniform(0.1, 1.0, rows)
    claims = years * np.where(kind == "a", 100.0, 300.0) * rng.gamma(4.0, 0.25, rows)
    return pa.table({"kind": kind, "years": years, "claims": claims})


def test_files_of_a_folder_may_differ_in_widths_and_encodings(tmp_path):
    table = orders(900).select(["item_id", "user_id", "gmv"])
    changed = {
        "a": table.slice(0, 300),
        "b": table.slice(300, 300).set_column(1, "user_id", table["user_id"].slice(300, 300).cast(pa.int8())),
        "c": table.slice(600).set_column(0, "item_id", table["item_id"].slice(600).dictionary_encode()),
    }
    for name, part in changed.items():
        pq.write_table(part, tmp_path / f"{name}.parquet")
    assert read_table(tmp_path).to_pydict() == table.to_pydict()
    split = Split(HoldOutRows(), 0.2, 0.2)
    found, alike = survey_folder(tmp_path, "gmv", split), tmp_path / "alike"
    alike.mkdir()
    pq.write_table(table, alike / "a.parquet")
    expected = survey_folder(alike, "gmv", split)
    for part in ("sample", "valid", "test_sample"):
        assert getattr(found, part).to_pydict() == getattr(expected, part).to_pydict()


def test_columns_of_a_streamed_folder_may_have_any_name(tmp_path):
    names = ["hash", "row number", "day", "gmv"]
    table = orders(500).select(["item_id", "price", "day", "gmv"]).rename_columns(names)
    pq.write_table(table, tmp_path / "a.parquet")
    found = survey_folder(tmp_path, "gmv", Split(HoldOutRows(), 0.2, 0.2))
    assert set(found.sample["hash"].to_pylist()) < {f"i{number}" for number in range(300)}
    assert list(found.valid.column_names) == names
    assert found.features.columns.keys() == {"hash", "row number", "day"}


def test_a_streamed_model_of_rates_predicts_exposure_times_rate(tmp_path):
    for number in range(2):
        pq.write_table(policies(1500, number), tmp_path / f"{number}.parquet", row_group_size=500)
    recipe = Recipe(epochs=8, batch_size=64, calibration_share=0.2)
    model = train(tmp_path, "claims", exposure="years", recipe=recipe, stream=True, progress=False)
    assert model.exposure == "years"
    assert "years" not in model.features.columns
    pred = model.predict({"kind": ["a", "a", "b"], "years": [1.0, 0.5, 0.5]}).numpy()
    # 1,000 rates of a coefficient of variation of ½: 1.6 %, and what the network has not learned yet.
    assert pred == pytest.approx([100.0, 50.0, 150.0], rel=0.1)
    assert pred[1] == pytest.approx(pred[0] / 2.0, rel=1e-6)
    # Totals of segments were put right by rows that are neither trained on nor forgotten.
    assert model.history.multicalibration
    assert model.history.train_rows + model.history.valid_rows == pytest.approx(0.8 * 3000, abs=100)
    assert model.seen_share(read_table(tmp_path)) == pytest.approx(1.0, abs=0.1)


def test_an_exposure_of_zero_is_named_before_the_training(tmp_path):
    table = policies(300, 0)
    years = table["years"].to_numpy().copy()
    years[120] = 0.0
    pq.write_table(table.set_column(1, "years", pa.array(years)), tmp_path / "a.parquet", row_group_size=100)
    with pytest.raises(ValueError, match=r"a\.parquet, column 'years', row 120: 0 is no exposure"):
        train(tmp_path, "claims", exposure="years", stream=True, progress=False)


def test_streaming_is_chosen_where_the_files_are_large(path, monkeypatch):
    assert not is_larger_than_memory(path)
    monkeypatch.setattr(folder, "free_memory", lambda: 1000)
    assert is_larger_than_memory(path)
    assert is_larger_than_memory(str(path))
    assert not is_larger_than_memory(orders(10))
    monkeypatch.setattr(folder, "free_memory", lambda: None)
    assert not is_larger_than_memory(path)


def test_what_cannot_be_streamed_is_refused(path, tmp_path):
    (tmp_path / "a.csv").write_text("gmv,x\n1,2\n")
    with pytest.raises(ValueError, match="holds no Parquet files"):
        survey_folder(tmp_path, "gmv")
    with pytest.raises(ValueError, match="'gnv'"):
        survey_folder(path, "gnv")
    with pytest.raises(ValueError, match="leave out `valid`"):
        train(path, "gmv", stream=True, valid=orders(100))
    with pytest.raises(ValueError, match="in memory already: leave out `stream`"):
        train(orders(100), "gmv", stream=True)
    with pytest.raises(ValueError, match="name a column known before"):
        train(path, "gmv", stream=True, by=HoldOutGroups("gmv"))
