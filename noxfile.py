"""The tests under every Python version that is installed, and with the lowest versions that pyproject.toml claims.

    nox                    # the tests under each Python version that is here
    nox -s lowest          # with the lowest claimed versions
    nox -s tests-3.12 -- tests/metrics

Every session has an environment of its own, because another version of torch is gigabytes nobody wants in `.venv`.
"""

import tomllib
from pathlib import Path

import nox

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
# Everything but the pages, whose numbers come from the research package, and the speeds, which want a quiet machine.
TESTS = ("tests", "src", "--ignore=tests/test_docs.py", "--ignore=tests/test_speed.py")

nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """The tests with the newest versions that constraints.txt allows."""
    session.install("-c", "constraints.txt", "-e", ".[dev]")
    session.run("python", "-m", "pytest", *(session.posargs or TESTS))


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """The tests with the lowest version of everything that a user installs."""
    session.install("-e", ".[dev]", *lowest_versions())
    session.run("python", "-m", "pytest", *(session.posargs or TESTS))


def lowest_versions() -> list[str]:
    """`name==version` for every requirement of the library and of the extras for users."""
    extras = PROJECT["optional-dependencies"]
    users = [
        requirement
        for name, listed in extras.items()
        if name not in ("dev", "docs", "release")
        for requirement in listed
    ]
    return [
        requirement.replace(">=", "==") for requirement in (*PROJECT["dependencies"], *users) if ">=" in requirement
    ]
