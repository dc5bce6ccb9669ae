"""Small charts as SVG: scales, axes and marks. Colours are those of the page, so that light and dark both work."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from transun.report.theme import CHARTS, COLOURS

__all__ = ["Canvas", "Scale", "linear_scale", "log_scale", "short", "tick_labels"]

# Ticks nearer than this would write over each other.
_GAP = 24.0


@dataclass(frozen=True)
class Scale:
    """A map from values to positions in the picture, with the values that get a tick, and the range of the axis."""

    position: Callable[[float], float]
    ticks: tuple[float, ...]
    low: float
    high: float

    def clamped(self, value: float) -> float:
        """The position of a value; a value outside the range is placed at its nearest end."""
        return self.position(min(max(value, self.low), self.high))


def linear_scale(low: float, high: float, start: float, end: float, ticks: int = 5) -> Scale:
    """A scale of equal steps, with ticks at round numbers.

    >>> scale = linear_scale(0.0, 10.0, 0.0, 100.0)
    >>> scale.position(5.0), scale.ticks
    (50.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
    """
    if not high > low:
        low, high = low - 0.5, high + 0.5
    step = _round_step((high - low) / ticks)
    first = math.ceil(low / step - 1e-9)
    marks = tuple(round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1))
    return Scale(lambda value: start + (value - low) / (high - low) * (end - start), marks, low, high)


def log_scale(low: float, high: float, start: float, end: float, ticks: int = 6) -> Scale:
    """A scale of equal ratios; ticks at as many round values as have room, or at every second or third decade.

    >>> scale = log_scale(1.0, 100.0, 0.0, 200.0)
    >>> scale.position(10.0), scale.ticks
    (100.0, (1.0, 3.0, 10.0, 30.0, 100.0))
    """
    if not high > low:
        low, high = low / 2.0, high * 2.0
    a, b = math.log10(low), math.log10(high)
    decades = range(math.floor(a), math.ceil(b) + 1)
    every = 1 + int((b - a) / ticks)
    options = [
        [digit * 10.0**decade for decade in decades for digit in digits]
        for digits in (
            (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
            (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
            (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
            (1.0, 2.0, 5.0),
            (1.0, 3.0),
            (1.0,),
        )
    ]
    options.append([10.0**decade for decade in decades if decade % every == 0])
    marks: list[float] = []
    for option in options:
        marks = [value for value in option if low * 0.999 <= value <= high * 1.001]
        gap = min((math.log10(y / x) for x, y in pairwise(marks)), default=b - a) / (b - a) * abs(end - start)
        if len(marks) <= ticks and gap >= _GAP:
            break
    return Scale(lambda value: start + (math.log10(value) - a) / (b - a) * (end - start), tuple(marks), low, high)


def short(value: float, digits: int = 3) -> str:
    """A number in few characters.

    >>> [short(v) for v in (0.0, 0.25, 1500.0, 2e6, 3e-7)]
    ['0', '0.25', '1.5k', '2M', '3e-07']
    """
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000.0 * size:
            return f"{value / size:.{digits}g}{unit}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−", value < 0)


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Labels with as few digits as tell the ticks apart, three at least.

    >>> tick_labels([1.06, 1.065, 1.07])
    ['1.06', '1.065', '1.07']
    """
    for digits in range(3, 8):
        labels = [short(value, digits) for value in ticks]
        if len(set(labels)) == len(labels):
            break
    return labels


@dataclass
class Canvas:
    """A picture of fixed proportions that fills the width it is given; `label` is for screen readers.

    It is 360 units wide, which is a phone's width: text of 11 units is readable there and grows on a desktop.
    """

    height: float
    label: str
    width: float = 360.0
    _marks: list[str] = field(default_factory=list)

    def line(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """A line through the points."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self._marks.append(f'<polyline class="{style}" points="{path}"/>')

    def bar(self, x: float, y: float, width: float, height: float, style: str, title: str = "") -> None:
        """A filled rectangle."""
        self._marks.append(
            f'<rect class="{style}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}">'
            f"{_title(title)}</rect>"
        )

    def dot(self, x: float, y: float, style: str, title: str = "") -> None:
        """A filled circle."""
        self._marks.append(f'<circle class="{style}" cx="{_n(x)}" cy="{_n(y)}" r="4">{_title(title)}</circle>')

    def text(self, x: float, y: float, text: str, anchor: str = "middle", style: str = "tick", title: str = "") -> None:
        """A line of text; anchor is start, middle or end."""
        self._marks.append(
            f'<text class="{style}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{escape(text)}{_title(title)}</text>'
        )

    def x_axis(self, scale: Scale, top: float, bottom: float, middle: float, title: str) -> None:
        """Ticks below, faint lines up to `top`, and a title around `middle` that names the unit."""
        for value, label in zip(scale.ticks, tick_labels(scale.ticks), strict=True):
            x = scale.position(value)
            self.line([(x, top), (x, bottom)], "grid")
            self.text(x, bottom + 14, label)
        self.text(middle, bottom + 30, title, style="axis")

    def y_axis(self, scale: Scale, left: float, right: float, title: str) -> None:
        """Ticks to the left, faint lines up to `right`, and a title above."""
        for value, label in zip(scale.ticks, tick_labels(scale.ticks), strict=True):
            y = scale.position(value)
            self.line([(left, y), (right, y)], "grid")
            self.text(left - 5, y + 4, label, "end")
        self.text(4, 12, title, "start", "axis")

    def svg(self) -> str:
        """The picture, to be put into a page, which has the style sheet."""
        return f"<svg {self._attributes()}>{''.join(self._marks)}</svg>"

    def file(self) -> str:
        """The picture as a file of its own, with colours and a background for light and dark."""
        width, height = _n(1.5 * self.width), _n(1.5 * self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {self._attributes()}>'
            f"<style>{COLOURS}{CHARTS} svg {{ font: 11px system-ui, sans-serif; }}</style>"
            f'<rect fill="var(--paper)" width="100%" height="100%"/>{"".join(self._marks)}</svg>\n'
        )

    def _attributes(self) -> str:
        return f'viewBox="0 0 {_n(self.width)} {_n(self.height)}" role="img" aria-label="{escape(self.label)}"'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _round_step(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(digit * size for digit in (1.0, 2.0, 5.0, 10.0) if digit * size >= step * 0.999)
