"""The demo's outcomes as a table and a picture."""

from collections.abc import Mapping
from typing import Any

from transun.lab.demo import Outcome
from transun.metrics import BinTable
from transun.report.markdown import table

# What a person reads for a metric, and its format.
_LINES = {
    "PGR": ("predicted / actual total (PGR)", "{:.3f}"),
    "TRE": ("total relative error (TRE)", "{:.3f}"),
    "MRE": ("mean relative error (MRE)", "{:.3f}"),
    "NRMSE": ("error (NRMSE)", "{:.3f}"),
    "XAUC": ("ranking (XAUC)", "{:.4f}"),
}


def demo_table(outcomes: Mapping[str, Outcome]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: one line per metric, one column per model, values ± standard errors."""
    models = outcomes.values()
    rows = [
        [title, *[f"{form.format(o.metrics[name])} ± {form.format(o.errors[name])}" for o in models]]
        for name, (title, form) in _LINES.items()
    ]
    rows.append(["distance to the true E[y|x]", *[f"{o.distance:.3f}" for o in models]])
    rows.append(["seconds of training", *[f"{o.seconds:.1f}" for o in models]])
    return ["held-out orders", *outcomes], rows


def verdict(outcomes: Mapping[str, Outcome]) -> str:
    """What happened, in a sentence per model."""
    lines = []
    for name, outcome in outcomes.items():
        gap, error = outcome.metrics["PGR"] - 1.0, outcome.errors["PGR"]
        side = "under" if gap < 0 else "over"
        sure = "" if abs(gap) > 2 * error else ", within sampling error"
        lines.append(f"{name} {side}-predicts the total by {abs(gap):.1%} (± {2 * error:.1%}){sure}.")
    return " ".join(lines)


def demo_page(outcomes: Mapping[str, Outcome], picture: str) -> str:
    """Markdown of the demo."""
    parts = [
        "# A log-trained model and its debiased twin",
        verdict(outcomes),
        table(*demo_table(outcomes)),
        "Made by `transun demo`: a simulated order log whose E[y|x] is known; the last fifth of it is held out.",
        f"![calibration by decile of the prediction]({picture})",
    ]
    return "\n\n".join(parts) + "\n"


def decile_rows(bins: BinTable) -> list[dict[str, float]]:
    """The bins as rows for a chart: mean prediction, mean target and a 95 % interval of the latter."""
    rows = []
    for index in range(len(bins)):
        pred, y = float(bins.pred[index]), float(bins.y[index])
        half = 1.96 * float(bins.stre_error[index]) * pred  # STRE = 1 - ȳ/ŷ, so sd(ȳ) = ŷ·sd(STRE)
        rows.append({"prediction": pred, "target": y, "low": y - half, "high": y + half})
    return rows


def demo_json(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        name: {
            "metrics": dict(outcome.metrics),
            "standard_errors": dict(outcome.errors),
            "distance_to_truth": outcome.distance,
            "deciles": decile_rows(outcome.deciles),
            "seconds": outcome.seconds,
        }
        for name, outcome in outcomes.items()
    }
