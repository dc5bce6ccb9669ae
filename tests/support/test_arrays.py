"""Numbers from whatever holds them, and rows that must not be paired with each other's values."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from transun.support.arrays import refuse_reordered, to_floats

HOLDERS = {
    "list": [1.0, 2.5],
    "decimals": [decimal.Decimal("1"), decimal.Decimal("2.5")],
    "objects": np.array([1, 2.5], dtype=object),
    "text": ["1", "2.5"],
    "tensor that is trained": torch.tensor([1.0, 2.5], requires_grad=True),
    "tensor of a type that numpy lacks": torch.tensor([1.0, 2.5], dtype=torch.bfloat16),
    "polars": pl.Series([1.0, 2.5]),
    "Arrow": pa.chunked_array([[1.0], [2.5]]),
    "Arrow in pandas": pd.Series([1.0, 2.5], dtype="float64[pyarrow]"),
    "nullable pandas": pd.Series([1.0, 2.5], dtype="Float64"),
    "categories": pd.Series([1.0, 2.5]).astype("category"),
}
MISSING = {
    "None": [1.0, None],
    "NaN": [1.0, np.nan],
    "mask": np.ma.masked_array([1.0, 99.0], mask=[False, True]),
    "mask of whole numbers": np.ma.masked_array([1, 99], mask=[False, True]),
    "missing of pandas": pd.Series([1, None], dtype="Int64"),
    "null of polars": pl.Series([1, None]),
    "null of Arrow": pa.array([1, None]),
}
REFUSED = {
    "dates": (np.array(["2026-01-01"], "datetime64[D]"), "y holds dates: give amounts"),
    "dates of pandas": (pd.date_range("2026-01-01", periods=2), "y holds dates"),
    "dates with a zone": (pd.Series(pd.date_range("2026-01-01", periods=2, tz="UTC")), "row 0, which is no number"),
    "dates of Python": ([1.0, datetime.date(2026, 1, 1)], "in row 1, which is no number"),
    "durations": (pd.to_timedelta([1.0, 2.0], unit="h"), r"y holds durations: .*total_seconds\(\)"),
    "complex": ([1j], "y holds complex numbers"),
    "text": (["1", "cheap"], "y is 'cheap' in row 1"),
    "dict": ({"y": [1.0]}, "which is no number"),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_numbers_are_read(holder):
    assert to_floats(HOLDERS[holder], "y").tolist() == [1.0, 2.5]


@pytest.mark.parametrize("holder", MISSING)
def test_missing_values_are_nan(holder):
    np.testing.assert_array_equal(to_floats(MISSING[holder], "y"), [1.0, np.nan])


@pytest.mark.parametrize("holder", REFUSED)
def test_what_is_no_amount_is_refused(holder):
    values, message = REFUSED[holder]
    with pytest.raises(ValueError, match=message):
        to_floats(values, "y")


def test_the_same_labels_in_another_order_are_refused():
    x = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["u", "v", "w"])
    y = pd.Series([1.0, 2.0, 3.0], index=["w", "v", "u"])
    with pytest.raises(ValueError, match=r"X and y have the same row labels in another order.*y\.loc\[X\.index\]"):
        refuse_reordered(X=x, groups=None, y=y)
    refuse_reordered(X=x, y=y.loc[x.index])


def test_labels_that_say_nothing_pass():
    y = pd.Series([1.0, 2.0, 3.0])
    for other in (
        pd.Series([1.0, 2.0, 3.0], index=[7, 8, 9]),
        pd.Series([1.0, 2.0, 3.0], index=[0, 0, 0]),
        pd.Series([1.0, 2.0], index=[1, 0]),
        [3, 2, 1],
        np.ones(3),
        pl.Series([1.0, 2.0, 3.0]),
    ):
        refuse_reordered(y=y, pred=other)
