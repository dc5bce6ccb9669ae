"""What the pages say is run, and what they count is read from reports."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "docs/architecture.md"]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page are one program, in order."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


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
        assert ((ROOT / page).parent / target).exists(), target
