"""One model, the same rows: the same predictions from CSV and Parquet, in any order, in any chunks, from any frame."""

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuzz.harness import DAY, cases, outcome, trained

# Rows of a batch are computed together, so that sums may round differently in a batch of another size.
SAME = {"rtol": 1e-4, "atol": 1e-4}
printable = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
codes = st.one_of(st.none(), st.sampled_from(["000", "003", "006", "007", "7", "A1"]), printable)
rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-3, 9), st.sampled_from([2**53 + 1, -(2**63)])),
        codes,
        st.one_of(st.none(), st.floats(-1e9, 1e9, width=32), st.sampled_from([0.0, -0.0, 1e30, 1e-30])),
        st.one_of(st.none(), st.datetimes(DAY - datetime.timedelta(9000), DAY + datetime.timedelta(9000))),
    ),
    min_size=1,
    max_size=12,
)
TYPES = {"shop": pa.int64(), "code": pa.string(), "price": pa.float64(), "when": pa.timestamp("us")}


class Predictions:
    """The predictions of one model; it prints as one word in the report of a failed case."""

    def __init__(self):
        self.model = trained()

    def __call__(self, rows):
        return self.model.predict(rows)

    def __repr__(self):
        return "predict"


@pytest.fixture(scope="module")
def predict():
    return Predictions()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("answers")


def to_table(drawn):
    columns = zip(*drawn, strict=True)
    return pa.table(
        {name: pa.array(values, type_) for (name, type_), values in zip(TYPES.items(), columns, strict=True)}
    )


def agree(first, second):
    """Both answers are the same numbers, or both are refusals."""
    (left, answered), (right, also) = first, second
    assert answered == also, (left, right)
    if answered:
        torch.testing.assert_close(left, right, **SAME)


@cases(0.1)
@given(drawn=rows)
def test_csv_and_parquet_agree(predict, folder, drawn):
    table = to_table(drawn)
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    agree(outcome(predict, folder / "rows.csv"), outcome(predict, folder / "rows.parquet"))


@cases(0.05)
@given(drawn=rows, data=st.data())
def test_order_and_chunks_do_not_matter(predict, drawn, data):
    table = to_table(drawn)
    whole, answered = outcome(predict, table)
    if not answered:
        return
    order = data.draw(st.permutations(range(len(drawn))))
    torch.testing.assert_close(predict(table.take(pa.array(order))), whole[order], **SAME)
    cut = data.draw(st.integers(0, len(drawn)))
    parts = [predict(part) for part in (table.slice(0, cut), table.slice(cut)) if len(part)]
    torch.testing.assert_close(torch.cat(parts), whole, **SAME)
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    torch.testing.assert_close(predict(chunked), whole, **SAME)


odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.dates(),
    st.datetimes(timezones=st.one_of(st.none(), st.just(datetime.UTC))),
    st.timedeltas(),
    st.lists(st.integers(0, 5), max_size=2),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 5), max_size=2),
    st.just(object()),
    st.complex_numbers(),
)


@st.composite
def odd_frames(draw):
    """Columns of any values, as a dictionary, or as a frame where the library takes them."""
    length = draw(st.integers(0, 4))
    column = st.one_of(
        st.lists(odd_values, min_size=length, max_size=length),
        *[
            st.lists(kind, min_size=length, max_size=length)
            for kind in (st.integers(), st.floats(), st.text(max_size=3))
        ],
    )
    columns = {name: draw(column) for name in draw(st.permutations([*TYPES, "more"]))[: draw(st.integers(3, 5))]}
    build = draw(st.sampled_from([dict, pd.DataFrame, pl.DataFrame, pa.table]))
    try:
        return build(columns)
    except Exception:  # the frame refuses such values itself
        return columns


@cases(0.1)
@given(frame=odd_frames())
@pytest.mark.filterwarnings("ignore")
def test_frame_is_predicted_or_refused(predict, frame):
    answer, answered = outcome(predict, frame)
    assert not answered or answer.isfinite().all()
