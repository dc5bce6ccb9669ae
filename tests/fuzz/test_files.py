"""Bytes of CSV and Parquet files: features of every row, without the target among them, or a refusal."""

import gzip
import io

import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.harness import cases, flat_table, outcome, table
from transun.data import read_table
from transun.tables.plan import make_plan


def as_bytes(write):
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


WHOLE = {
    ".csv": as_bytes(lambda buffer: pyarrow.csv.write_csv(flat_table(30), buffer)),
    ".parquet": as_bytes(lambda buffer: pyarrow.parquet.write_table(table(30), buffer)),
}
WHOLE |= {".tsv": WHOLE[".csv"].replace(b",", b"\t"), ".csv.gz": gzip.compress(WHOLE[".csv"], mtime=0)}
# What a spreadsheet, a database or a careless script puts into a cell.
WORDS = (
    """NA NaN null true TRUE inf -0 1e400 0x1F 1,5 1_000 00100 12345678901234567890 2024-02-30 2024-01-01 ' " "" =1+1"""
)
cells = st.one_of(
    st.sampled_from([*WORDS.split(), "", " ", "1 000", "2024-01-01 10:00", "10:00:00+02:00", "\x00", "a\nb"]),
    st.integers().map(str),
    st.floats().map(repr),
    st.text(max_size=5),
)
separators = st.sampled_from([",", ";", "\t", "|"])
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])


@st.composite
def csv_text(draw):
    """A table of cells as some program might write it, in some encoding."""
    width = draw(st.integers(1, 4))
    names = draw(
        st.lists(st.sampled_from(["amount", "a", "b", "", "x y", "1", "größe", "a"]), min_size=width, max_size=width)
    )
    rows = draw(st.lists(st.lists(cells, min_size=max(width - 1, 1), max_size=width + 1), max_size=6))
    text = draw(line_ends).join(draw(separators).join(row) for row in [names, *rows])
    return text.encode(draw(encodings), "replace")


@st.composite
def damaged(draw, whole):
    """A good file with bytes changed, cut out or put in."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(0, len(content))), draw(st.integers(0, 12))
        content[at : at + length] = draw(st.binary(max_size=12))
    return bytes(content)


def read_and_encode(path):
    """The number of rows, the target, and the columns of features as tensors."""
    columns = read_table(path)
    name = "amount" if "amount" in columns.column_names else columns.column_names[-1]
    plan = make_plan(columns, name)
    return len(columns), plan.target, plan.features.encode(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@cases(0.16)
@given(data=st.data(), ending=st.sampled_from(sorted(WHOLE)))
def test_file_is_read_or_refused(folder, data, ending):
    good = damaged(WHOLE[ending])
    content = data.draw(st.one_of(good, st.binary(max_size=60), *([csv_text()] if "parquet" not in ending else [good])))
    path = folder / f"table{ending}"
    path.write_bytes(content)
    answer, answered = outcome(read_and_encode, path)
    if answered:
        rows, target, features = answer
        assert target not in features
        assert {len(values) for values in features.values()} <= {rows}
        assert not any(values.isnan().any() for values in features.values() if values.is_floating_point())
