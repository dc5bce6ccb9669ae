"""Fill the marked blocks of the pages from reports, imports and docstrings, and draw the pictures: nothing is by hand.

`python docs/build.py` rewrites them; `python docs/build.py --check` fails if one is out of date.
"""

import inspect
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from layers import picture
from pictures import PICTURES
from way import way

import transun
from transun.report.markdown import table

ROOT = Path(__file__).parent.parent
REPORTS = ROOT / "paper" / "reports"
DOCS = ROOT / "docs"
DRAWN = DOCS / "understand" / "pictures"
# In the order in which a reader meets them.
ROOMS = (
    "estimators",
    "tables",
    "diagnosis",
    "totals",
    "watching",
    "experiments",
    "engines",
    "serving",
    "training",
    "models",
    "heads",
    "backbones",
    "data",
    "metrics",
    "transforms",
    "losses",
    "schemes",
    "corrections",
)


def demo_block() -> str:
    """The verdict of the demo's page."""
    return (DOCS / "demo" / "demo.md").read_text(encoding="utf-8").split("\n\n")[1]


def install_block() -> str:
    """The line that installs the library, and what each extra is for, by the comments in pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    base = "diagnose, repair, train, predict: the command line, scikit-learn estimators, PyTorch"
    rows = [["`pip install transun`", base]]
    for purpose, name in re.findall(r"^# (.+)\n([\w-]+) = \[", extras, re.MULTILINE):
        if not purpose.endswith("of the repository"):
            rows.append([f"`pip install 'transun[{name}]'`", purpose])
    return table(["install", "to"], rows).replace("--:", ":--")


def lost_block() -> str:
    """What a booster of ln(1 + y) loses of the total of test rows, over the tables of a report."""
    entries = _read("segments")["entries"]
    lost = [1.0 - entry["PGR"] for entry in entries if (entry["base"], entry["method"]) == ("ln(1 + y)", "as it is")]
    low, middle, high = (f"{100 * share:.0f}" for share in (min(lost), median(lost), max(lost)))
    return f"by {low} to {high} % on {len(lost)} public tables, {middle} % in the median"


def answers_block(name: str, link: str) -> str:
    """How many claims of a report hold, as part of a sentence."""
    claims = _read(name)["claims"]
    return f"{_held(claims)} of {len(claims)} hold ([page]({link}))"


def claims_block(name: str, link: str) -> str:
    """Every claim of a report with its answer and the numbers behind it."""
    report = _read(name)
    rows = [[claim["text"], answer_to(claim), claim["evidence"]] for claim in report["claims"]]
    made = f"Measured by `{report['command']}`: [every number]({link})."
    return f"{table(['claim', 'holds', 'evidence'], rows).replace('--:', ':--')}\n\n{made}"


def _held(claims: list[dict[str, Any]]) -> int:
    return sum(answer_to(claim) == "yes" for claim in claims)


def _default_and_rivals(report: Any, group: str) -> tuple[Any, list[Any]]:
    """The lines of the default and of the rivals that were run on all its tables, the least error first."""
    lines = {line["method"]: line for line in report["averages"] if line["group"] == group}
    default = lines["default"]
    rivals = [lines[name] for name in report["rivals"] if name in lines and lines[name]["tables"] == default["tables"]]
    return default, sorted(rivals, key=lambda line: line["to_reference"]["value"])


def unseen_block() -> str:
    """The default against its rivals on the tables that took part in no choice, in a sentence."""
    default, rivals = _default_and_rivals(_read("board/tables"), "unseen")
    others = [line for line in rivals if line["to_reference"]["error"]]
    return (
        f"On {default['tables']} tables of R packages, which were added last, it is {_ratio(default)}, best on "
        f"{default['first']} with {default['wrong_totals']} wrong totals; the best of the other {len(others)} rivals, "
        f"{others[0]['method']}, has {_ratio(others[0])}."
    )


def board_block() -> str:
    """The default against its rivals on the tables with numbers, in a few sentences."""
    report = _read("board/tables")
    default, rivals = _default_and_rivals(report, "numbers")
    rival = rivals[0]
    refit = next(line for line in rivals if line["method"] == f"{report['reference']}_refit")
    held, wrong = f"{_held(report['claims'])} of {len(report['claims'])}", default["wrong_totals"]
    return (
        f"The error (NRMSE) of `train` is {_ratio(default)} of that of {report['reference']}, the geometric mean over "
        f"the board's tables with numbers; the best of {len(rivals)} rivals, {rival['method']}, has {_ratio(rival)}. "
        "Once validation rows have nothing left to choose, the trees of `train` learn from them too if they tell much; "
        f"{report['reference']} that does so has {_ratio(refit)}. `train` is best on {default['first']} tables and has "
        f"{wrong} wrong total{'s' * (wrong != 1)}, for {default['seconds']:.0f} seconds a table on one thread. {held} "
        "claims about it hold ([page](paper/reports/board/tables.md))."
    )


def answer_to(claim: dict[str, Any]) -> str:
    """The answer to a claim of a report: yes, no or undecided; some reports say true or false."""
    return {True: "yes", False: "no"}.get(claim["holds"], claim["holds"])


def _ratio(line: dict[str, Any]) -> str:
    return f"{line['to_reference']['value']:.3f} ± {line['to_reference']['error']:.3f}"


def board_losses_block() -> str:
    """Where the default is behind another method or off a total."""
    losses = _read("board/tables")["losses"]
    rows = [[loss[key] for key in ("table", "what", "to", "evidence")] for loss in losses]
    return table(["table", "in", "to", "evidence"], rows)


def coverage_block() -> str:
    """Coverage of 95 % intervals of totals by kind of amounts and number of labelled rows, over both models."""
    lines = _coverage_lines()
    rows = []
    for amounts, labelled in dict.fromkeys((line["amounts"], line["labelled"]) for line in lines):
        here = [line for line in lines if (line["amounts"], line["labelled"]) == (amounts, labelled)]
        whole, expected = (
            [line for line in here if line["total of"] == f"all rows{end}"] for end in ("", ", expected")
        )
        segments = [line for line in here if line["total of"].endswith("segment")]
        rows.append(
            [
                amounts,
                f"{labelled:,}",
                _range(whole, "refused, %"),
                _range(whole, "covered, %"),
                _range(segments, "covered, %"),
                _range(whole, "refused by labelled rows alone, %"),
                _range(whole, "covered by labelled rows alone, %"),
                _range(whole, "answered wrongly by labelled rows alone, %"),
                _range(whole, "± 1.96 standard errors cover, %"),
                _range(whole, "Hall's interval covers, %"),
                _range(whole, "bootstrap-t covers, %"),
                _range(expected, "ppi-aipw covers, %"),
                _range(expected, "width to ppi-aipw", 2),
                _range(expected, "width to ppi-aipw, both at 95 %", 2),
            ]
        )
    header = ["amounts", "labelled", "refused, %", "covered, %", "covered in segments, %"]
    alone = ["no certificate: refused, %", "covered, %", "wrong, %"]
    others = ["± 1.96 errors, %", "Hall, %", "bootstrap-t, %", "ppi-aipw, %", "width to it", "width, both at 95 %"]
    return table([*header, *alone, *others], rows)


def small_segments_block() -> str:
    """The least coverage of 95 % intervals of a small segment where the variance of the amounts is finite."""
    here = [
        line
        for line in _coverage_lines()
        if line["total of"] == "the small segment" and line["amounts"] not in ("Pareto 1.5", "Student 1.5")
    ]
    worst = min(here, key=lambda line: line["covered, %"])
    return f"{worst['covered, %']:.0f} of 100 intervals hold instead of 95 ({worst['amounts']})"


def _coverage_lines() -> list[dict[str, Any]]:
    result = json.loads((ROOT / "benchmarks" / "results" / "totals.json").read_text(encoding="utf-8"))
    return [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]


def parity_block() -> str:
    """How far exported files are from Python, in a sentence."""
    result = json.loads((ROOT / "benchmarks" / "results" / "parity.json").read_text(encoding="utf-8"))
    lines = [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]
    forms = [column for column in result["columns"] if column.startswith(".")]
    distances = [
        (line[form], f"{line['model']} as {form}") for line in lines for form in forms if line[form] is not None
    ]
    largest, where = max(distances)
    within = sum(line["within"] for line in lines)
    parts = ", ".join(f"{count} {part}" for part, count in Counter(line["part"] for line in lines).items())
    return (
        f"{within} of {len(lines)} models ({parts}) predict the same from exported files as in Python to 1e-5, on "
        f"10,000 random and extreme rows each; the largest difference is {largest:.1e}, of {where} "
        "([page](../parity.md))."
    )


def _range(lines: list[dict[str, Any]], column: str, digits: int = 1) -> str:
    values = [line[column] for line in lines if line[column] is not None]
    if not values:
        return "–"
    low, high = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def costs_block() -> str:
    """What the pages of the paper cost together and one by one, from what the results behind them took."""
    costs = _read("costs")
    together = costs["together"]
    hours = together["seconds"] / 3600.0
    untimed = together["results"] - together["timed"]
    least = f" The time of {untimed:,} of the {together['results']:,} results is not known." if untimed else ""
    on_gpu = max(cost["seconds"] for cost in costs["gpu"].values()) / 60.0
    rows = "\n".join(f"| `{name}` | {cost['results']:,} | {_minutes(cost)} |" for name, cost in costs["pages"].items())
    return (
        f"{len(together['names'])} pages together took {hours:.1f} hours of one core, hence {hours / 2.0:.1f} on two; "
        f"the industrial ones took {on_gpu:.0f} minutes of a GPU.{least} Pages share results, so that they cost less "
        "together than one by one:\n\n"
        f"| page | results | minutes of one core |\n| :-- | --: | --: |\n{rows}\n"
    )


def _minutes(cost: dict[str, Any]) -> str:
    if not cost["timed"]:
        return "not known"
    return f"{'' if cost['timed'] == cost['results'] else 'at least '}{cost['seconds'] / 60.0:.0f}"


def reference_block() -> str:
    """Every public name with the first sentence of its documentation, by room."""
    homes = [(room, import_module(f"transun.{room}")) for room in ROOMS]
    parts = []
    for room, module in homes:
        names = [name for name in module.__all__ if name in transun.__all__]
        lines = [f"- `{name}`: {first_sentence(getattr(module, name))}" for name in sorted(names, key=str.lower)]
        if lines:
            others = [f"`{name}`" for name in module.__all__ if name not in transun.__all__]
            more = f"\n\nAlso in `transun.{room}`: {', '.join(others)}." if others else ""
            parts.append("\n\n".join([f"## {room}", first_sentence(module), "\n".join(lines)]) + more)
    return "\n\n".join(parts)


def first_sentence(value: Any) -> str:
    """What a public name is, in the first sentence of its documentation; a metric says what it means."""
    text = value.meaning if isinstance(value, transun.Metric) else inspect.getdoc(value) or ""
    return re.split(r"(?<=[^.][.])(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def _read(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


BLOCKS: dict[str, Callable[[], str]] = {
    "demo": demo_block,
    "board": board_block,
    "unseen": unseen_block,
    "board-losses": board_losses_block,
    "install": install_block,
    "lost": lost_block,
    "small-segments": small_segments_block,
    "coverage": coverage_block,
    "parity": parity_block,
    "costs": costs_block,
    "layers": picture,
    "way": way,
    "reference": reference_block,
}
# These take the name of a report, `<!-- claims watching -->`, and the link from the page to the page of the report.
REPORT_BLOCKS: dict[str, Callable[[str, str], str]] = {"answers": answers_block, "claims": claims_block}
PAGES = [
    ROOT / "README.md",
    ROOT / "paper" / "README.md",
    *(page for folder in ("", "guides", "understand") for page in (DOCS / folder).glob("*.md")),
]


def filled(text: str, page: Path) -> str:
    """The text of a page with every marked block replaced by its present content."""
    for name, block in BLOCKS.items():
        # A block within a sentence has no line breaks around its content.
        pattern = re.compile(rf"(<!-- {name} -->(\n?)).*?(<!-- /{name} -->)", re.DOTALL)
        text = pattern.sub(lambda match, block=block: f"{match[1]}{block()}{match[2]}{match[3]}", text)
    for name, report_block in REPORT_BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name} ([\w/-]+) -->(\n?)).*?(<!-- /{name} -->)", re.DOTALL)
        text = pattern.sub(
            lambda match, block=report_block: (
                f"{match[1]}{block(match[2], report_link(match[2], page))}{match[3]}{match[4]}"
            ),
            text,
        )
    return text


def report_link(name: str, page: Path) -> str:
    """The way from a page to the page of a report: pages of the site link to the copy in the site."""
    reports = DOCS / "generated" / "evidence" / "reports" if page.is_relative_to(DOCS) else REPORTS
    return Path(os.path.relpath(reports / f"{name}.md", page.parent)).as_posix()


def wanted() -> dict[Path, str]:
    """What every page and picture should hold now."""
    pages = {page: filled(page.read_text(encoding="utf-8"), page) for page in PAGES}
    return pages | {DRAWN / f"{name}.svg": draw() for name, draw in PICTURES.items()}


def main(check: bool) -> int:
    """Rewrite the pages and pictures, or say which one is out of date."""
    stale = [
        (path, text) for path, text in wanted().items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is out of date: run python docs/build.py")
        else:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
