import subprocess
import sys
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transun.data import by_hash, by_time, cutoff_of
from transun.data.split import hash_rows


def orders(n: int) -> pa.Table:
    row = np.arange(n)
    return pa.table({"order": row, "user": [f"u{i % 97}" for i in row], "gmv": row / 2})


def test_hash_is_a_partition_of_about_the_share() -> None:
    n, share = 20_000, 0.7
    train, test = by_hash(orders(n), "order", share)
    assert sorted(train["order"].to_pylist() + test["order"].to_pylist()) == list(range(n))
    assert abs(len(train) - share * n) < 4 * (n * share * (1 - share)) ** 0.5
    # Both parts keep the order of the rows.
    assert train["order"].to_pylist() == sorted(train["order"].to_pylist())


@settings(max_examples=30, deadline=None)
@given(
    keys=st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1, max_size=60),
    more=st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=60),
    order=st.randoms(use_true_random=False),
)
def test_a_row_keeps_its_side_whatever_is_added(keys: list[str | None], more: list[str | None], order: object) -> None:
    def sides(rows: list[str | None]) -> dict[str | None, float]:
        return dict(zip(rows, hash_rows(pa.table({"k": pa.array(rows, pa.string())}), "k", 0).tolist(), strict=True))

    mixed = [*more, *keys]
    order.shuffle(mixed)  # type: ignore[attr-defined]
    before, after = sides(keys), sides(mixed)
    assert all(after[key] == side for key, side in before.items())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None], pa.int16()),
        pa.array([1.0, 2.0, None]),
        pa.array(["1", "2", None]),
        pa.array(["1", "2", None]).dictionary_encode(),
        pa.array([1, 2, None], pa.uint64()),
    ],
)
def test_width_and_type_of_keys_do_not_matter(values: pa.Array) -> None:
    expected = hash_rows(pa.table({"k": pa.array([1, 2, None])}), "k", 3)
    assert hash_rows(pa.table({"k": values}), "k", 3).tolist() == expected.tolist()


def test_a_fraction_among_whole_numbers_moves_none_of_them() -> None:
    alone = hash_rows(pa.table({"k": [1.0, 2.0]}), "k", 0)
    joined = hash_rows(pa.table({"k": [1.0, 2.0, 2.5]}), "k", 0)
    assert joined[:2].tolist() == alone.tolist()
    assert len(set(joined.tolist())) == 3


def test_units_of_time_do_not_matter() -> None:
    moments = np.array(["2020-01-01T10:00:00"], "M8[s]")
    sides = [hash_rows(pa.table({"t": moments.astype(f"M8[{unit}]")}), "t", 0)[0] for unit in ("s", "ms", "ns")]
    assert len(set(sides)) == 1


def test_empty_text_is_missing_and_columns_are_not_interchangeable() -> None:
    missing, empty, zero = hash_rows(pa.table({"k": pa.array([None, "", "0"], pa.string())}), "k", 0)
    assert missing == empty != zero
    table = pa.table({"a": ["x", "y"], "b": ["y", "x"]})
    first, second = hash_rows(table, ("a", "b"), 0)
    assert first != second
    # Every column counts.
    assert len(set(hash_rows(pa.table({"a": [1, 2, 1], "b": [1, 1, 2]}), ("a", "b"), 0).tolist())) == 3
    # Columns are taken by the order of their names, not by that of a set, which is another in every process.
    for name in "bcdefghijk":
        assert hash_rows(table.rename_columns(["a", name]), (name, "a"), 0).tolist() == [first, second]
    assert hash_rows(table, ("b", "a"), 0).tolist() == [first, second]
    assert hash_rows(table.select(["b", "a"]), ("a", "b"), 0).tolist() == [first, second]


def test_seeds_are_independent_and_shares_nest() -> None:
    table = orders(4000)
    first, second = hash_rows(table, "order", 0), hash_rows(table, "order", 1)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / 4000**0.5
    small, large = (set(by_hash(table, "order", share)[0]["order"].to_pylist()) for share in (0.3, 0.6))
    assert small < large


