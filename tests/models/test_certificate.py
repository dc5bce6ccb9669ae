"""A certificate comes back as it was written; one that was changed, damaged or swapped is refused."""

import json
import math
from dataclasses import replace

import pytest

from transun.models.certificate import Certificate, Measured, Part, read_certificate, write_certificate
from transun.models.description import MODEL_FILE, Description, write_description
from transun.models.noise import Noise
from transun.support.files import checksum

WHOLE = Part("", "all rows", 90, {"TRE": Measured(0.1, 0.0, math.inf), "PGR": Measured(math.nan, math.nan, math.nan)})
SEGMENT = Part("country", "IT", 40, {"TRE": Measured(0.2, 0.1, 0.3)})
NOISE = Noise(800, 90, 30, "user", 100.0, 90.0, 50.0, 7.0, 9.0, -3.0, math.nan, math.nan, 9)
MODEL = Description("Constant()", "LogSUN()", 0, True, "ab" * 32)
CERTIFICATE = Certificate(
    "2026-01-01T00:00:00+00:00",
    MODEL.checksum,
    "LogSUN()",
    0,
    "gmv",
    "a fifth",
    "cd" * 32,
    {"torch": "2"},
    WHOLE,
    "w",
    (SEGMENT,),
    NOISE,
)


@pytest.fixture
def folder(tmp_path):
    write_description(MODEL, tmp_path)
    (tmp_path / MODEL.file).touch()
    write_certificate(CERTIFICATE, tmp_path)
    return tmp_path


def test_weights_left_behind(folder):
    (folder / MODEL.file).unlink()
    with pytest.raises(FileNotFoundError, match="safetensors is not there: copy the whole folder"):
        read_certificate(folder)


def same(a: Part, b: Part) -> bool:
    return repr(a) == repr(b)  # NaN differs from itself


def test_it_comes_back(folder):
    restored = read_certificate(folder)
    assert same(restored.whole, WHOLE)
    assert same(restored.segments[0], SEGMENT)
    assert repr(restored.noise) == repr(NOISE)
    assert (restored.target, restored.weight, restored.seed, restored.versions) == ("gmv", "w", 0, {"torch": "2"})


def test_writing_replaces_at_once(folder):
    write_certificate(CERTIFICATE, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["certificate.json", MODEL_FILE, MODEL.file]


def test_no_certificate_tells_how_to_get_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="transun evaluate MODEL DATA --certify"):
        read_certificate(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"weights": "ee" * 32}, {"head": "LogMSE()"}, {"backbone": "MLP()"}, {"seed": 1}, {"extra": {"features": {}}}],
    ids=str,
)
def test_of_another_model(folder, change):
    write_description(replace(MODEL, **change), folder)
    with pytest.raises(ValueError, match="belongs to another model"):
        read_certificate(folder)


def test_without_a_model(folder):
    (folder / MODEL_FILE).unlink()
    with pytest.raises(ValueError, match="no readable model"):
        read_certificate(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format": 1}', "[" * 100_000])
def test_damage(folder, text):
    (folder / "certificate.json").write_text(text)
    with pytest.raises(ValueError, match="damaged or no certificate"):
        read_certificate(folder)


def change(folder, edit, *, seal):
    """Edit the file; with a seal its checksum is made to fit, as a program that writes nonsense would."""
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    edit(content)
    if seal:
        body = {name: value for name, value in content.items() if name not in ("format", "checksum")}
        content["checksum"] = checksum(body)
    path.write_text(json.dumps(content))


def test_an_improved_number_is_detected(folder):
    change(folder, lambda content: content["whole"]["metrics"]["TRE"].update(value=0.001), seal=False)
    with pytest.raises(ValueError, match="changed after it was written"):
        read_certificate(folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda content: content.pop("target"), "damaged at 'target'"),
        (lambda content: content.update(seed="0"), "damaged at 'seed'"),
        (lambda content: content.update(more=1), "damaged at 'more'"),
        (lambda content: content["whole"].pop("rows"), "in its metrics"),
        (lambda content: content["whole"].update(rows=-1), "in its metrics"),
        (lambda content: content["whole"]["metrics"]["TRE"].update(low="x"), "in its metrics"),
        (lambda content: content["whole"]["metrics"]["TRE"].update(low=True), "in its metrics"),
        (lambda content: content.update(segments=[1]), "in its metrics"),
        (lambda content: content["noise"].update(squares="x"), "in its metrics"),
        (lambda content: content["noise"].update(units=-1), "in its metrics"),
        (lambda content: content["noise"].pop("tail_index"), "in its metrics"),
        (lambda content: content["noise"].update(more=1), "in its metrics"),
    ],
)
def test_fields_are_checked(folder, edit, message):
    change(folder, edit, seal=True)
    with pytest.raises(ValueError, match=message):
        read_certificate(folder)


def test_another_format(folder):
    change(folder, lambda content: content.update(format=4), seal=True)
    with pytest.raises(ValueError, match="format 4"):
        read_certificate(folder)
