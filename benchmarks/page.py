"""Write docs/speed.md from benchmarks/results/*.json: the aims, then one section a file, in the order of their names.

Results that are about coverage and not about speed have docs/coverage.md, and what follows for larger machines than
those measured is docs/capacity.md, see capacity.py.
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
COVERAGE_PAGE = ROOT / "docs" / "coverage.md"
CAPACITY_PAGE = ROOT / "docs" / "capacity.md"
COVERAGE = ("totals",)
NO_TABLE = {"guard", *COVERAGE}  # guard: counts that tests compare with, of no interest to a reader
COVERAGE_HEAD = """---
orphan: true
---

# Coverage

How often intervals hold what they promise, over simulated worlds in which the truth is known; the guide on totals says
what the numbers mean.
"""
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


def coverage_page(results: Path = RESULTS) -> str:
    """The page of the coverage of intervals."""
    found = {name: json.loads((results / f"{name}.json").read_text(encoding="utf-8")) for name in COVERAGE}
    return "\n\n".join([COVERAGE_HEAD.rstrip(), *(section(name, result) for name, result in found.items())]) + "\n"


def main(check: bool) -> int:
    """Write the pages, or say which is out of date."""
    stale = 0
    pages = {PAGE: page(), COVERAGE_PAGE: coverage_page(), CAPACITY_PAGE: capacity_page(read_results())}
    for path, text in pages.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is out of date: run python benchmarks/page.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