def test_another_process_splits_alike() -> None:
    code = (
        "import pyarrow as pa; from transun.data.split import hash_rows;"
        "print(hash_rows(pa.table({'k': ['Rom', 'Ulm', None], 'n': [1, 2, 3]}), ('k', 'n'), 5).tolist())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = hash_rows(pa.table({"k": ["Rom", "Ulm", None], "n": [1, 2, 3]}), ("k", "n"), 5).tolist()
    assert run.stdout.strip() == str(here)


def test_groups_stay_together_and_on_their_side() -> None:
    few, many = orders(300), orders(3000)
    train, test = by_hash(few, "user", 0.6, seed=1)
    assert not set(train["user"].to_pylist()) & set(test["user"].to_pylist())
    later, _ = by_hash(many, "user", 0.6, seed=1)
    assert set(later["user"].to_pylist()) == set(train["user"].to_pylist())
    assert 0.4 < len(set(train["user"].to_pylist())) / 97 < 0.8


def test_time_by_cutoff_of_every_kind() -> None:
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")
    for column in (days, days.astype("M8[us]"), [str(day) for day in days]):
        table = pa.table({"t": column, "i": [0, 1, 2]})
        for cutoff in (date(2020, 1, 2), datetime(2020, 1, 2), "2020-01-02"):
            before, after = by_time(table, "t", cutoff=cutoff)
            assert (before["i"].to_pylist(), after["i"].to_pylist()) == ([0], [1, 2])
    zoned = pa.table({"t": pa.array(days.astype("M8[us]")).cast(pa.timestamp("us", "UTC")), "i": [0, 1, 2]})
    assert by_time(zoned, "t", cutoff=datetime(2020, 1, 2, tzinfo=UTC))[0]["i"].to_pylist() == [0]


def test_time_by_share_keeps_moments_together_and_can_be_repeated() -> None:
    table = pa.table({"day": [5, 1, 2, 2, 2, 3, 4, 5], "i": list(range(8))})
    before, after = by_time(table, "day", share=0.5)
    # Half of the rows are days 1, 2, 2, 2: the cutoff is day 3.
    assert (before["day"].to_pylist(), after["day"].to_pylist()) == ([1, 2, 2, 2], [5, 3, 4, 5])
    ten = pa.table({"day": list(range(10))})
    assert [len(by_time(ten, "day", share=share)[0]) for share in (0.24, 0.26, 0.99)] == [2, 3, 9]
    cutoff = cutoff_of(table, "day", 0.5)
    assert cutoff == 3
    grown = pa.concat_tables([table, pa.table({"day": [9] * 20, "i": list(range(20))})])
    assert by_time(grown, "day", cutoff=cutoff)[0].equals(before)
    assert by_time(grown, "day", share=0.5)[0].num_rows != before.num_rows
    moments = pa.table({"t": np.array(["2020-01-01", "2020-01-05"], "M8[ns]")})
    assert cutoff_of(moments, "t", 0.5) == datetime(2020, 1, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: by_hash(orders(10), "orders", 0.5), "no column 'orders': did you mean 'order'"),
        (lambda: by_hash(orders(10), (), 0.5), "needs a column that identifies a row"),
        (lambda: by_hash(orders(10), "order", 1.0), "share 1.0 must lie strictly between"),
        (lambda: by_hash(orders(1), "order", 0.5), "splitting 1 row by hash of 'order'.*leaves one part empty"),
        (lambda: by_time(orders(10), "order"), "either a cutoff or a share"),
        (lambda: by_time(orders(10), "order", cutoff=3, share=0.5), "either a cutoff or a share"),
        (lambda: by_time(orders(10), "order", cutoff=99), "leaves one part empty"),
        (lambda: by_time(orders(10), "order", cutoff="2020-01-01"), "'order' holds int64, which a cutoff '2020"),
        (lambda: by_time({"t": [1, None]}, "t", share=0.5), "column 't', row 1 has no time"),
        (
            lambda: by_time({"t": [datetime(2020, 1, 1)]}, "t", cutoff=datetime(2020, 1, 1, tzinfo=UTC)),
            "column 't' has no time zone, but the cutoff",
        ),
        (
            lambda: by_time({"t": [datetime(2020, 1, 1, tzinfo=UTC)]}, "t", cutoff="2020-01-01"),
            "column 't' is in time zone UTC: the cutoff needs one",
        ),
    ],
)
def test_errors(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
