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


def methods_block() -> str:
    """Per synthetic report, its title and whether its claims hold."""
    rows = [
        [f"{report['title']}: {claim['text'][0].lower()}{claim['text'][1:]}", yes(claim["holds"]), claim["evidence"]]
        for report in map(_read, ("methods", "bins", "instances"))
        for claim in report["claims"]
    ]
    return table(["claim", "holds", "evidence"], rows)


def boosters_block() -> str:
    """Signed TRE and NRMSE of ways to use one booster, per data set."""
    entries = _read("boosters")["entries"]
    names = list(dict.fromkeys(entry["dataset"] for entry in entries))
    shown = ["log target", "smearing", "MSE", "Poisson", "Tweedie", "GTS, p = 1", "UnbiasedRegressor"]
    found = {(entry["dataset"], entry["method"]): _bias_and_error(entry) for entry in entries if "metrics" in entry}
    return table(["signed TRE, NRMSE", *shown], [[name, *[found[name, method] for method in shown]] for name in names])


def leaderboard_block() -> str:
    """Signed TRE and NRMSE of some methods of the leaderboard, and on how many data sets noise leaves them first."""
    report = _read("leaderboard")
    shown = ["MSE", "LogMSE", "LogMSE + smearing", "Poisson", "Gamma", "ZILN", "TPM", "OptDist", "LogSUN", "AutoSUN"]
    names = [found["dataset"] for found in report["tables"]]
    entries = {(found["dataset"], entry["method"]): entry for found in report["tables"] for entry in found["entries"]}
    rows = []
    for method in shown:
        own = [entries[name, method] for name in names]
        first = sum("NRMSE" in (*entry.get("best", ()), *entry.get("near", ())) for entry in own)
        rows.append([method, *[_bias_and_error(entry) if "metrics" in entry else "" for entry in own], str(first)])
    return table(["signed TRE, NRMSE", *names, "first by NRMSE, or within noise"], rows)


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


def _bias_and_error(entry: dict[str, Any]) -> str:
    metrics, errors = entry["metrics"], entry["errors"]
    return f"{metrics['STRE']:+.3f} ± {errors['STRE']:.3f}, {metrics['NRMSE']:.3f}"


def _read(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


BLOCKS: dict[str, Callable[[], str]] = {
    "demo": demo_block,
    "synthetic": lambda: claims_block("synthetic"),
    "methods": methods_block,
    "levels": lambda: claims_block("levels"),
    "boosters": boosters_block,
    "leaderboard": leaderboard_block,
    "ahead": lambda: claims_block("ahead"),
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
