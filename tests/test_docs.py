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


def concepts_of_the_architecture():
    """Every line of the table of concepts: the names in code, and the text of the files that it names."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for line in page.partition("## Concepts")[2].partition("## Layers")[0].splitlines():
        names, files, _ = re.match(r"\| (.*?) \| (.*?) \| (.*) \|$", line).groups() if "`" in line else ("", "", "")
        if not files:
            continue
        package = ROOT / ("paper/src/transun_paper" if "paper: " in files else "src/transun")
        text, folder = "", package
        for file in re.findall(r"`(?:paper: )?([\w/.]+)`", files):
            # A file without a folder is beside the one before it.
            path = package / file if "/" in file or folder == package else folder / file
            folder = path.parent
            sources = path.glob("*.py") if path.is_dir() else [path]
            text += "\n".join(source.read_text(encoding="utf-8") for source in sources)
        yield re.findall(r"`(\w+)`", names), text


def test_the_concepts_of_the_architecture_are_in_their_files():
    concepts = list(concepts_of_the_architecture())
    assert len(concepts) > 40
    missing = [
        name
        for names, text in concepts
        for name in names
        if not re.search(rf"^(class|def) {name}\b", text, re.MULTILINE)
    ]
    assert missing == []


def test_numbers_come_from_reports():
    result = subprocess.run(
        [sys.executable, ROOT / "docs" / "build.py", "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


# What is written by hand and looks like a measurement: formulas, levels of tests, examples, versions.
WRITTEN = {
    "README.md": {"3.11", "2.0"},  # of Python, of the licence
    "docs/glossary.md": {"99 %"},  # the level of intervals
    "docs/start.md": {"10 %"},  # a verdict's definition
    "docs/guides/larger_than_memory.md": {"1.5", "0.15 %"},  # 1.5/√n for a million rows
    "docs/guides/segments.md": {"40 %", "1.5"},  # an example, a power
    "docs/guides/serving.md": {"5 %"},  # the level of the alarm
    "docs/guides/totals.md": {"40 %", "95 %", "95 of 100", "1.96", "1.5", "2.58", "5 %", "90 %"},  # levels, examples
    "docs/guides/transform.md": {"0.01"},  # an example
    "docs/guides/watching.md": {"5 %"},  # the level of the alarm
    "docs/understand/cross_fitting.md": {"0.61"},  # e^(-1/2)
    "docs/understand/jensen.md": {"7.4", "4.2", "2.7"},  # e², (1 + e²)/2, e
    "docs/understand/metrics.md": {"1.0", "0.5"},  # the formula at half and twice the total
    "docs/understand/ratio.md": {"2.78", "0.556"},  # checked by the block above them
}
MEASUREMENT = re.compile(r"\d[\d.,]*(?: ?%| of \d+)|\d+\.\d+")


def without_blocks(text):
    """What is written by hand in a page: no blocks filled from reports, no code, no formulas."""
    text = re.sub(r"<!-- ([\w-]+)(?: [\w/-]+)? -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```|^    .*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "", text)


def test_a_measurement_by_hand_is_noticed():
    block = "<!-- claims a -->\nby 3.1 %\n<!-- /claims -->"
    page = f"In 2024, 12 of 13 tables lost 4.5 % and more.\n\n{block}\n\n    e = 2.7\n\n`0.5`"
    assert MEASUREMENT.findall(without_blocks(page)) == ["12 of 13", "4.5 %"]


# Changes are history, and these pages are made by benchmarks.
MADE = ("CHANGELOG.md", "docs/capacity.md", "docs/coverage.md", "docs/parity.md", "docs/speed.md")


@pytest.mark.parametrize("page", [page for page in PAGES if page not in MADE])
def test_a_measurement_is_filled_from_a_report(page):
    """A number that looks measured stands in a marked block, or is known not to be measured."""
    text = (ROOT / page).read_text(encoding="utf-8")
    written = set(MEASUREMENT.findall(without_blocks(text))) - WRITTEN.get(page, set())
    assert written == set(), f"fill {written} from a report by docs/build.py, or say in WRITTEN what they are"


@pytest.mark.parametrize("page", PAGES)
def test_a_marker_does_not_begin_a_line_of_a_sentence(page):
    """Markdown takes a line that begins with a comment for HTML, and ends the paragraph there."""
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        assert not line.startswith("<!--") or line.endswith("-->"), line


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        # Pages below docs/generated are written when the site is built, which checks links to them.
        assert "generated/" in target or ((ROOT / page).parent / target).exists(), target


def test_every_guide_is_in_the_list_of_guides():
    """One that is not would be found by nobody; `make docs` would fail, which runs later."""
    folder = ROOT / "docs" / "guides"
    guides = {path.stem for path in folder.glob("*.md")} - {"index"}
    listed = re.findall(r"^\w+$", (folder / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(guides)


def test_when_which_names_the_commands_there_are():
    page = (ROOT / "docs" / "which.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`transun (\w+)", page)) == set(get_command(app).commands)
