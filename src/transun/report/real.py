"""The table of real data as a page."""

from collections.abc import Mapping
from typing import Any

from transun.report.markdown import table

_COLUMNS = {"STRE": "{:+.3f}", "TRE": "{:.3f}", "MRE": "{:.3f}", "NRMSE": "{:.3f}", "NMAE": "{:.3f}", "XAUC": "{:.4f}"}


def real_rows(report: Mapping[str, Any]) -> list[list[str]]:
    """One row per data set and method, each metric ± its standard error."""
    return [
        [
            entry["dataset"],
            entry["method"],
            *[
                f"{form.format(entry['metrics'][name])} ± {form.format(entry['errors'][name]).lstrip('+')}"
                for name, form in _COLUMNS.items()
            ],
            f"{entry['seconds']:.0f}",
        ]
        for entry in report["entries"]
    ]


def real_page(report: Mapping[str, Any]) -> str:
    """Markdown of a `transun reproduce real` report."""
    sizes = {entry["dataset"]: (entry["rows"], entry["test_rows"]) for entry in report["entries"]}
    parts = [
        "# Four methods on real data",
        f"One recipe for all, not tuned: `{report['recipe']}`. Rows are split by a hash of their number, 80 % for "
        "training; the errors are standard errors over test rows. One seed: differences below about 0.02 in TRE are "
        f"noise. Made by `{report['command']}` with transun {report['version']} and torch {report['torch']}.",
        table(["data", "method", "signed TRE", *list(_COLUMNS)[1:], "seconds"], real_rows(report)),
        "Rows: " + ", ".join(f"{name} {a:,} + {b:,}" for name, (a, b) in sizes.items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"
