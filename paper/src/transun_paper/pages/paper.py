"""A real-data table of the paper as a page: its claims answered, our numbers, the paper's."""

from collections.abc import Mapping, Sequence
from typing import Any

from transun.report.markdown import table

_LEGEND = "Means over seeds ± 1.96 standard errors, {noise}."
_NEAR_ZERO = (
    " A ‡ marks an MRE of a method that predicts 0 in some rows, where the metric divides by a millionth of the "
    "mean: no claim is judged by it."
)
_STARS = (
    " A star marks a difference to the row named in the last column at the 5 % level: two-sided t-test, paired by seed."
)
_ANSWERS = {"yes": "yes", "no": "**no**", "undecided": "undecided", "unknown": "unknown"}
_CAUSES = {
    "size": ("size", "there are too few test rows, seeds or training rows to tell, or to get there"),
    "metric": ("metric", "the metric asks for something other than the mean, or has no value"),
    "data": ("data", "these data do not have what the claim is about"),
    "protocol": ("protocol", "with another training, or another way of counting, the answer is another"),
    "": ("not shown", "no run that was made shows why"),
}
_HEADINGS = {
    "STRE": "signed TRE",
    "NDCG": "NDCG@All",
    "TopNDCG": "NDCG@10 %",
    "TopXAUC": "XAUC, top 30 %",
}


def paper_page(report: Mapping[str, Any]) -> str:
    """Markdown of the report of a table, with the `command` that made it."""
    parts = [
        f"# {report['title']}",
        verdict(report["claims"]),
        "## Ours",
        _LEGEND.format(noise=report["noise"])
        + (_STARS if _tested(report["tables"]) else "")
        + (_NEAR_ZERO if any(_floored(row) for part in report["tables"] for row in part["rows"]) else ""),
    ]
    for dataset in report["tables"]:
        parts += [f"### {dataset['dataset']}", ours(dataset, report["columns"]), *_failures(dataset)]
    if "costs" in report:
        parts += ["### Memory and operations, counted from our modules", _costs(report["costs"])]
    parts += ["## The paper"] if report["paper"] else []
    parts += [printed(paper) for paper in report["paper"]]
    if report["notes"]:
        parts.append("\n".join(f"- {note}" for note in report["notes"]))
    parts += claim_parts(report["claims"])
    parts += [
        "## How it was made",
        f"{report['protocol']} Made by `{report['command']}` with transun {report['version']} and torch "
        f"{report['torch']}.",
    ]
    return "\n\n".join(parts) + "\n"


def verdict(claims: Sequence[Mapping[str, Any]]) -> str:
    """A few sentences: how many answers of each kind there are, what holds everywhere or fails most, what is explained.

    >>> verdict([{"claim": "A", "holds": "yes"}, {"claim": "B", "holds": "no"}, {"claim": "B", "holds": "yes"}])
    'Of 3 checks 2 hold and 1 fails. Runs show why for 0 of 1. Everywhere: A. Failing most: B (1 of 2).'
    """
    if not claims:
        return "No claim of the paper is checked here."
    verbs = {"yes": ("holds", "hold"), "no": ("fails", "fail"), "undecided": ("is undecided", "are undecided")}
    verbs["unknown"] = ("is not judged", "are not judged")
    counts = {answer: sum(claim["holds"] == answer for claim in claims) for answer in verbs}
    said = [f"{count} {verbs[answer][count > 1]}" for answer, count in counts.items() if count]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    parts = [
        f"Of {len(claims)} checks {listed}." if len(claims) > 1 else f"The one check {verbs[claims[0]['holds']][0]}."
    ]
    others = [claim for claim in claims if claim["holds"] != "yes"]
    if others:
        shown = sum(claim.get("cause") is not None for claim in others)
        parts.append(f"Runs show why for {shown} of {len(others)}.")
    by_claim: dict[str, list[str]] = {}
    for claim in claims:
        by_claim.setdefault(claim["claim"], []).append(claim["holds"])
    always = [text for text, answers in by_claim.items() if set(answers) == {"yes"}]
    if always:
        parts.append(f"Everywhere: {'; '.join(always)}.")
    failing = max(by_claim, key=lambda text: (by_claim[text].count("no"), -len(by_claim[text])))
    if by_claim[failing].count("no"):
        parts.append(f"Failing most: {failing} ({by_claim[failing].count('no')} of {len(by_claim[failing])}).")
    return " ".join(parts)


