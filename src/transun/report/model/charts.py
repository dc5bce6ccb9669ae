"""The pictures of a model report."""

import math
from collections.abc import Sequence

from transun.diagnosis.assessment import Bin
from transun.report.page import number
from transun.report.svg import Canvas, linear_scale, log_scale, short

__all__ = ["curve", "signed_errors", "slope_line"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 350.0, 24.0, 160.0
# A curve that falls by more than this is shown by ratios, or its end would be a flat line.
_STEEP = 20.0


def curve(points: Sequence[tuple[float, float]], x_title: str, y_title: str, rule: float | None = None) -> str:
    """A line through the points, with a dashed line where the values should end up."""
    fine = [(x, y) for x, y in points if math.isfinite(y)]
    if not fine:
        return ""
    canvas = Canvas(200.0, f"{y_title} over {x_title}")
    values = [y for _, y in fine] + ([] if rule is None else [rule])
    low, high = min(values), max(values)
    steep = rule is None and low > 0.0 and high > _STEEP * low
    margin = 0.04 * (high - low) or 0.02 * abs(high) or 1.0
    y = log_scale(low, high, _BOTTOM, _TOP) if steep else linear_scale(low - margin, high + margin, _BOTTOM, _TOP)
    x = linear_scale(0.0, max(place for place, _ in fine), _LEFT, _RIGHT)
    canvas.y_axis(y, _LEFT, _RIGHT, y_title)
    canvas.x_axis(x, _TOP, _BOTTOM, (_LEFT + _RIGHT) / 2, x_title)
    if rule is not None:
        canvas.line([(_LEFT, y.place(rule)), (_RIGHT, y.place(rule))], "even")
    canvas.line([(x.place(a), y.place(b)) for a, b in fine], "path")
    if len(fine) <= 30:
        for a, b in fine:
            canvas.dot(x.place(a), y.place(b), "dot", f"{x_title} {number(a)}: {number(b)}")
    return canvas.svg()


def signed_errors(bins: Sequence[Bin]) -> str:
    """Signed TRE by bin of the prediction with 95 % intervals; right totals lie on the dashed line."""
    canvas = Canvas(210.0, "signed total relative error by level of the prediction")
    halves = [1.96 * one.error if math.isfinite(one.error) else 0.0 for one in bins]
    shown = [(one, half) for one, half in zip(bins, halves, strict=True) if math.isfinite(one.stre)]
    if not shown:
        return ""
    # One bin far out, or its interval, would squeeze all the others: it is drawn at the edge.
    sizes = sorted(abs(one.stre) for one, _ in shown)
    most = max(0.1, 2.5 * sizes[int(0.75 * (len(sizes) - 1))])
    low = max(min(one.stre - half for one, half in shown), -most)
    high = min(max(one.stre + half for one, half in shown), most)
    low, high = min(low, -0.02), max(high, 0.02)
    y = linear_scale(low * 1.05, high * 1.05, _BOTTOM, _TOP)
    canvas.y_axis(y, _LEFT, _RIGHT, "signed TRE (below 0: too little predicted)")
    step = (_RIGHT - _LEFT) / len(bins)
    canvas.line([(_LEFT, y.place(0.0)), (_RIGHT, y.place(0.0))], "even")
    for index, (one, half) in enumerate(shown):
        at = _LEFT + (index + 0.5) * step
        look = "" if abs(one.stre) <= half else " bad"
        ends = [min(max(end, low), high) for end in (one.stre - half, one.stre + half)]
        canvas.line([(at, y.place(end)) for end in ends], f"range{look}")
        canvas.dot(
            at, y.place(min(max(one.stre, low), high)), f"dot{look}", f"{one.rows:,} rows: {one.stre:+.3f} ± {half:.3f}"
        )
        canvas.text(at, _BOTTOM + 14, short(one.pred))
    canvas.text((_LEFT + _RIGHT) / 2, _BOTTOM + 30, "mean prediction of the bin", style="axis")
    return canvas.svg()


def slope_line(bins: Sequence[Bin]) -> str:
    """The mean slope κ by bin of the prediction."""
    found = [(float(index + 1), one.slope) for index, one in enumerate(bins) if one.slope is not None]
    return curve(found, "bin of the prediction", "mean slope κ")
