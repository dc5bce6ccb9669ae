"""The pages of the estimators: on real data, and by level on simulated data."""

from collections.abc import Mapping, Sequence
from typing import Any

from transun.report.markdown import table, yes
from transun_paper.lab.bias_by_level import largest_in_errors

_COLUMNS = {"STRE": "{:+.4f}", "MRE": "{:.3f}", "NRMSE": "{:.4f}", "NMAE": "{:.4f}", "XAUC": "{:.4f}"}


def boosters_page(report: Mapping[str, Any]) -> str:
    """Markdown of LightGBM used in many ways on the public data sets."""
    entries = report["entries"]
    parts = [
        "# Ways to use one booster on skewed targets",
        f"LightGBM with its default parameters behind a target encoding of ids; five folds by a hash of the row, the "
        f"same for all methods. Every number is of out-of-fold predictions for all rows, ± its standard error. Made "
        f"by `{report['command']}`.",
        _claims(report["claims"]),
    ]
    for name in dict.fromkeys(entry["dataset"] for entry in entries):
        on_dataset = [entry for entry in entries if entry["dataset"] == name]
        rows = next(entry["rows"] for entry in on_dataset if "failed" not in entry)
        parts += [
            f"## {name}, {rows:,} rows",
            table(["method", *_COLUMNS, "seconds"], [_row(entry) for entry in on_dataset]),
        ]
    return "\n\n".join(parts) + "\n"


def bias_by_level_page(report: Mapping[str, Any]) -> str:
    """Markdown of the bias by level of the true mean."""
    entries = report["entries"]
    header = ["method", *[str(part + 1) for part in range(len(entries[0]["bias"]))], "largest / s.e."]
    rows = [
        [
            entry["method"],
            *[f"{bias:+.1%}" for bias in entry["bias"]],
            f"{largest_in_errors(entry):.1f}",
        ]
        for entry in entries
    ]
    parts = [
        "# Bias by level, where the truth is known",
        f"Relative bias of predicted means in ten parts by the true mean, from small to large: log-normal noise whose "
        f"spread is largest where the mean is smallest, LightGBM as the base, {report['repeats']} samples of "
        f"{report['rows']:,} rows. The last column is the bias furthest from zero in standard errors over the samples; "
        f"above {report['wide']} it is outside a 95 % interval for all ten parts at once. Made by "
        f"`{report['command']}`.",
        _claims(report["claims"]),
        table(header, rows),
    ]
    return "\n\n".join(parts) + "\n"


def _claims(claims: Sequence[Mapping[str, Any]]) -> str:
    return table(
        ["claim", "holds", "evidence"], [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in claims]
    )


def _row(entry: Mapping[str, Any]) -> list[str]:
    if "failed" in entry:
        # A message of LightGBM ends with the place in its source files, which is of no use to a reader.
        return [entry["method"], entry["failed"].split(" at ")[0], *[""] * len(_COLUMNS)]
    cells = [
        f"{form.format(entry['metrics'][name])} ± {form.format(entry['errors'][name]).lstrip('+')}"
        for name, form in _COLUMNS.items()
    ]
    return [entry["method"], *cells, f"{entry['seconds']:.0f}"]
