"""What the pages say is run, and what they count is read from reports."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from transun.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "docs/guides/*.md", "docs/understand/*.md")
    for path in ROOT.glob(pattern)
)
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUNNING = [page for page in PAGES if BLOCK.search((ROOT / page).read_text(encoding="utf-8"))]


def run_python(code, page, names):
    exec(compile(code, page, "exec"), names)


def run_commands(code, page, names):
    """The lines that call `transun`; those of make, pip and torchrun are run by other means.

    A line about files that the page does not make is not run, but its options must exist.
    """
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["transun"]:
            continue
        if len(words) > 2 and not words[2].startswith("-") and not Path(words[2]).exists():
            command = get_command(app).commands[words[1]]
            command.make_parser(command.context_class(command)).parse_args(words[2:])
            continue
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{page}: {line}\n{result.output}\n{result.exception!r}"


RUNNERS = {"python": run_python, "bash": run_commands}


@pytest.mark.parametrize("page", RUNNING)
def test_blocks_run(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page are one program, in order, in one folder."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for language, code in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        RUNNERS[language](code, page, names)


def test_one_line_removes_the_bias(capsys):
    """What the page promises of its scikit-learn example."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (example,) = (block for block in blocks if "TransformedTargetRegressor" in block)
    exec(compile(example, "README.md", "exec"), names := {"__name__": "page"})
    total = names["y"][10_000:].sum()
    # The noise of a total of 10,000 such rows is about 2 %, of the model's own as much.
    assert names["biased"].sum() / total < 0.88
    assert abs(names["debiased"].sum() / total - 1.0) < 0.06


def test_numbers_come_from_reports():
    result = subprocess.run(
        [sys.executable, ROOT / "docs" / "build.py", "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        # Pages below docs/generated are written when the site is built, which checks links to them.
        assert target.startswith("generated/") or ((ROOT / page).parent / target).exists(), target
