"""CSV as people write it: delimiters, encodings, decimal commas, codes that look like numbers, and text that passes."""

import csv
import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transun.data import read_table
from transun.data.columns import open_columns, spooled
from transun.data.csv_files import CsvLines


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_delimiters_and_encodings_are_recognised(tmp_path, delimiter, encoding):
    rows = [["city", "gmv"], ["Zürich", "1.5"], ["Łódź", "2"]]
    path = written(tmp_path, "\n".join(map(delimiter.join, rows)).encode(encoding))
    expected = {"city": ["Zürich", "Łódź"], "gmv": [1.5, 2.0]}
    assert read_table(path).to_pydict() == expected
    (chunk,) = open_columns(path, ["gmv"], ["city"], whole_below=0).chunks()
    assert chunk.table.select(["city", "gmv"]).to_pydict() == expected


@pytest.mark.parametrize(("name", "columns"), [("a.tsv.csv", ["city", "gmv"]), ("a.csv.tsv", ["city,gmv"])])
def test_the_ending_alone_makes_a_file_one_of_tabs(tmp_path, name, columns):
    assert read_table(written(tmp_path, "city,gmv\nRom,1\n", name)).column_names == columns


def test_a_comma_inside_quotes_is_no_delimiter(tmp_path):
    assert read_table(written(tmp_path, '"price, EUR";y\n1,5;2\n2,5;3\n')).to_pydict() == {
        "price, EUR": [1.5, 2.5],
        "y": [2, 3],
    }


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,5", "2", "1234,25"], [1.5, 2.0, 1234.25]),
        (["1,50", "2,00", ""], [1.5, 2.0, None]),
        (["1,234", "1,5"], [1.234, 1.5]),
    ],
)
def test_a_decimal_comma_is_recognised(tmp_path, texts, numbers):
    path = written(tmp_path, "a;y\n" + "".join(f"{text};1\n" for text in texts))
    assert read_table(path)["a"].to_pylist() == numbers


def test_a_comma_that_may_separate_thousands_stays_text(tmp_path):
    assert read_table(written(tmp_path, 'a,y\n"1,234",1\n"5,678",2\n'))["a"].to_pylist() == ["1,234", "5,678"]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["00100", "10115"], ["00100", "10115"]),  # codes
        (["01", "53"], [1, 53]),  # weeks
        (["0", "10"], [0, 10]),
        (["1.10", "0.5"], [1.1, 0.5]),
        ([str(2**70), str(2**70 + 1)], [str(2**70), str(2**70 + 1)]),
        ([str(2**60 + 1), "3"], [2**60 + 1, 3]),
        (["12345678901234567890", "0.5"], [12345678901234567890.0, 0.5]),  # an amount, since another has a fraction
    ],
)
def test_a_guess_that_loses_digits_is_withdrawn(tmp_path, texts, values):
    path = written(tmp_path, "a,y\n" + "".join(f"{text},1\n" for text in texts))
    assert read_table(path)["a"].to_pylist() == values
    assert read_table(path, verbatim=["a"])["a"].to_pylist() == texts


@pytest.mark.parametrize("verbatim", [(), ("city",)])
def test_another_code_page_is_told(tmp_path, verbatim):
    path = written(tmp_path, "city,y\nRom,1\nZürich,2\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"t\.csv is not in UTF-8.*iconv -f cp1252"):
        read_table(path, verbatim=verbatim)
    with pytest.raises(ValueError, match=r"t\.csv is not in UTF-8.*iconv -f cp1252"):
        list(open_columns(path, ["y"], ["city"], whole_below=0).chunks())
    with pytest.raises(ValueError, match=r"column 'city', row 1"):
        read_table(path)


def test_a_header_of_another_code_page_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv is not in UTF-8"):
        read_table(written(tmp_path, "größe,y\n1,2\n".encode("cp1252")))


def test_bytes_of_zero_are_told(tmp_path):
    with pytest.raises(ValueError, match="UTF-16 without a mark"):
        read_table(written(tmp_path, "a,y\n1,2\n".encode("utf-16-le")))


def test_a_broken_archive_is_told(tmp_path):
    path = written(tmp_path, gzip.compress(b"a,y\n" + b"1,2\n" * 100_000)[:-50], "t.csv.gz")
    with pytest.raises(ValueError, match=r"t\.csv\.gz is cut off or no gzipped file .*: write or download it again"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (gzip.compress(b"a,y\n1,2\n"), "t.csv", r"t\.csv is a gzipped file .*: end its name in \.gz"),
        (b"PAR1\0\0PAR1", "t.csv", r"t\.csv is a Parquet file .*: end its name in \.parquet"),
        (b"PK\x03\x04\0", "t.csv", r"t\.csv is a zip archive or a workbook .*: unpack it, or save it as CSV"),
        (b"a,y\n1,2\n", "t.csv.gz", r"t\.csv\.gz is cut off or no gzipped file"),
        (b"a,y\n1,2,3\n", "t.csv", r"t\.csv has 2 columns, and a line with 3, '1,2,3': correct it; .* in quotes"),
    ],
    # A compressed file holds the time it was made: as a name of a test it would differ between processes.
    ids=["gzip", "Parquet", "zip", "plain text", "too many fields"],
)
def test_files_that_are_something_else_are_told(tmp_path, content, name, message):
    with pytest.raises(ValueError, match=message):
        read_table(written(tmp_path, content, name))


def test_a_gzipped_pipe_is_recognised():
    with spooled(io.BytesIO(gzip.compress(b"a;y\n1;2\n"))) as path:
        assert read_table(path).to_pydict() == {"a": [1], "y": [2]}


FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=8)


@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=5))
def test_written_lines_are_read_by_the_standard_library(rows):
    file = io.BytesIO()
    table = pa.table({"a,b": [row[0] for row in rows], "c": [row[1] for row in rows]})
    CsvLines(file, table.schema).write_table(table)
    assert list(csv.reader(io.StringIO(file.getvalue().decode(), newline=""))) == [["a,b", "c"], *map(list, rows)]


def test_text_passes_byte_for_byte(tmp_path):
    content = "zip,id,at,price,free,member\n" + "\n".join(
        [
            "00100,18446744073709551616,2022-04-25 10:00:00+02:00,1.10,0.00,False",
            '10115,18446744073709551617,"a, ""b""",,-0,TRUE\n',
        ]
    )
    path = written(tmp_path, content)
    names = read_table(path).column_names
    file = io.BytesIO()
    table = read_table(path, verbatim=names)
    CsvLines(file, table.schema).write_table(table)
    assert file.getvalue().decode() == content
