"""A log by user: sums, and the logs that are refused."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from frame_libraries import LIBRARIES
from transun.experiments.user_log import LogColumns, read_user_log

COLUMNS = LogColumns("user", "gmv", arm="arm")
GOOD = {"user": [1, 2, 3, 1], "arm": ["a", "b", "b", "a"], "gmv": [1.0, 0.0, 5.0, 2.0], "old": [9.0, 8.0, 7.0, 9.0]}


def log_with(columns=COLUMNS, **changes):
    return read_user_log(GOOD | changes, columns)


def test_values_are_summed_and_attributes_kept_by_user():
    columns = LogColumns("user", "gmv", "arm", per="shown", before="old", by=("land",))
    log = log_with(columns, shown=[1, 2, 3, 4], land=["IT", None, "FR", "IT"])
    assert log.value.tolist() == [3.0, 0.0, 5.0]
    assert log.per.tolist() == [5.0, 2.0, 3.0]
    assert log.covariates["old"].tolist() == [9.0, 8.0, 7.0]
    assert (log.arms, log.arm.tolist()) == (("a", "b"), [0, 1, 1])
    assert log.segments["land"].to_pylist() == ["IT", None, "FR"]
    assert (log.rows, log.users, log.notes) == (4, 3, ())


def test_a_csv_file_and_a_frame_are_the_same_log(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GOOD | {"user": ["007", "08", "x", "007"]})
    frame.to_csv(tmp_path / "log.csv", index=False)
    read, given = (read_user_log(source, COLUMNS) for source in (tmp_path / "log.csv", frame))
    assert read.users == given.users == 3
    np.testing.assert_array_equal(read.value, given.value)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore::UserWarning:modin")
def test_a_frame_of_any_library_is_the_same_log(library):
    found, expected = (read_user_log(source, COLUMNS) for source in (LIBRARIES[library](pa.table(GOOD)), GOOD))
    assert found.arms == expected.arms
    np.testing.assert_array_equal(found.value, expected.value)


@pytest.mark.parametrize("amounts", [[" 1.0", "0", "5", "2"], np.array([1, 0, 5, 2], np.float16)], ids=["text", "half"])
def test_values_of_any_type_are_numbers(amounts):
    log = log_with(gmv=amounts)
    assert log.value.tolist() == [3.0, 0.0, 5.0]
    assert log.notes == ()


def test_arms_of_any_type_are_named_by_their_text():
    assert log_with(arm=[True, False, False, True]).arms == ("False", "True")
    assert log_with(arm=[10, 9, 9, 10]).arms == ("10", "9")


REFUSED = {
    "user in two arms": ({"arm": ["a", "b", "b", "b"]}, "user 1 is in arm 'b' in row 3"),
    "one arm": ({"arm": ["a"] * 4}, "two arms or more"),
    "no arm": ({"arm": ["a", None, "b", "a"]}, "'arm' is missing in row 1, as in 1 of 4 rows"),
    "no user": ({"user": [1, 2, None, 1]}, "'user' is missing in row 2"),
    "no value": ({"gmv": [1.0, None, 5.0, 2.0]}, "'gmv' is missing in row 1.*write 0 where"),
    "infinite value": ({"gmv": [1.0, np.inf, 5.0, 2.0]}, "'gmv' is infinite in row 1"),
    "huge value": ({"gmv": [1.0, 1e300, 5.0, 2.0]}, "too large to be squared"),
    "lists as segments": (
        {"land": [["IT"]] * 4, "columns": replace(COLUMNS, by=("land",))},
        "'land' holds list<.*>, not one name a row",
    ),
    "text as value": ({"gmv": ["1", "much", "5", "2"]}, "'much' is text, not a number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_broken_logs_are_refused(case):
    changes, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        log_with(**changes)


def test_what_describes_a_user_must_not_change():
    with pytest.raises(ValueError, match="'old' changes for user 1 in row 3, as for 1 of 3 users"):
        log_with(LogColumns("user", "gmv", "arm", before="old"), old=[9.0, 8.0, 7.0, 9.5])
    with pytest.raises(ValueError, match="'land' changes for user 1"):
        log_with(LogColumns("user", "gmv", "arm", by=("land",)), land=["IT", "IT", "IT", None])


def test_counts_must_be_counts():
    columns = LogColumns("user", "gmv", "arm", per="shown")
    with pytest.raises(ValueError, match="cannot be negative"):
        log_with(columns, shown=[1, 2, 3, -4])
    with pytest.raises(ValueError, match="is 0 in every row"):
        log_with(columns, shown=[0, 0, 0, 0])


def test_repeated_rows_are_told_and_repeated_ids_refused():
    twice = {name: [*values, values[0]] for name, values in GOOD.items()}
    assert any("1 of 5 rows with a value repeat" in note for note in read_user_log(twice, COLUMNS).notes)
    columns = LogColumns("user", "gmv", "arm", id="order")
    assert not read_user_log(twice | {"order": [1, 2, 3, 4, 5]}, columns).notes
    with pytest.raises(ValueError, match="'order' 3 of row 4 is that of row 2 too; 1 of 5 rows"):
        read_user_log(twice | {"order": [1, 2, 3, 4, 3]}, columns)


def test_a_log_of_buyers_alone_is_told():
    assert any("compare buyers" in note for note in log_with(gmv=[1.0, 2.0, 5.0, 2.0]).notes)


def test_a_column_has_one_purpose():
    with pytest.raises(ValueError, match="'gmv' is named for two purposes"):
        LogColumns("user", "gmv", arm="arm", per="gmv")


def test_a_column_of_many_values_is_no_arm():
    many = {"user": np.arange(50), "arm": np.arange(50), "gmv": np.ones(50)}
    with pytest.raises(ValueError, match="at most 20 arms"):
        read_user_log(many, COLUMNS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arm": ["new", "old", "New"]}, "arms 'new' and 'New' of column 'arm' differ in case or blanks only"),
        ({"arm": ["new", "old", "old "]}, "arms 'old' and 'old ' of column 'arm' differ in case or blanks only"),
        ({"gmv": [1.0, float("inf"), 1.0]}, r"'gmv' is infinite in row 1, as in 1 of 3 rows: correct it$"),
        ({"gmv": [1e-300, 0.0, 1e-300]}, "the largest value of 'gmv' is 1e-300, too small to be squared"),
    ],
)
def test_what_was_written_in_two_ways_or_cannot_be_squared_is_refused(changes, message):
    log = {"user": [1, 2, 3], "arm": ["new", "old", "old"], "gmv": [1.0, 2.0, 3.0]} | changes
    with pytest.raises(ValueError, match=message):
        read_user_log(log, LogColumns("user", "gmv", "arm"))
