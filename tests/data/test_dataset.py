from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transun.data import Batch, Dataset


def columns(n: int) -> dict[str, Any]:
    row = torch.arange(n)
    return {"item": row, "history": torch.stack([row, -torch.ones_like(row)], -1), "price": row.float() / 2}


def weighted(n: int) -> Dataset:
    return Dataset(columns(n), torch.arange(n).float(), torch.arange(1, n + 1).float())


def rows_agree(batch: Batch) -> bool:
    # Row i of `weighted` holds i in every column, so a column gathered by other rows shows.
    assert isinstance(batch.x, dict)
    assert batch.weight is not None
    y = batch.y
    return all(
        torch.equal(column, y)
        for column in (
            batch.x["item"].float(),
            batch.x["history"][:, 0].float(),
            batch.x["price"] * 2,
            batch.weight - 1,
        )
    )


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 40), size=st.integers(1, 50), seed=st.none() | st.integers(0, 9))
def test_batches_cover_every_row_once(n: int, size: int, seed: int | None) -> None:
    batches = list(weighted(n).batches(size, seed=seed))
    seen = [value for batch in batches for value in batch.y.tolist()]
    assert all(rows_agree(batch) for batch in batches)
    assert sorted(seen) == list(range(n))
    assert [len(batch.y) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    if seed is None:
        assert seen == sorted(seen)


def test_seed_decides_the_order() -> None:
    data = weighted(100)
    orders = [torch.cat([b.y for b in data.batches(7, seed=seed)]).tolist() for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_batches_in_order_are_views() -> None:
    data = weighted(10)
    batch = next(data.batches(4))
    assert batch.y.data_ptr() == data.y.data_ptr()


def test_matrix_and_unweighted_batches() -> None:
    data = Dataset(np.arange(6).reshape(3, 2), [1, 2, 3])
    batch = next(data.batches(2))
    assert isinstance(batch.x, torch.Tensor)
    assert batch.x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert batch.weight is None
    assert repr(data) == "Dataset(3 rows of 2 numbers)"
    assert repr(weighted(3)) == "Dataset(3 rows of item, history, price, weighted)"


def test_types_are_those_networks_use() -> None:
    x = {"a": np.array([1, 2], dtype=np.uint8), "b": np.array([1.5, 2.5]), "c": [True, False]}
    data = Dataset(x, np.array([1, 2], dtype=">f8"), np.array([1, 2], dtype=np.int32))
    assert isinstance(data.x, dict)
    assert {name: column.dtype for name, column in data.x.items()} == {
        "a": torch.int64,
        "b": torch.float32,
        "c": torch.int64,
    }
    assert data.y.tolist() == [1.0, 2.0]
    assert data.y.dtype == torch.float32
    assert data.weight is not None
    assert data.weight.dtype == torch.float32


def test_arrays_torch_does_not_take_are_copied() -> None:
    y = np.arange(3, dtype=np.float32)
    y.flags.writeable = False
    assert Dataset(np.zeros((3, 1)), y).y.tolist() == [0, 1, 2]
    assert Dataset(np.zeros((3, 1)), y[::-1]).y.tolist() == [2, 1, 0]


def test_arrays_of_the_right_type_are_shared() -> None:
    y = np.arange(3, dtype=np.float32)
    data = Dataset(np.zeros((3, 1)), y)
    y[0] = 7
    assert data.targets().tolist() == [7, 1, 2]


def test_take_orders_and_repeats() -> None:
    taken = weighted(10).take(np.array([9, 0, 9]))
    assert taken.y.tolist() == [9, 0, 9]
    assert rows_agree(next(taken.batches(3)))


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_parts_of_a_split_join_to_all_rows(share: float) -> None:
    whole = weighted(50)
    joined = Dataset.joined(*whole.split(share, seed=1))
    assert sorted(joined.y.tolist()) == whole.y.tolist()
    assert all(rows_agree(batch) for batch in joined.batches(7))


def test_joined_bags_are_as_wide_as_the_widest() -> None:
    narrow, wide = Dataset({"bag": [[1], [2]]}, [1.0, 2.0]), Dataset({"bag": [[3, 4, -1]]}, [3.0])
    expected = [[1, -1, -1], [2, -1, -1], [3, 4, -1]]
    assert narrow.joined(wide).x["bag"].tolist() == expected
    assert wide.joined(narrow).x["bag"].tolist() == expected[2:] + expected[:2]


@pytest.mark.parametrize("other", [Dataset({"other": [1]}, [1.0]), Dataset({"item": [1]}, [1.0], [2.0])])
def test_rows_that_differ_in_columns_or_weights_do_not_join(other: Dataset) -> None:
    with pytest.raises(ValueError, match="the same columns"):
        Dataset({"item": [1]}, [1.0]).joined(other)


def test_split_is_a_partition_of_about_the_share() -> None:
    n, share = 20_000, 0.7
    first, second = weighted(n).split(share, seed=1)
    assert rows_agree(next(first.batches(n)))
    assert sorted(torch.cat([first.y, second.y]).tolist()) == list(range(n))
    # Four standard deviations of a binomial.
    assert abs(len(first) - share * n) < 4 * (n * share * (1 - share)) ** 0.5


def test_split_keeps_its_sides_when_rows_are_added() -> None:
    small, large = weighted(500).split(0.6, seed=3), weighted(5000).split(0.6, seed=3)
    for before, after in zip(small, large, strict=True):
        assert after.y[after.y < 500].tolist() == before.y.tolist()


def test_split_depends_on_the_seed_and_nests_in_the_share() -> None:
    data = weighted(1000)
    assert data.split(0.5, seed=0)[0].y.tolist() != data.split(0.5, seed=1)[0].y.tolist()
    assert set(data.split(0.5, seed=0)[0].y.tolist()) < set(data.split(0.8, seed=0)[0].y.tolist())


def test_to_moves_every_column() -> None:
    data = weighted(3).to(torch.device("cpu"))
    assert rows_agree(next(data.batches(3)))


NAN, INF = float("nan"), float("inf")
MATRIX = np.zeros((3, 2))
Y = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dataset(MATRIX, [[1.0], [2.0], [3.0]]), r"y has shape \(3, 1\).*y\.reshape\(-1\)"),
        (lambda: Dataset(np.zeros((0, 2)), []), "the data is empty"),
        (lambda: Dataset(MATRIX, [1.0, NAN, 3.0]), "y, row 1: nan is not a finite"),
        (lambda: Dataset(MATRIX, [1.0, 2.0, -INF]), "y, row 2: -inf is not a finite"),
        (lambda: Dataset(MATRIX, [1.0, 1e39, 3.0]), r"y, row 1: 1e\+39 is not a finite float32"),
        (lambda: Dataset(MATRIX, ["1", "2", "3"]), "y holds <U1 values.*np.unique"),
        (lambda: Dataset(MATRIX, np.array([1, None, 2])), "y holds object values"),
        (lambda: Dataset(MATRIX, torch.ones(3, dtype=torch.complex64)), "y holds torch.complex64"),
        (lambda: Dataset(MATRIX[:2], Y), "x has 2 rows but y has 3"),
        (lambda: Dataset(np.zeros(3), Y), r"x has shape \(3,\), expected \(n, d\)"),
        (lambda: Dataset([[0, 0], [0, 0], [0, NAN]], Y), "x, row 2, column 1: nan"),
        (lambda: Dataset({}, Y), "x has no columns"),
        (lambda: Dataset({"a": [1, 2]}, Y), "column 'a' has 2 rows but y has 3"),
        (lambda: Dataset({"a": [1.0, NAN, 2.0]}, Y), "column 'a', row 1: nan"),
        (lambda: Dataset({"a": ["x", "y", "z"]}, Y), "column 'a' holds <U1 values"),
        (lambda: Dataset({"a": np.zeros(3, "M8[s]")}, Y), "column 'a' holds datetime64"),
        (lambda: Dataset({"a": [[1], [2, 3], [4]]}, Y), "column 'a' has rows of unequal length.*-1"),
        (lambda: Dataset({"a": [[1.0], [2.0], [3.0]]}, Y), r"column 'a' is torch.float64 of shape \(3, 1\).*int64"),
        (lambda: Dataset({"a": np.zeros((3, 1, 1), int)}, Y), r"column 'a' has shape \(3, 1, 1\)"),
        (lambda: Dataset({"a": [1, 2, -1]}, Y), "column 'a', row 2: negative id -1; ids start at 0: give missing"),
        (lambda: Dataset({"a": [[1, -1], [2, -2], [0, 0]]}, Y), "column 'a', row 1: negative id -2.*-1 pads"),
        (lambda: Dataset(MATRIX, Y, [1.0, 2.0]), r"weight has shape \(2,\) but y has 3 rows"),
        (lambda: Dataset(MATRIX, Y, [1.0, -2.0, 1.0]), "weight, row 1: -2 is negative; use 0"),
        (lambda: Dataset(MATRIX, Y, [1.0, 1.0, NAN]), "weight, row 2: nan"),
        (lambda: Dataset(MATRIX, Y, [0.0, 0.0, 0.0]), "every weight is zero"),
        (lambda: Dataset(MATRIX, Y).batches(0), "batch size 0"),
        (lambda: Dataset(MATRIX, Y).take([0, 3]), "index 3 is outside the 3 rows"),
        (lambda: Dataset(MATRIX, Y).take([-1]), "index -1 is outside"),
        (lambda: Dataset(MATRIX, Y).take([True, False, True]), r"indices are torch.bool.*mask\.nonzero"),
        (lambda: Dataset(MATRIX, Y).take([0.5]), "indices are torch.float64"),
        (lambda: Dataset(MATRIX, Y).split(1.0, 0), "share 1.0 must lie strictly between"),
        (lambda: Dataset(MATRIX[:1], Y[:1]).split(0.5, 0), "1 row is too few to split"),
    ],
)
def test_errors_name_place_and_remedy(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_large_finite_numbers_are_no_error() -> None:
    # Their float32 sum overflows although each is finite.
    assert Dataset(np.full((3, 1), 3e38), [3e38, 3e38, 3e38]).y.isfinite().all()


def test_a_masked_value_is_named():
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ValueError, match="y, row 1: the value is masked"):
        Dataset({"a": np.zeros(2)}, masked)
    with pytest.raises(ValueError, match="column 'a', row 1: the value is masked"):
        Dataset({"a": masked}, [1.0, 2.0])
    assert Dataset({"a": np.zeros(2)}, np.ma.masked_array([1.0, 2.0])).y.tolist() == [1.0, 2.0]
