"""The pictures of the pages that explain the theory, computed from closed forms; `python docs/build.py` writes them.

Every curve is a formula of its docstring: nothing is trained and nothing is drawn by hand.
"""

import math
from collections.abc import Callable, Sequence

from layers import PRODUCT, layers, rooms

from transun.report.svg import Canvas, Scale, linear_scale

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 350.0, 24.0, 200.0
Curve = Sequence[tuple[float, float]]


def jensen() -> str:
    """The gap of Jensen: y = e^u is convex, so the mean of two back-transformed values lies above the middle one."""
    canvas = Canvas(240.0, "the mean of e to the u at u = 0 and u = 2 is 4.2, and e to the mean of u is 2.7")
    x, y = linear_scale(-0.5, 2.3, _LEFT, _RIGHT), linear_scale(0.0, 9.0, _BOTTOM, _TOP)
    canvas.y_axis(y, _LEFT, _RIGHT, "amount y")
    canvas.x_axis(x, _TOP, _BOTTOM, (_LEFT + _RIGHT) / 2, "u = ln y, the scale of training")
    canvas.line(_points(x, y, [(u, math.exp(u)) for u in _grid(-0.5, 2.19)]), "path")
    canvas.line(_points(x, y, [(0.0, 1.0), (2.0, math.exp(2.0))]), "even")
    mean, middle = (1.0 + math.exp(2.0)) / 2.0, math.exp(1.0)
    for u, amount, style in (
        (0.0, 1.0, "dot"),
        (2.0, math.exp(2.0), "dot"),
        (1.0, mean, "dot"),
        (1.0, middle, "dot bad"),
    ):
        canvas.dot(x.position(u), y.position(amount), style)
    canvas.text(x.position(1.0) - 8, y.position(mean) - 4, f"mean of y: {mean:.1f}", "end", "name")
    canvas.text(x.position(1.0) + 9, y.position(middle) + 12, f"e^(mean of u): {middle:.1f}", "start", "name")
    return canvas.file()


def unbiased() -> str:
    """Predicted / actual mean of a group whose ln y has standard deviation σ, where σ differs between groups.

    T-MSE on ln y predicts the median, e^(-σ²/2) of the mean. One smearing factor for all rows, right for σ = 0.8,
    leaves e^((0.8² - σ²)/2). z / κ learns E[y|x] itself: 1.
    """
    sigmas = _grid(0.0, 1.5)
    return _curves(
        "predicted / actual mean by the noise of a group, of three methods",
        ("noise σ of ln y in the group", "predicted / actual mean"),
        {
            "path bad": ("trained on ln y", [(s, math.exp(-s * s / 2.0)) for s in sigmas]),
            "even": ("one smearing factor for all rows", [(s, math.exp((0.64 - s * s) / 2.0)) for s in sigmas]),
            "path": ("z / κ", [(s, 1.0) for s in sigmas]),
        },
        {"path bad": (0.55, 0.62), "even": (0.9, 1.3), "path": (0.25, 1.05)},
        (0.0, 1.5),
    )


def lag() -> str:
    """Predicted / actual mean during training, where f moves and z follows it.

    f goes from 0 to ln 20 as f(t) = ln 20·(1 - e^(-t)), z learns E[y]·κ(f) with κ(f) = e^(-f) at three times the
    rate: dz/dt = 3·(E[y]·κ(f) - z), E[y] = 40. While f grows, κ falls, z is still too large, and z / κ(f) lies above
    the mean.
    """
    step, f_end, mean = 0.005, math.log(20.0), 40.0
    right, z = [], mean  # at f = 0, κ = 1, z starts at its optimum
    for index in range(1401):
        t = index * step
        kappa = math.exp(-f_end * (1.0 - math.exp(-t)))
        if index % 20 == 0:
            right.append((t, z / kappa / mean))
        z += step * 3.0 * (mean * kappa - z)
    return _curves(
        "predicted / actual mean over training time: above 1 while f moves, 1 in the end",
        ("training time", "predicted / actual mean"),
        {"path": ("z / κ(f) while f moves", right), "even": ("the mean", [(0.0, 1.0), (7.0, 1.0)])},
        {"path": (3.2, 1.55), "even": (5.5, 0.85)},
        (0.0, 7.0),
    )


