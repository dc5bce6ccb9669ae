"""What the files around the code say about it: version, requirements, extras."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import transun

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA_NAMES = {"torch": "pytorch"}


def split(requirement):
    """`name>=version` as two texts."""
    return tuple(part.strip() for part in requirement.split(">="))


@pytest.fixture
def release(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import release

    return release


def test_the_version_is_the_same_everywhere(release):
    assert set(release.versions().values()) == {transun.__version__}


def test_a_file_that_holds_more_than_the_product_is_refused(release, tmp_path):
    import zipfile

    wheel = tmp_path / "transun-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in release.product_files():
            archive.writestr(f"transun/{name}", "")
    release.check_wheel_contents(wheel)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("transun_paper/secret.csv", "")
    with pytest.raises(SystemExit, match=r"transun_paper/secret\.csv"):
        release.check_wheel_contents(wheel)


def test_every_command_is_among_those_that_are_run_with_the_wheel(release):
    import check_wheel

    from transun.cli import app

    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert commands <= {line.split()[0] for line in check_wheel.COMMANDS}


def test_types_are_shipped(release):
    assert "py.typed" in release.product_files()


def test_every_requirement_has_a_lowest_version():
    users = [requirement for listed in EXTRAS.values() for requirement in listed]
    open_ended = [r for r in (*PROJECT["dependencies"], *users) if not r.startswith("transun[") and ">=" not in r]
    assert open_ended == []


def test_an_extra_says_what_it_is_for():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in EXTRAS:
        assert re.search(rf"^# .+\n{re.escape(name)} = \[", text, re.MULTILINE), f"no comment above the extra {name}"


def test_conda_has_the_same_requirements():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    (run,) = re.findall(r"^  run:\n((?:    - .+\n)+)", recipe, re.MULTILINE)
    listed = {split(line) for line in re.findall(r"^    - (.+)$", run, re.MULTILINE)}
    names = (split(requirement) for requirement in PROJECT["dependencies"])
    required = {(CONDA_NAMES.get(name, name), version) for name, version in names}
    assert listed == required | {("python", PROJECT["requires-python"].removeprefix(">="))}


def test_this_python_version_is_claimed():
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
