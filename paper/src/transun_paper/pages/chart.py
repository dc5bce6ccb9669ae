"""Pictures, drawn without a browser."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transun.support.extras import need

# Readable for the colour-blind: what is wrong in orange, what is right in blue.
_COLOURS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]


def calibration_chart(deciles: Mapping[str, Sequence[Mapping[str, float]]], unit: str = "target") -> Any:
    """Mean target against mean prediction by decile of the prediction, one line per model, on logarithmic axes.

    A calibrated model lies on the dashed diagonal; a log-trained one lies above it, since it predicts too little.

    Args:
        deciles: per model, rows with `prediction`, `target`, `low` and `high` (a 95 % interval of the target's mean).
        unit: what the target is called on the axes.

    """
    alt = need("altair")
    values = [value for bins in deciles.values() for row in bins for value in row.values() if value > 0]
    rows = [{"model": model, **row} for model, bins in deciles.items() for row in bins]
    ends = [min(values) / 1.1, max(values) * 1.1]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    colour = alt.Color("model:N", title=None, sort=list(deciles), scale=alt.Scale(range=_COLOURS))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("prediction:Q", title=f"mean predicted {unit}", scale=scale),
        y=alt.Y("target:Q", title=f"mean actual {unit}", scale=scale),
        color=colour,
    )
    perfect = alt.Chart(alt.Data(values=[{"v": end} for end in ends])).mark_line(strokeDash=[4, 4], color="#888888")
    band = base.mark_rule(opacity=0.6).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    layers = (perfect.encode(x="v:Q", y="v:Q"), base.mark_line(), band, base.mark_point(filled=True, size=45))
    title = alt.Title("Calibration by decile of the prediction", subtitle="on the dashed line, totals are right")
    return alt.layer(*layers).properties(width=420, height=420, title=title)


def save(chart: Any, path: Path) -> None:
    """Write a picture; the ending of the path decides the format: .svg, .png, .html or .json."""
    need("vl_convert")
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(path), **({"scale_factor": 2} if path.suffix == ".png" else {}))