def weights() -> str:
    """The efficiency of weighted least squares with weights μ^-p, where the noise has variance μ^q.

    One factor is estimated for amounts μ from 1 to 1000, equally often on a logarithmic scale: ŷ = b·μ. The variance of
    b is Σ w²·μ²·μ^q / (Σ w·μ²)², least at p = q; drawn is that least variance over the variance at p.
    """
    amounts = [10.0 ** (3.0 * index / 60.0) for index in range(61)]

    def variance(p: float, q: float) -> float:
        noise = sum(mu ** (2.0 - 2.0 * p + q) for mu in amounts)
        return noise / sum(mu ** (2.0 - p) for mu in amounts) ** 2

    powers = _grid(0.0, 3.0)
    curves = {
        style: (f"variance ∝ {name}", [(p, variance(q, q) / variance(p, q)) for p in powers])
        for style, name, q in (("even", "1", 0.0), ("path", "μ", 1.0), ("path bad", "μ²", 2.0))
    }
    return _curves(
        "efficiency of weights by their power, for three kinds of noise",
        ("p of the weights μ^-p: 0 squares, 1 Poisson, 2 TranSUN", "efficiency"),
        curves,
        {"even": (0.45, 0.4), "path": (1.0, 1.03), "path bad": (2.0, 1.03)},
        (0.0, 3.0),
    )


def cross_fitting() -> str:
    """Predicted / actual mean, by the share λ of a row's own noise that f has memorised, for ln y with σ = 1.

    In training u = m + λ·ε, so z learns E[y·e^(-u)] = e^((1-λ)²/2); at a new row u = m, and the prediction is
    e^((1-λ)²/2 - 1/2) of the mean. With u from other folds, λ is 0 in training as at prediction.
    """
    shares = _grid(0.0, 1.0)
    return _curves(
        "predicted / actual mean by how much f has memorised its training rows",
        ("share of a row's own noise that f has memorised", "predicted / actual mean"),
        {
            "path bad": ("u of its own training rows", [(s, math.exp(((1.0 - s) ** 2 - 1.0) / 2.0)) for s in shares]),
            "path": ("u of other folds", [(s, 1.0) for s in shares]),
        },
        {"path bad": (0.4, 0.55), "path": (0.4, 1.03)},
        (0.0, 1.0),
    )


def layer_boxes() -> str:
    """The rooms of the code by layer, the highest first: a room imports only from the rows below it."""
    rows = list(reversed(layers(rooms(PRODUCT))))
    step = 26.0
    canvas = Canvas(step * len(rows) + 8.0, "the rooms of the code by layer, from the command line down to support")
    for index, names in enumerate(rows):
        top = 4.0 + index * step
        canvas.text(4.0, top + 15.0, str(len(rows) - 1 - index), "start")
        width = (canvas.width - 24.0) / len(names)
        for place, name in enumerate(names):
            left = 20.0 + place * width
            canvas.line(_frame(left + 1.0, top, width - 2.0, step - 4.0), "path")
            canvas.text(left + width / 2.0, top + 15.0, name, style="name")
    return canvas.file()


PICTURES: dict[str, Callable[[], str]] = {
    "cross_fitting": cross_fitting,
    "jensen": jensen,
    "lag": lag,
    "layers": layer_boxes,
    "unbiased": unbiased,
    "weights": weights,
}


def _curves(
    label: str,
    axes: tuple[str, str],
    curves: dict[str, tuple[str, Curve]],
    labels: dict[str, tuple[float, float]],
    limits: tuple[float, float],
) -> str:
    """Curves with their names by style, and the points around which the names are written."""
    canvas = Canvas(240.0, label)
    values = [value for _, curve in curves.values() for _, value in curve]
    x = linear_scale(*limits, _LEFT, _RIGHT)
    y = linear_scale(min(0.0, *values), 1.08 * max(values), _BOTTOM, _TOP)
    canvas.y_axis(y, _LEFT, _RIGHT, axes[1])
    canvas.x_axis(x, _TOP, _BOTTOM, (_LEFT + _RIGHT) / 2, axes[0])
    for style, (name, curve) in curves.items():
        canvas.line(_points(x, y, curve), style)
        at, height = labels[style]
        canvas.text(x.position(at), y.position(height), name, style="name")
    return canvas.file()


def _grid(low: float, high: float, points: int = 61) -> list[float]:
    return [low + (high - low) * index / (points - 1) for index in range(points)]


def _points(x: Scale, y: Scale, curve: Curve) -> list[tuple[float, float]]:
    return [(x.position(a), y.position(b)) for a, b in curve]


def _frame(left: float, top: float, width: float, height: float) -> list[tuple[float, float]]:
    right, bottom = left + width, top + height
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
