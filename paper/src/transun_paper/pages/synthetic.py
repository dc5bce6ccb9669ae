"""The page of a synthetic table: our numbers, the paper's and the closed form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transun.report.markdown import table, yes


def synthetic_page(report: Mapping[str, Any]) -> str:
    """Markdown of the report of a synthetic table."""
    cells, protocol = report["cells"], report["protocol"]
    columns = list(dict.fromkeys(cell["distribution"] for cell in cells))
    start = "the head's initial outputs" if protocol["prepared_start"] else "zero"
    answers = [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]]
    held = sum(claim["holds"] for claim in report["claims"])
    parts = [
        f"# {report['title']}",
        f"{held} of {len(report['claims'])} claims hold.",
        "Signed relative error (ŷ - E[y]) / E[y] of a constant prediction; 0 is unbiased. "
        f"N = {protocol['rows']:,} draws, batch {protocol['batch']}, one epoch of SGD from {start}, the learning rate "
        f"of least cost on the training rows among {', '.join(f'{rate:g}' for rate in sorted(protocol['rates']))}, "
        f"{protocol['seeds']} seeds from {protocol['first_seed']}. "
        f"Made by `{report['command']}` in {report['seconds']:.0f} s with transun {report['version']} and "
        f"torch {report['torch']}.",
        "## Ours: weights averaged over the second half of training, mean over seeds ± standard error",
        _grid(cells, columns, lambda cell: f"{cell['sre']:+.4f} ± {cell['error']:.4f}"),
        *(
            [
                "## Ours against the mean of the same draws: 0 is what unbiased methods learn, whatever the draws are",
                _grid(cells, columns, lambda cell: f"{cell['gap']:+.5f} ± {cell['gap_error']:.5f}"),
            ]
            if "gap" in cells[0]
            else []
        ),
        "## Does the claim hold?",
        table(["claim", "holds", "evidence"], answers),
        "## Ours: the last step, no averaging",
        _grid(cells, columns, lambda cell: f"{cell['sre_last']:+.4f}"),
        *(
            ["## The paper", _grid(cells, columns, lambda cell: _number(cell["paper"]))]
            if any(cell["paper"] is not None for cell in cells)
            else []
        ),
        *(["\n".join(f"- {note}" for note in report["notes"])] if report["notes"] else []),
        "## Closed form: what each method converges to, by quadrature",
        _grid(cells, columns, lambda cell: _number(cell["limit"])),
        "## Sampling error: the standard error of the mean of one sample, relative",
        _grid(cells, columns, lambda cell: f"{cell['noise']:.4f}"),
    ]
    return "\n\n".join(parts) + "\n"


def _grid(cells: Sequence[Mapping[str, Any]], columns: Sequence[str], show: Callable[[Mapping[str, Any]], str]) -> str:
    rows = list(dict.fromkeys((cell["method"], cell["label"]) for cell in cells))
    texts = {(cell["method"], cell["label"], cell["distribution"]): show(cell) for cell in cells}
    return table(
        ["method", "", *columns], [[*row, *[texts.get((*row, name), "–") for name in columns]] for row in rows]
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}"
