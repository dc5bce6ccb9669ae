"""Names of columns: an error of its own says which one is missing."""

import pickle
from pathlib import Path

import pytest

from transun.data import read_table
from transun.data.schema import MissingColumnError, require_columns


def test_a_missing_column_is_an_error_of_its_own() -> None:
    with pytest.raises(MissingColumnError, match="there is no column 'gvm': did you mean 'gmv'") as caught:
        read_table({"gmv": [1.0]}, ["gvm"])
    assert caught.value.name == "gvm"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.name) == (str(caught.value), "gvm")
    with pytest.raises(
        MissingColumnError, match=r"^a\.parquet: there is no column 'y'.*The table has x0, .* and 5 more"
    ):
        require_columns([f"x{i}" for i in range(25)], ["y"], Path("a.parquet"))


@pytest.mark.parametrize("name", [("gmv", 2), 3, None])
def test_a_name_that_is_no_text_is_missing_like_any_other(name):
    """Frames of pandas may have such names; the columns of a table are named by text."""
    with pytest.raises(MissingColumnError, match=r"there is no column .*: .*The table has gmv"):
        require_columns(["gmv"], [name])
