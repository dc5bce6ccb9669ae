"""The estimators on real and on simulated data, as pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from transun.report.markdown import table, yes

_COLUMNS = {"STRE": "{:+.4f}", "MRE": "{:.3f}", "NRMSE": "{:.4f}", "NMAE": "{:.4f}", "XAUC": "{:.4f}"}


def boosted_page(report: Mapping[str, Any]) -> str:
    """Markdown of LightGBM used in many ways on the public data sets."""
    entries = report["entries"]
    parts = [
        "# Ways to use one booster on skewed targets",
        f"LightGBM with its default parameters behind a target encoding of ids, five folds by a hash of the row, the "
        f"same for all; every number is of out-of-fold predictions for all rows, ± its standard error over rows. Made "
        f"by `{report['command']}`.",
        _claims(report["claims"]),
    ]
    for name in dict.fromkeys(entry["dataset"] for entry in entries):
        own = [entry for entry in entries if entry["dataset"] == name]
        rows = next(entry["rows"] for entry in own if "failed" not in entry)
        parts += [f"## {name}, {rows:,} rows", table(["method", *_COLUMNS, "seconds"], [_row(entry) for entry in own])]
    return "\n\n".join(parts) + "\n"


def deciles_page(report: Mapping[str, Any]) -> str:
    """Markdown of the bias by level of the true mean."""
    entries = report["entries"]
    header = ["method", *[str(part + 1) for part in range(len(entries[0]["bias"]))], "largest / s.e."]
    rows = [
        [
            entry["method"],
            *[f"{bias:+.1%}" for bias in entry["bias"]],
            f"{max(abs(bias) / error for bias, error in zip(entry['bias'], entry['error'], strict=True)):.1f}",
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
        # What a library says of its own source files is of no use to a reader.
        return [entry["method"], entry["failed"].split(" at ")[0], *[""] * len(_COLUMNS)]
    cells = [
        f"{form.format(entry['metrics'][name])} ± {form.format(entry['errors'][name]).lstrip('+')}"
        for name, form in _COLUMNS.items()
    ]
    return [entry["method"], *cells, f"{entry['seconds']:.0f}"]
