"""The figures of the paper, drawn without a browser, and the page around them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transun.support.extras import need
from transun_paper.pages.paper import claim_parts, verdict

# Readable for the colour-blind; biased methods are orange, unbiased ones blue.
_COLOURS = {
    "LogMSE": "#d55e00",
    "LogSUN": "#0072b2",
    "MSE": "#009e73",
    "OptDist": "#cc79a7",
    "S0": "#009e73",
    "S1": "#d55e00",
    "S2": "#0072b2",
    "TRE": "#0072b2",
    "MRE": "#d55e00",
    "NRMSE": "#009e73",
    "LogMSE + daily calibrator": "#e69f00",
    "LogSUN + daily calibrator": "#009e73",
}
_WIDTH, _HEIGHT = 230, 150
# The top of an axis of relative errors, at most: a larger error leaves the frame, so that small ones can be read.
_FRAME = 2.0
ChartRow = dict[str, Any]


def figure_page(report: Mapping[str, Any], picture: str) -> str:
    """Markdown of a report of a figure, with the name of the file that holds its picture."""
    parts = [
        f"# {report['title']}",
        *([verdict(report["claims"])] if report["claims"] else []),
        f"![{report['title']}]({picture})",
        report["about"],
        *claim_parts(report["claims"]),
        f"Made by `{report['command']}` with transun {report['version']} and torch {report['torch']}.",
    ]
    return "\n\n".join(parts) + "\n"


def draw(report: Mapping[str, Any]) -> Any:
    """The chart of a report, which `save` writes."""
    return _CHARTS[report["name"]](report["panels"])


def save(chart: Any, path: Path) -> None:
    """Write a chart; the ending of the path decides the format: .svg, .png, .html or .json."""
    need("vl_convert")
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(path))


def _training(panels: Sequence[Mapping[str, Any]]) -> Any:
    def rows(panel: Mapping[str, Any]) -> list[Any]:
        points = _points(panel)
        return [
            _lines(points, "epochs", "PGR", "predicted / actual total", rule=1.0),
            _lines(points, "epochs", "loss", "loss / its maximum"),
        ]

    return _stack(panels, rows)


def _schemes(panels: Sequence[Mapping[str, Any]]) -> Any:
    def rows(panel: Mapping[str, Any]) -> list[Any]:
        points = _points(panel)
        return [
            _lines(points, "epochs", "bias", "bias loss / its maximum"),
            # The square root shows both a bias of 0.05 and one of 5.
            _lines(points, "epochs", "TRE", "TRE, training rows", scaling={"type": "sqrt"}),
            _lines(points, "epochs", "MRE", "MRE, training rows", scaling={"type": "sqrt"}),
        ]

    return _stack(panels, rows)


def _iterations(panels: Sequence[Mapping[str, Any]]) -> Any:
    return _stack(panels, lambda panel: [_lines(_points(panel), "epochs", "NRMSE", "NRMSE, training rows")])


def _bins(panels: Sequence[Mapping[str, Any]]) -> Any:
    def rows(panel: Mapping[str, Any]) -> list[Any]:
        charts = []
        for by in ("target", "prediction"):
            points = _binned(panel[by], "stre")
            title, symlog = f"signed TRE, bins by {by}", {"type": "symlog", "constant": 1.0}
            ticks = _symlog_ticks(points, "stre")
            charts.append(_lines(points, "bin", "stre", title, rule=0.0, scaling=symlog, ticks=ticks))
        slopes = _binned({name: bins for name, bins in panel["target"].items() if "slope" in bins}, "slope")
        return [
            *charts,
            _lines(slopes, "bin", "slope", "mean slope, bins by target", scaling={"type": "log", "nice": False}),
        ]

    return _stack(panels, rows)


def _epsilon(panels: Sequence[Mapping[str, Any]]) -> Any:
    def rows(panel: Mapping[str, Any]) -> list[Any]:
        def points(*names: str) -> list[ChartRow]:
            return [
                {"series": name, "eps": point["eps"], "value": point[name][0], **_interval(*point[name])}
                for point in panel["points"]
                for name in names
            ]

        names = ("TRE", "MRE", "NRMSE")
        biases = points("TRE", "MRE")
        # The square root shows both 0.01 and 1. A prediction near zero makes an MRE of thousands: it leaves the frame.
        top = min(1.1 * max((row["high"] for row in biases), default=1.0), _FRAME)
        bias_chart = _interval_lines(biases, names, "TRE and MRE", {"type": "sqrt", "domain": [0.0, top]})
        return [bias_chart, _interval_lines(points("NRMSE"), names, "NRMSE", {"zero": False})]

    return _stack(panels, rows)


def _drift(panels: Sequence[Mapping[str, Any]]) -> Any:
    def rows(panel: Mapping[str, Any]) -> list[Any]:
        days = [
            {"series": method, "day": day, "ratio": value}
            for method, values in panel["days"].items()
            for day, value in enumerate(values)
        ]
        parts = [
            {"series": method, "part": part + 1, "ratio": value}
            for method, values in panel["parts"].items()
            for part, value in enumerate(values)
        ]
        return [
            _lines(days, "day", "ratio", "predicted / true total", rule=1.0),
            _lines(parts, "part", "ratio", "predicted / true, items by noise", rule=1.0),
        ]

    return _stack(panels, rows)


def _densities(panels: Sequence[Mapping[str, Any]]) -> Any:
    alt = need("altair")
    charts = []
    for panel in panels:
        rows = [{"v": v, "density": d} for v, d in zip(panel["v"], panel["density"], strict=True)]
        area = alt.Chart(alt.Data(values=rows)).mark_area(color="#0072b2", opacity=0.35, line={"color": "#0072b2"})
        layers = [area.encode(x=alt.X("v:Q", title="y"), y=alt.Y("density:Q", title="density"))]
        mean = alt.Chart(alt.Data(values=[{"mean": panel["mean"]}])).mark_rule(color="#d55e00", strokeDash=[4, 3])
        layers.append(mean.encode(x="mean:Q"))
        if panel["at_zero"] > 0:
            zeros = alt.Chart(alt.Data(values=[{"v": 0.0, "top": max(panel["density"])}]))
            layers.append(zeros.mark_bar(size=5, color="#0072b2").encode(x="v:Q", y="top:Q"))
        skewness = round(panel["skewness"], 2) + 0.0  # not -0
        numbers = f"mean {panel['mean']:.3g}, variance {panel['variance']:.4g}, skewness {skewness:g}"
        if panel["at_zero"] > 0:
            numbers += f", {panel['at_zero']:.0%} zeros (bar)"
        title = alt.Title(f"{panel['dataset']}: {panel['title'].split(': ')[-1]}", subtitle=numbers, anchor="start")
        charts.append(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT * 0.7, title=title))
    return _configured(alt.concat(*charts, columns=4))


def _points(panel: Mapping[str, Any]) -> list[ChartRow]:
    """One row per point: losses relative to their maximum, so that methods with other units share an axis."""
    rows = []
    for label, curve in panel["curves"].items():
        losses = [sum(point["terms"].values()) for point in curve["looks"]]
        biases = [point["terms"].get("bias", 0.0) for point in curve["looks"]]
        for point, loss, bias in zip(curve["looks"], losses, biases, strict=True):
            row = {"series": label, "epochs": point["step"] * curve["batch_size"] / curve["rows"]}
            row |= {name: point[name] for name in ("PGR", "TRE", "MRE", "NRMSE") if name in point}
            rows.append(row | {"loss": loss / max(losses), "bias": bias / (max(biases) or 1.0)})
    return rows


def _binned(series: Mapping[str, Mapping[str, Sequence[float]]], name: str) -> list[ChartRow]:
    return [
        {"series": label, "bin": number + 1, name: value}
        for label, bins in series.items()
        for number, value in enumerate(bins[name])
    ]


def _interval(value: float, error: float) -> dict[str, float]:
    # Below zero an absolute error has no meaning.
    return {"low": max(value - 1.96 * error, 0.0), "high": value + 1.96 * error}


def _lines(
    rows: Sequence[ChartRow],
    x: str,
    y: str,
    title: str,
    *,
    rule: float | None = None,
    scaling: Mapping[str, Any] = MappingProxyType({"zero": False}),
    ticks: Sequence[float] | None = None,
) -> Any:
    """Lines of y over x, one per series.

    Args:
        rows: with `series`, x and y.
        x: name of the horizontal value.
        y: name of the vertical one.
        title: of the vertical axis.
        rule: where a dashed line is drawn; None draws none.
        scaling: of the vertical axis, as `altair.Scale` takes it.
        ticks: values to write there; None leaves the choice to the chart.

    """
    alt = need("altair")
    axis = alt.Axis(tickCount=5, format="~g") if ticks is None else alt.Axis(values=list(ticks), labelOverlap=False)
    scale = alt.Scale(**scaling)
    base = alt.Chart(alt.Data(values=list(rows))).mark_line(clip=True)
    lines = base.encode(
        x=alt.X(f"{x}:Q", title=x, axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=False, nice=False)),
        y=alt.Y(f"{y}:Q", title=title, scale=scale, axis=axis),
        color=_colour(list(dict.fromkeys(row["series"] for row in rows))),
    )
    if rule is None:
        return lines.properties(width=_WIDTH, height=_HEIGHT)
    dashed = alt.Chart(alt.Data(values=[{"rule": rule}])).mark_rule(strokeDash=[4, 4], color="#888888")
    # Layers merge their axes: without an axis here the labels' overlap rule would come back.
    dashed = dashed.encode(y=alt.Y("rule:Q", title=title, scale=scale, axis=axis))
    return alt.layer(dashed, lines).properties(width=_WIDTH, height=_HEIGHT)


def _symlog_ticks(rows: Sequence[ChartRow], y: str) -> list[float]:
    """Ticks for an axis that is linear near zero and logarithmic far from it."""
    largest = max((abs(row[y]) for row in rows), default=1.0)
    steps = [step for step in (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0) if step <= largest]
    return [*[-step for step in reversed(steps)], 0.0, *steps]


def _interval_lines(rows: Sequence[ChartRow], names: Sequence[str], title: str, scaling: Mapping[str, Any]) -> Any:
    alt = need("altair")
    ends = alt.Scale(type="log", domain=[5e-5, 2e3], nice=False)
    x = alt.X("eps:Q", title="ε", scale=ends, axis=alt.Axis(values=[1e-4, 1e-2, 1, 1e2], format="~g"))
    scale = alt.Scale(**scaling)
    base = alt.Chart(alt.Data(values=list(rows))).encode(x=x, color=_colour(names))
    lines = base.mark_line(point=True, clip=True).encode(
        y=alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))
    )
    bars = base.mark_rule(opacity=0.6, clip=True).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    return alt.layer(bars, lines).properties(width=_WIDTH, height=_HEIGHT)


def _colour(names: Sequence[str]) -> Any:
    alt = need("altair")
    colours = [_COLOURS[name] for name in names]
    return alt.Color("series:N", title=None, scale=alt.Scale(domain=list(names), range=colours))


def _stack(panels: Sequence[Mapping[str, Any]], rows: Callable[[Mapping[str, Any]], list[Any]]) -> Any:
    """One row of charts per data set, under its name."""
    alt = need("altair")
    stacked = [alt.hconcat(*rows(panel)).properties(title=panel["dataset"]) for panel in panels]
    return _configured(alt.vconcat(*stacked).resolve_scale(color="independent"))


def _configured(chart: Any) -> Any:
    return chart.configure_title(anchor="start", fontSize=13).configure_view(stroke="#dddddd")


_CHARTS: dict[str, Callable[[Sequence[Mapping[str, Any]]], Any]] = {
    "fig_training": _training,
    "fig_schemes": _schemes,
    "fig_iterations": _iterations,
    "fig_bins": _bins,
    "fig_bins_industrial": _bins,
    "fig_epsilon": _epsilon,
    "fig_densities": _densities,
    "fig_drift": _drift,
}
