"""Write docs/speed.md from benchmarks/results/*.json: the aims, then one section a file, in the order of their names.

Results that are not about speed have pages of their own, docs/coverage.md and docs/parity.md; what follows for larger
machines than those measured is docs/capacity.md, see capacity.py.
`python benchmarks/page.py` writes the pages; `--check` fails if one is out of date. Every file is one table, see
record.py. Nothing here depends on what was measured, so a new benchmark needs no change. The aims are in aims.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

from aims import aims
from capacity import capacity_page
from page_tables import markdown_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "speed.md"
KEYS = {"what", "command", "machine", "columns", "rows", "notes"}
CAPACITY_PAGE = ROOT / "docs" / "capacity.md"
# Results that are not about speed: the page of each, and how it begins.
OTHERS = {
    "totals": (
        ROOT / "docs" / "coverage.md",
        """# Coverage

How often intervals hold what they promise, over simulated worlds in which the truth is known; the guide on totals says
what the numbers mean.
""",
    ),
    "parity": (
        ROOT / "docs" / "parity.md",
        """# Parity

How far predictions of exported files are from those in Python; the guide on serving says what is in such a file.
""",
    ),
}
NO_TABLE = {"guard", *OTHERS}  # guard: counts that tests compare with, of no interest to a reader
HEAD = """# Speed

What the benchmarks measured, written by `make bench`. Times are of the machine that each section names; ratios are
within one run in which both sides took turns, and are what carries over to other machines. First what was aimed at;
where the paper's way of sharing misses an aim, the line below it is that of sharing more.
"""


def section(name: str, result: dict[str, Any]) -> str:
    """One result as a section."""
    if set(result) != KEYS:
        raise ValueError(f"results/{name}.json has the keys {sorted(result)}, not {sorted(KEYS)}: see record.py")
    parts = [f"## {name.replace('_', ' ')}", result["what"], markdown_table(result["columns"], result["rows"])]
    if result["notes"]:
        parts.append("\n".join(f"- {note}" for note in result["notes"]))
    parts.append(f"`{result['command']}` on {result['machine']}.")
    return "\n\n".join(parts)


def page(results: Path = RESULTS) -> str:
    """The page of all results there are."""
    results_by_name = read_results(results)
    sections = [section(name, result) for name, result in results_by_name.items()]
    return "\n\n".join([HEAD.rstrip(), aims(results_by_name), *sections]) + "\n"


def read_results(folder: Path = RESULTS) -> dict[str, Any]:
    """The results that are tables of speeds, by name."""
    files = [file for file in sorted(folder.glob("*.json")) if file.stem not in NO_TABLE]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def other_page(name: str, results: Path = RESULTS) -> str:
    """The page of a result that is not about speed."""
    result = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    return "\n\n".join([OTHERS[name][1].rstrip(), section(name, result)]) + "\n"


def main(check: bool) -> int:
    """Write the pages, or say which is out of date."""
    stale = 0
    others = {path: other_page(name) for name, (path, _) in OTHERS.items()}
    pages = {PAGE: page(), **others, CAPACITY_PAGE: capacity_page(read_results())}
    for path, text in pages.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is out of date: run python benchmarks/page.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