def claim_parts(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """How often each claim holds, why it does not, then every answer with its evidence and cause."""
    if not claims:
        return []
    order = list(_ANSWERS)
    counts = {claim["claim"]: dict.fromkeys(order, 0) for claim in claims}
    for claim in claims:
        counts[claim["claim"]][claim["holds"]] += 1
    present = [name for name in order if any(count[name] for count in counts.values())]
    rows = [[text, *[str(count[name]) for name in present]] for text, count in counts.items()]
    details = [
        [claim["claim"], claim["where"], _ANSWERS[claim["holds"]], claim["evidence"], _cause(claim)] for claim in claims
    ]
    return [
        "## Does the claim hold?",
        table(["claim, and in how many places it holds", *present], rows),
        *_why(claims),
        table(["claim", "where", "holds", "evidence", "cause"], details, texts=("where", "holds", "evidence", "cause")),
    ]


def _why(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many claims do not hold for each cause, and what such a cause means."""
    causes = [(claim.get("cause") or {"kind": ""})["kind"] for claim in claims if claim["holds"] != "yes"]
    if not causes:
        return []
    rows = [[name, str(causes.count(kind)), meaning] for kind, (name, meaning) in _CAUSES.items() if kind in causes]
    return [
        "Why the others do not hold, as runs show:",
        table(["cause", "answers", "what it means"], rows, ("what it means",)),
    ]


def _cause(claim: Mapping[str, Any]) -> str:
    """The cause of an answer other than yes, with the numbers that show it."""
    cause = claim.get("cause")
    if claim["holds"] == "yes":
        return ""
    return _CAUSES[""][0] if cause is None else f"{_CAUSES[cause['kind']][0]}: {cause['evidence']}"


def ours(dataset: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Our numbers on one data set."""
    tested = _tested([dataset])
    header = ["method", "", *[_HEADINGS.get(name, name) for name in columns], *(["tested against"] if tested else [])]
    rows = [
        [
            row["method"],
            row["label"],
            *[_cell(row, name) for name in columns],
            *([" ".join(row["against"]).removesuffix(" -") if "against" in row else ""] if tested else []),
        ]
        for row in dataset["rows"]
        if "cells" in row
    ]
    return table(header, rows)


def _floored(row: Mapping[str, Any]) -> bool:
    """Whether a method predicts 0 somewhere, so that its MRE says little."""
    return bool(row.get("floored", 0.0) > 0.0 and "MRE" in row.get("cells", {}))


def _tested(tables: Sequence[Mapping[str, Any]]) -> bool:
    return any("against" in row for dataset in tables for row in dataset["rows"])


def printed(paper: Mapping[str, Any]) -> str:
    """A table as the paper prints it."""
    rows = [[row["method"], row["label"], *[_plain(value) for value in row["values"]]] for row in paper["rows"]]
    caption = f"Table `{paper['table']}`, {paper['metric']}:"
    return f"{caption}\n\n{table(['method', '', *paper['columns']], rows)}"


def _cell(row: Mapping[str, Any], column: str) -> str:
    if column not in row["cells"]:
        return "–"
    value, error = row["cells"][column]
    chance = row.get("p", {}).get(column)
    star = " *" if chance is not None and chance < 0.05 else ""
    mark = " ‡" if column == "MRE" and _floored(row) else ""
    return f"{_digits(value)} ± {_digits(1.96 * error)}{mark}{star}"


def _digits(value: float) -> str:
    """Four decimals, fewer for large numbers: 0.0123, 12.35, 1,234."""
    size = abs(value)
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1000 else f"{value:,.0f}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:,.10g}" if abs(value) >= 1000 else f"{value:g}"


def _failures(dataset: Mapping[str, Any]) -> list[str]:
    lines = [f"- {row['method']} {row['label']}: {row['failed']}" for row in dataset["rows"] if "failed" in row]
    for row in dataset["rows"]:
        if "cells" in row and row.get("diverged_rates"):
            rates = ", ".join(f"{rate:g}" for rate, _ in row["diverged_rates"])
            lines.append(f"- {row['method']} {row['label']} at a rate of {rates}: {row['diverged_rates'][0][1]}")
    return ["Failed or missing:\n\n" + "\n".join(lines)] if lines else []


def _costs(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = [name for name in rows[-1] if name != "label"]
    return table(
        ["scheme", *columns],
        [[row["label"], *[f"{row[name]:.2f}" if name in row else "–" for name in columns]] for row in rows],
    )
