import subprocess
import sys

import pytest

from transun.models.description import MODEL_FILE, Description, describe_model, is_saved_model, write_description

DESCRIPTION = Description("Constant()", "LogSUN()", 3, True, "ab" * 32, {"torch": "2"}, {"target": "gmv"})


def test_it_comes_back_as_it_was_written(tmp_path):
    assert not is_saved_model(tmp_path)
    write_description(DESCRIPTION, tmp_path)
    assert is_saved_model(tmp_path)
    assert describe_model(tmp_path) == DESCRIPTION


def test_the_weights_file_is_named_after_its_checksum():
    assert DESCRIPTION.file == "weights-abababababababab.safetensors"


def test_a_changed_file_is_refused(tmp_path):
    write_description(DESCRIPTION, tmp_path)
    path = tmp_path / MODEL_FILE
    path.write_text(path.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(ValueError, match="changed after it was saved"):
        describe_model(tmp_path)


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="give the folder of a saved model"):
        describe_model(tmp_path)


def test_reading_needs_no_torch(tmp_path):
    write_description(DESCRIPTION, tmp_path)
    program = (
        "import sys\n"
        "from transun.models.description import describe_model\n"
        f"assert describe_model({str(tmp_path)!r}).head == 'LogSUN()'\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
