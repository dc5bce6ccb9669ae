"""The synthetic table as a page: the paper's numbers, the closed form and ours."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transun.report.markdown import table, yes


def synthetic_page(report: Mapping[str, Any]) -> str:
    """Markdown of a `transun reproduce synthetic` report."""
    cells, protocol = report["cells"], report["protocol"]
    columns = list(dict.fromkeys(cell["distribution"] for cell in cells))
    answers = [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]]
    parts = [
        "# T-MSE against TranSUN on eight distributions",
        "Signed relative error (ŷ - E[y]) / E[y] of a constant prediction; 0 is unbiased. "
        f"N = {protocol['rows']:,} draws, batch {protocol['batch']}, one epoch of SGD from zero, the learning rate of "
        f"least training loss among {', '.join(f'{rate:g}' for rate in sorted(protocol['rates']))}, "
        f"{protocol['seeds']} seeds from {protocol['first_seed']}. "
        f"Made by `{report['command']}` in {report['seconds']:.0f} s with transun {report['version']} and "
        f"torch {report['torch']}.",
        "## Does the claim hold?",
        table(["claim", "holds", "evidence"], answers),
        "## Ours: weights averaged over the second half of training, mean over seeds ± standard error",
        _grid(cells, columns, lambda cell: f"{cell['sre']:+.4f} ± {cell['error']:.4f}"),
        "## Ours: the last step, no averaging",
        _grid(cells, columns, lambda cell: f"{cell['sre_last']:+.4f}"),
        "## The paper",
        _grid(cells, columns, lambda cell: "–" if cell["paper"] is None else f"{cell['paper']:+.4f}"),
        "## Closed form: what each method converges to, by quadrature",
        _grid(cells, columns, lambda cell: f"{cell['limit']:+.4f}"),
        "## Sampling error: the standard error of the mean of one sample, relative",
        _grid(cells, columns, lambda cell: f"{cell['noise']:.4f}"),
    ]
    return "\n\n".join(parts) + "\n"


def _grid(cells: Sequence[Mapping[str, Any]], columns: Sequence[str], show: Callable[[Mapping[str, Any]], str]) -> str:
    rows = list(dict.fromkeys((cell["method"], cell["transform"]) for cell in cells))
    found = {(cell["method"], cell["transform"], cell["distribution"]): cell for cell in cells}
    body = [[method, transform, *[show(found[method, transform, c]) for c in columns]] for method, transform in rows]
    return table(["method", "T", *columns], body)
