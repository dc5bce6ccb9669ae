"""Pages of the site that are written from the code and from reports: the reference by room, and the evidence."""

import inspect
import json
import shutil
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from build import ROOMS, answer_to, first_sentence
from docstrings import restructured

from transun.report.markdown import table

ROOT = Path(__file__).parent.parent
REPORTS = ROOT / "paper" / "reports"
# Pages of this folder that benchmarks write; they are listed as evidence.
MEASURED = ("capacity.md", "coverage.md", "parity.md", "speed.md")
ANSWERS = ("yes", "no", "undecided")


def write_generated_pages(folder: Path) -> None:
    """Write all of them; the gallery beside them is Sphinx-Gallery's own."""
    for part in ("reference", "evidence"):
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir(parents=True)
    _write_reference(folder / "reference")
    _write_evidence(folder / "evidence")


def _write_reference(folder: Path) -> None:
    """A list of the rooms, and a page a room: every name that it exports with its whole documentation."""
    for room in ROOMS:
        module = import_module(f"transun.{room}")
        title = f"transun.{room}"
        lines = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", ""]
        for name in sorted(module.__all__, key=str.lower):
            lines += [*_directive(f"{title}.{name}", getattr(module, name)), ""]
        (folder / f"{room}.rst").write_text("\n".join(lines), encoding="utf-8")
    rows = [[f"[transun.{room}]({room}.rst)", first_sentence(import_module(f"transun.{room}"))] for room in ROOMS]
    text = [
        "# Reference",
        "[Every public name in a sentence](../../reference.md); with formulas, arguments, costs and examples by room:",
        table(["room", "what is in it"], rows).replace("--:", ":--"),
        "\n".join(["```{toctree}", ":hidden:", "", "/reference", *ROOMS, "```"]),
    ]
    (folder / "index.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _directive(name: str, value: Any) -> list[str]:
    """The lines that document a name: a class with its members, a function, or an object with what it means."""
    if inspect.isclass(value):
        return [f".. autoclass:: {name}", "   :members:"]
    if inspect.isroutine(value):
        return [f".. autofunction:: {name}"]
    return [f".. py:data:: {name}", "", *[f"   {line}" for line in restructured([first_sentence(value)])]]


def _write_evidence(folder: Path) -> None:
    """The pages of paper/reports and of benchmarks as they are, and a list of them with their claims."""
    shutil.copytree(REPORTS, folder / "reports", ignore=shutil.ignore_patterns("runs", "*.json"))
    rows = [[f"[{_title(ROOT / 'docs' / page)}](../../{page})", *["–"] * len(ANSWERS)] for page in MEASURED]
    for page in sorted(folder.rglob("*.md")):
        link = page.relative_to(folder).as_posix()
        answers = _answers(REPORTS / page.relative_to(folder / "reports"))
        counts = [str(answers[answer]) if answers else "–" for answer in ANSWERS]
        rows.append([f"[{_title(page)}]({link})", *counts])
    measured = "\n".join(f"/{Path(page).stem}" for page in MEASURED)
    text = [
        "# Evidence",
        "Every page below is made from a report in the repository, and every number in it was measured by the command "
        "that the page names. Claims are counted by their answer: one that does not hold is listed like one that does, "
        "and undecided is what noise leaves open.",
        table(["page", *(f"claims: {answer}" for answer in ANSWERS)], rows),
        f"```{{toctree}}\n:hidden:\n:glob:\n\n{measured}\nreports/*\nreports/board/*\n```",
    ]
    (folder / "index.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _title(page: Path) -> str:
    """The first heading of a page, which may have settings of Sphinx above it."""
    return next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# ")).lstrip("# ")


def _answers(page: Path) -> Counter[str]:
    """How many claims of a report have which answer."""
    report = page.with_suffix(".json")
    claims = json.loads(report.read_text(encoding="utf-8")).get("claims", []) if report.exists() else []
    return Counter(map(answer_to, claims))
