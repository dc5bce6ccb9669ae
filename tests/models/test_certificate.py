"""A certificate comes back as it was written; what was changed, damaged or swapped is told."""

import json
import math

import pytest

from transun.models.certificate import Certificate, Measured, Part, read_certificate, write_certificate

WHOLE = Part("", "all rows", 90, {"TRE": Measured(0.1, 0.0, math.inf), "PGR": Measured(math.nan, math.nan, math.nan)})
SEGMENT = Part("country", "IT", 40, {"TRE": Measured(0.2, 0.1, 0.3)})
CERTIFICATE = Certificate(
    "2026-01-01T00:00:00+00:00",
    "ab" * 32,
    "LogSUN()",
    0,
    "gmv",
    "a fifth",
    "cd" * 32,
    {"torch": "2"},
    WHOLE,
    "w",
    (SEGMENT,),
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "transun.json").write_text(json.dumps({"weights": "ab" * 32}))
    write_certificate(CERTIFICATE, tmp_path)
    return tmp_path


def same(a: Part, b: Part) -> bool:
    return repr(a) == repr(b)  # NaN differs from itself


def test_it_comes_back(folder):
    found = read_certificate(folder)
    assert same(found.whole, WHOLE)
    assert same(found.segments[0], SEGMENT)
    assert (found.target, found.weight, found.seed, found.versions) == ("gmv", "w", 0, {"torch": "2"})


def test_writing_replaces_at_once(folder):
    write_certificate(CERTIFICATE, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["certificate.json", "transun.json"]


def test_no_certificate_tells_how_to_get_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="transun evaluate MODEL DATA --certify"):
        read_certificate(tmp_path)


def test_of_another_model(folder):
    (folder / "transun.json").write_text(json.dumps({"weights": "ee" * 32}))
    with pytest.raises(ValueError, match="other weights"):
        read_certificate(folder)


def test_without_a_model(folder):
    (folder / "transun.json").unlink()
    with pytest.raises(ValueError, match="no readable model"):
        read_certificate(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format": 1}', "[" * 100_000])
def test_damage(folder, text):
    (folder / "certificate.json").write_text(text)
    with pytest.raises(ValueError, match="damaged or no certificate"):
        read_certificate(folder)


def change(folder, edit, *, seal):
    """Edit the file; with a seal its checksum is made to fit, as a program that writes nonsense would."""
    from transun.models.certificate import checksum

    path = folder / "certificate.json"
    said = json.loads(path.read_text())
    edit(said)
    if seal:
        body = {name: value for name, value in said.items() if name not in ("format", "checksum")}
        said["checksum"] = checksum(body)
    path.write_text(json.dumps(said))


def test_a_better_number_is_found_out(folder):
    change(folder, lambda said: said["whole"]["metrics"]["TRE"].update(value=0.001), seal=False)
    with pytest.raises(ValueError, match="changed after it was written"):
        read_certificate(folder)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda said: said.pop("target"), "damaged at 'target'"),
        (lambda said: said.update(seed="0"), "damaged at 'seed'"),
        (lambda said: said.update(more=1), "damaged at 'more'"),
        (lambda said: said["whole"].pop("rows"), "in its metrics"),
        (lambda said: said["whole"].update(rows=-1), "in its metrics"),
        (lambda said: said["whole"]["metrics"]["TRE"].update(low="x"), "in its metrics"),
        (lambda said: said["whole"]["metrics"]["TRE"].update(low=True), "in its metrics"),
        (lambda said: said.update(segments=[1]), "in its metrics"),
    ],
)
def test_fields_are_checked(folder, edit, told):
    change(folder, edit, seal=True)
    with pytest.raises(ValueError, match=told):
        read_certificate(folder)


def test_another_format(folder):
    change(folder, lambda said: said.update(format=2), seal=True)
    with pytest.raises(ValueError, match="format 2"):
        read_certificate(folder)
