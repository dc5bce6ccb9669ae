import json
import signal
import subprocess
import sys
from hashlib import sha256

import pytest

from transun.support.files import (
    checksum,
    new_draft,
    remove_leftovers,
    replacing,
    require_space,
    write_json,
    write_text,
)


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


def leave_draft(folder):
    draft = new_draft(folder)
    draft.write_text("half")
    return draft


def test_drafts_of_killed_processes_are_removed_and_nothing_else(tmp_path):
    leave_draft(tmp_path)
    others = [tmp_path / name for name in ("note.txt", ".hidden", ".abc.tmp", "draft.tmp")]
    for path in others:
        path.write_text("kept")
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(others)
    remove_leftovers(tmp_path / "nowhere")


def test_the_draft_of_a_living_writer_is_kept(tmp_path):
    path = tmp_path / "note.txt"
    with replacing(path) as draft:
        draft.write_text("new")
        remove_leftovers(tmp_path)
        assert draft.exists()
    assert path.read_text() == "new"


def test_a_killed_process_no_longer_keeps_its_draft(tmp_path):
    script = f"""
import os, signal
from pathlib import Path
from transun.support.files import replacing
with replacing(Path({str(tmp_path)!r}) / "note.txt") as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_published_file_has_the_permissions_of_any_new_file(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "note.txt"
    plain.touch()
    with replacing(path) as draft:
        draft.touch(0o600)
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_full_disk_is_reported_before_the_work(tmp_path):
    require_space(tmp_path, 1)
    with pytest.raises(OSError, match=r"the disk of .* free and 2,000,000,000,000 MB are needed: make room"):
        require_space(tmp_path, 2 * 10**18)


LIMITED = """
import resource, sys
from pathlib import Path
from transun.support.files import replacing

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
path, library = Path(sys.argv[1]), sys.argv[2]
try:
    with replacing(path) as draft:
        if library == "python":
            draft.write_bytes(bytes(1_000_000))
        elif library == "torch":
            import torch
            with draft.open("wb") as file:
                torch.save(torch.zeros(1_000_000), file)
        elif library == "safetensors":
            import torch
            from safetensors.torch import save_file
            save_file({"a": torch.zeros(1_000_000)}, draft)
        else:
            import pyarrow, pyarrow.csv
            pyarrow.csv.write_csv(pyarrow.table({"a": list(range(200_000))}), draft)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("library", ["python", "torch", "safetensors", "arrow"])
def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path, library):
    """Each library has its own error; a limit of the size of files takes the place of a small disk."""
    path = tmp_path / "weights"
    path.write_text("old")
    call = [sys.executable, "-c", LIMITED, str(path), library]
    told = subprocess.run(call, capture_output=True, text=True, check=True)
    assert f"no room to write {path} (File too large), which is as it was before: make room" in told.stdout
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("blocked", ["note/inner.txt", "folder"])
def test_a_place_that_cannot_be_written_to_is_named_before_the_work(tmp_path, blocked):
    (tmp_path / "note").write_text("a file, not a folder")
    (tmp_path / "folder").mkdir()
    path = tmp_path / blocked
    with pytest.raises(OSError, match=rf"cannot write {path} \(.*\): name a place that can be written to"):
        write_text(path, "content")
    assert {each.name for each in tmp_path.iterdir()} == {"note", "folder"}
