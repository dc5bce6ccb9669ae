import json
from hashlib import sha256

import pytest

from transun.support.files import checksum, replacing, write_json, write_text


def test_a_new_file_replaces_the_old_one(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_keeps_the_old_file_and_leaves_no_draft(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "note.txt", "κ")
    assert (tmp_path / "a" / "b" / "note.txt").read_text(encoding="utf-8") == "κ"


def test_json_comes_back_and_ends_in_a_newline(tmp_path):
    value = {"name": "κ", "values": [1, 2.5, None]}
    write_json(tmp_path / "value.json", value)
    text = (tmp_path / "value.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert "κ" in text
    assert text.endswith("}\n")


def test_the_checksum_is_that_of_sorted_json():
    assert checksum({"b": 2, "a": 1}) == sha256(b'{"a": 1, "b": 2}').hexdigest()
    assert checksum({"a": 1}) != checksum({"a": 2})
