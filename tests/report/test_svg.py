"""Scales and marks of the small charts."""

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from transun.report.formatting import number, share
from transun.report.svg import Canvas, linear_scale, log_scale, short, tick_labels


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 17.0), (0.1, 0.13), (1e6, 9e6), (5.0, 5.0)])
def test_linear_ticks_are_round_and_inside(low, high):
    scale = linear_scale(low, high, 0.0, 300.0)
    assert 2 <= len(scale.ticks) <= 7
    assert all(-1e-6 <= scale.position(tick) <= 300.0 + 1e-6 for tick in scale.ticks)
    steps = [b - a for a, b in pairwise(scale.ticks)]
    assert max(steps) == pytest.approx(min(steps))


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1e9), (0.3, 1.05), (0.97, 1.02), (1e-6, 1e-3), (2.0, 70.0), (3.0, 3.0)]
)
def test_log_ticks_keep_their_distance(low, high):
    scale = log_scale(low, high, 0.0, 230.0)
    assert len(scale.ticks) >= 1
    positions = [scale.position(tick) for tick in scale.ticks]
    assert all(b - a >= 20.0 for a, b in pairwise(positions))
    assert all(-1.0 <= position <= 231.0 for position in positions)
    assert scale.position(math.sqrt(low * high)) == pytest.approx(115.0)


@pytest.mark.parametrize("ticks", [(1.055, 1.06, 1.065, 1.07), (1000.0, 1001.0), (0.0, 0.5, 1.0)])
def test_ticks_have_as_many_digits_as_tell_them_apart(ticks):
    labels = tick_labels(ticks)
    assert len(set(labels)) == len(ticks)
    assert tick_labels((0.0, 0.5, 1.0)) == ["0", "0.5", "1"]


def test_text_is_escaped_and_the_picture_is_xml():
    canvas = Canvas(100.0, 'a "label" <b>')
    canvas.text(1.0, 2.0, "<script>", title="&")
    canvas.dot(1.0, 2.0, "dot", "x < y")
    canvas.bar(0.0, 0.0, 5.0, 5.0, "fill")
    canvas.x_axis(linear_scale(0.0, 1.0, 40.0, 350.0), 0.0, 50.0, 195.0, "unit")
    root = ET.fromstring(canvas.svg())
    assert root.attrib["aria-label"] == 'a "label" <b>'
    assert next(root.iter("text")).text == "<script>"


def test_a_value_outside_the_axis_is_drawn_at_its_end():
    scale = linear_scale(0.0, 10.0, 100.0, 0.0)
    assert [scale.clamped(value) for value in (-5.0, 5.0, math.inf)] == [100.0, 50.0, 0.0]


def test_a_picture_of_its_own_has_its_colours_and_a_background():
    canvas = Canvas(100.0, "label")
    canvas.dot(1.0, 2.0, "dot")
    root = ET.fromstring(canvas.file())
    space = "{http://www.w3.org/2000/svg}"
    style = root.find(f"{space}style").text
    assert "prefers-color-scheme: dark" in style
    assert "--paper" in style
    assert root.find(f"{space}rect").attrib["fill"] == "var(--paper)"
    assert [child.tag for child in root][-1] == f"{space}circle"
    assert float(root.attrib["width"]) / float(root.attrib["height"]) == 3.6


def test_numbers_for_people():
    assert short(-2500.0) == "−2.5k"
    assert number(-1234.5) == "−1,234"
    assert share(math.nan) == "–"
