"""The pictures of a diagnosis."""

import math
from collections.abc import Sequence

from transun.diagnosis.result import Estimate, Histogram, Level
from transun.report.page import number
from transun.report.svg import Canvas, Scale, linear_scale, log_scale, short

__all__ = ["calibration", "forest", "histogram"]

_LABEL = 19


def calibration(levels: Sequence[Level], target: str) -> str:
    """Mean actual against mean predicted by level, with intervals; right totals lie on the dashed line."""
    canvas = Canvas(320.0, "mean actual against mean predicted value by level of the prediction")
    values = [value for level in levels for value in (level.pred, level.actual.value)]
    reach = 20.0 * max(map(abs, values))  # an interval without end must not decide the axis
    tops = [end for level in levels for end in (level.actual.low, level.actual.high) if abs(end) < reach]
    left, right, top, bottom = 44.0, 350.0, 24.0, 280.0
    positive = [value for value in [*values, *tops] if value > 0.0]
    logarithmic = min(level.pred for level in levels) > 0.0 and min(level.actual.value for level in levels) > 0.0
    if logarithmic:
        # An interval that reaches zero must not stretch the axis over many decades.
        least = min(min(level.pred, level.actual.value) for level in levels) / 3.0
        low, high = max(min(positive), least) / 1.1, max(positive) * 1.1
        x, y = log_scale(low, high, left, right), log_scale(low, high, bottom, top)
    else:
        low, high = min(0.0, *values, *tops), max([*values, *tops])
        x, y = linear_scale(low, high, left, right), linear_scale(low, high, bottom, top)
    canvas.x_axis(x, top, bottom, (left + right) / 2, f"mean predicted {_cut(target, 28)}")
    canvas.y_axis(y, left, right, f"mean actual {_cut(target, 28)}")
    canvas.line([(x.place(low), y.place(low)), (x.place(high), y.place(high))], "even")
    for level in levels:
        actual = level.actual
        fine = actual.low <= level.pred <= actual.high
        at, look = x.place(level.pred), "" if fine else " bad"
        ends = [min(max(end, low), high) for end in (actual.low, actual.high) if not math.isnan(end)]
        canvas.line([(at, y.place(end)) for end in ends], f"range{look}")
        title = f"{level.rows:,} rows: predicted {number(level.pred)}, actual {number(actual.value)}"
        canvas.dot(at, y.place(min(max(actual.value, low), high)), f"dot{look}", title)
    return canvas.svg()


def forest(rows: Sequence[tuple[str, Estimate]], label: str) -> str:
    """Predicted / actual of several groups with intervals, one line each, against the dashed line at 1."""
    shown = [(name, pgr) for name, pgr in rows if 0.0 < pgr.value < math.inf]
    if not shown:
        return ""
    left, right, top, step = 128.0, 350.0, 8.0, 21.0
    bottom = top + step * len(shown)
    canvas = Canvas(bottom + 38.0, label)
    low, high = _limits([pgr for _, pgr in shown])
    x = log_scale(low, high, left, right)
    canvas.x_axis(x, top, bottom, (left + right) / 2, "predicted / actual total (PGR)", _ratio)
    canvas.line([(x.place(1.0), top), (x.place(1.0), bottom)], "even")
    for index, (name, pgr) in enumerate(shown):
        middle = top + step * (index + 0.5)
        look = "" if pgr.low <= 1.0 <= pgr.high else " bad"
        ends = [min(max(end, low), high) if not math.isnan(end) else low for end in (pgr.low, pgr.high)]
        canvas.text(left - 8, middle + 4, _cut(name, _LABEL), "end", "name", name)
        canvas.line([(x.place(end), middle) for end in ends], f"range{look}")
        title = f"{name}: {number(pgr.value)} ({number(pgr.low)} to {number(pgr.high)})"
        canvas.dot(x.place(min(max(pgr.value, low), high)), middle, f"dot{look}", title)
    return canvas.svg()


def histogram(bars: Histogram, unit: str, *, scale: str) -> str:
    """Shares of rows; `scale` is "log" or "linear"."""
    if not bars.shares:
        return ""
    left, right, top, bottom = 40.0, 350.0, 24.0, 150.0
    canvas = Canvas(190.0, f"histogram of {unit}")
    x = _SCALES[scale](bars.edges[0], bars.edges[-1], left, right)
    y = linear_scale(0.0, 100.0 * max(bars.shares), bottom, top, ticks=4)
    canvas.y_axis(y, left, right, "% of rows")
    canvas.x_axis(x, bottom, bottom, (left + right) / 2, unit)
    for start, end, share in zip(bars.edges[:-1], bars.edges[1:], bars.shares, strict=True):
        a, b = x.place(start), x.place(end)
        title = f"{number(start)} to {number(end)}: {share:.2%}"
        height = bottom - y.place(100.0 * share)
        canvas.bar(a + 0.4, bottom - height, max(b - a - 0.8, 0.6), height, "fill", title)
    return canvas.svg()


def _log(low: float, high: float, start: float, end: float) -> Scale:
    return log_scale(low, high, start, end)


def _linear(low: float, high: float, start: float, end: float) -> Scale:
    return linear_scale(low, high, start, end)


_SCALES = {"log": _log, "linear": _linear}


def _limits(pgrs: Sequence[Estimate]) -> tuple[float, float]:
    """The values and 1, with the ends of the intervals as far as these do not stretch the axis beyond reason."""
    values = [1.0, *[pgr.value for pgr in pgrs]]
    low, high = min(values) / 2.0, max(values) * 2.0
    ends = [end for pgr in pgrs for end in (pgr.low, pgr.high) if low <= end <= high]
    everything = [*values, *ends]
    margin = max((max(everything) / min(everything)) ** 0.05, 1.01)
    return min(everything) / margin, max(everything) * margin


def _ratio(value: float) -> str:
    return f"{value:.2g}" if value < 10.0 else short(value)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
