"""Fill the marked blocks of the pages from the reports and the imports in the repository: nothing is typed by hand.

`python docs/build.py` rewrites them; `python docs/build.py --check` fails if one is out of date.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from layers import picture

import transun
from transun.report.markdown import table, yes

ROOT = Path(__file__).parent.parent
REPORTS = ROOT / "paper" / "reports"
# In the order in which a reader meets them.
ROOMS = (
    "estimators",
    "tables",
    "diagnosis",
    "training",
    "models",
    "heads",
    "backbones",
    "data",
    "metrics",
    "transforms",
    "schemes",
    "corrections",
)


def demo_block() -> str:
    """The table and the verdict of the demo's page."""
    lines = (ROOT / "docs" / "demo" / "demo.md").read_text(encoding="utf-8").split("\n\n")
    return f"{lines[1]}\n\n{lines[2]}"


def claims_block(name: str) -> str:
    """The claims of a report."""
    rows = [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in _read(name)["claims"]]
    return table(["claim", "holds", "evidence"], rows)


def board_block() -> str:
    """The claims of the default, and the geometric means of all methods over the tables with numbers."""
    report = _read("board/tables")
    claims = [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]]
    lines = sorted(
        (line for line in report["averages"] if line["group"] == "numbers"),
        key=lambda line: line["to_reference"]["value"],
    )
    rows = [
        [
            line["method"],
            f"{line['to_reference']['value']:.3f} ± {line['to_reference']['error']:.3f}",
            f"{line['to_best']['value']:.3f}",
            str(line["first"]),
            str(line["wrong_totals"]),
            f"{line['seconds']:.1f}",
            str(line["seeds"]),
        ]
        for line in lines
    ]
    header = ["method", f"NRMSE to {report['reference']}", "to each table's best", "best on", "wrong totals"]
    means = table([*header, "seconds on one thread", "seeds"], rows)
    return f"{means}\n\n{table(['claim', 'holds', 'evidence'], claims)}"


def board_losses_block() -> str:
    """Where the default is behind another method or off a total."""
    losses = _read("board/tables")["losses"]
    rows = [[loss[key] for key in ("table", "what", "to", "evidence")] for loss in losses]
    return table(["table", "in", "to", "evidence"], rows)


def reference_block() -> str:
    """Every public name with the first sentence of its documentation, by room."""
    homes = [(room, import_module(f"transun.{room}")) for room in ROOMS]
    parts = []
    for room, module in homes:
        names = [name for name in module.__all__ if name in transun.__all__]
        lines = [f"- `{name}`: {_first_sentence(getattr(module, name))}" for name in sorted(names, key=str.lower)]
        if lines:
            others = [f"`{name}`" for name in module.__all__ if name not in transun.__all__]
            more = f"\n\nAlso in `transun.{room}`: {', '.join(others)}." if others else ""
            parts.append("\n\n".join([f"## {room}", _first_sentence(module), "\n".join(lines)]) + more)
    return "\n\n".join(parts)


def _first_sentence(value: Any) -> str:
    text = value.meaning if isinstance(value, transun.Metric) else inspect.getdoc(value) or ""
    return re.split(r"(?<=[^.][.])(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def _read(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


BLOCKS: dict[str, Callable[[], str]] = {
    "demo": demo_block,
    "board": board_block,
    "board-losses": board_losses_block,
    "synthetic": lambda: claims_block("synthetic"),
    "layers": picture,
    "reference": reference_block,
}
PAGES = [ROOT / "README.md", ROOT / "docs" / "architecture.md", ROOT / "docs" / "reference.md"]


def filled(text: str) -> str:
    """The page with every marked block replaced by its present content."""
    for name, block in BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = pattern.sub(lambda match, block=block: f"{match[1]}{block()}\n{match[2]}", text)
    return text


def main(check: bool) -> int:
    """Rewrite the pages, or say which one is out of date."""
    stale = [page for page in PAGES if filled(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")]
    for page in stale:
        if check:
            print(f"{page.relative_to(ROOT)} is out of date: run python docs/build.py")
        else:
            page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
