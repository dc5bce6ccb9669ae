"""The leaderboard as a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from transun.metrics import metric_named
from transun.report.markdown import table

# Headings of columns whose metric has another name in the literature.
_HEADINGS = {"TopXAUC": "XAUC, top 30 %", "TopNDCG": "NDCG@10 %"}
_LEGEND = (
    "**Bold** is the best of a column. A star marks a value that is within noise of the best: the two-sided t-test of "
    "the difference, with the noise of training (paired by seed) and of the test rows (delete-a-group jackknife over "
    "20 blocks, the same for both methods), gives p > {level}. The best of many is the best by luck in part, so a star "
    "is a weak statement. Signed TRE is ± 1.96 standard errors, of seeds and test rows; where it is below zero the "
    "total is predicted too low. MB is the memory of the parameters. "
    "XAUC, top 30 % is among the rows with the largest targets. † marks a rate at an end of the grid: "
    "a wider one might have done better."
)


def leaderboard_page(report: Mapping[str, Any]) -> str:
    """Markdown of a leaderboard, as `lab.leaderboard.collect` returns it, with the command that made it."""
    parts = [
        f"# {len(names(report))} methods on {len(report['tables'])} public data sets",
        f"{report['protocol']} Made by `{report['command']}` with transun {report['version']} and torch "
        f"{report['torch']}.",
        _LEGEND.format(level=report["level"]),
        "## How often a method is the best, or within noise of it",
        wins_table(report),
    ]
    for dataset in report["tables"]:
        sizes = ", ".join(f"{count:,} to {part}" for part, count in dataset["rows"].items())
        parts += [
            f"## {dataset['dataset']}",
            f"Rows: {sizes}; {dataset['split']}.",
            dataset_table(dataset, report["columns"]),
        ]
        parts += _failures(dataset)
    if "sgd" in report:
        parts += ["## By SGD", report["sgd"]["protocol"], by_optimiser_table(report, report["sgd"])]
        parts += [part for dataset in report["sgd"]["tables"] for part in _failures(dataset, dataset["dataset"])]
    parts += [
        "## One row",
        "One command makes one row, and repeats no run that is in its folder of runs:",
        "\n".join(f"- `{command}`" for command in commands(report)),
    ]
    return "\n\n".join(parts) + "\n"


def by_optimiser_table(adam: Mapping[str, Any], sgd: Mapping[str, Any]) -> str:
    """Two leaderboards of the same data, beside each other: signed TRE and NRMSE of the methods that both have."""
    by_adam = {(t["dataset"], e["method"]): e for t in adam["tables"] for e in t["entries"] if "failed" not in e}
    rows = [
        [t["dataset"], e["method"], *_short(by_adam[t["dataset"], e["method"]]), *_short(e)]
        for t in sgd["tables"]
        for e in t["entries"]
        if "failed" not in e and (t["dataset"], e["method"]) in by_adam
    ]
    header = ["data", "method", "Adam", "signed TRE", "NRMSE", "SGD", "signed TRE", "NRMSE"]
    return table(header, rows)


def _short(entry: Mapping[str, Any]) -> list[str]:
    return [_rate(entry), _signed(entry), _number(entry["metrics"]["NRMSE"], "{:.3f}")]


def commands(report: Mapping[str, Any]) -> list[str]:
    """The command of every row."""
    return [f'{report["command"]} --only "{name}"' for name in names(report)]


def names(report: Mapping[str, Any]) -> list[str]:
    """The methods, in order of the catalogue."""
    return list(dict.fromkeys(entry["method"] for dataset in report["tables"] for entry in dataset["entries"]))


def dataset_table(dataset: Mapping[str, Any], columns: Sequence[str]) -> str:
    """One data set: a row per method, in the order of the catalogue."""
    header = [
        "method",
        "rate",
        "signed TRE",
        *[_HEADINGS.get(name, name) for name in columns],
        "epochs",
        "MB",
    ]
    return table(header, [_row(entry, columns) for entry in dataset["entries"] if "failed" not in entry])


def wins_table(report: Mapping[str, Any]) -> str:
    """Per method and column, on how many data sets it is best or within noise of the best."""
    columns = report["columns"]
    count = {name: dict.fromkeys(columns, 0) for name in names(report)}
    for dataset in report["tables"]:
        for entry in dataset["entries"]:
            for column in (*entry.get("best", ()), *entry.get("near", ())):
                count[entry["method"]][column] += 1
    rows = [[name, *map(str, wins.values()), str(sum(wins.values()))] for name, wins in count.items()]
    rows.sort(key=lambda row: -int(row[-1]))
    return table(["method", *[_HEADINGS.get(name, name) for name in columns], "sum"], rows)


def _row(entry: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    return [
        entry["method"],
        _rate(entry),
        _signed(entry),
        *[_cell(entry, name) for name in columns],
        _number(entry["epochs"], "{:.0f}"),
        _number(entry["bytes"], "{:.1f}", 1e-6),
    ]


def _signed(entry: Mapping[str, Any]) -> str:
    if "STRE" not in entry["metrics"]:
        return "–"
    return f"{entry['metrics']['STRE']:+.3f} ± {1.96 * entry['errors']['STRE']:.3f}"


def _rate(entry: Mapping[str, Any]) -> str:
    return _number(entry["rate"], "{:g}") + (" †" if entry["at_the_end"] else "")


def _cell(entry: Mapping[str, Any], name: str) -> str:
    value = entry["metrics"].get(name)
    text = "–" if value is None else metric_named(name).format(value)
    if name in entry["best"]:
        return f"**{text}**"
    return f"{text} *" if name in entry["near"] else text


def _number(value: float | None, form: str, unit: float = 1.0) -> str:
    return "–" if value is None else form.format(value * unit)


def _failures(dataset: Mapping[str, Any], where: str = "") -> list[str]:
    """What diverged: whole methods, some of their seeds, or some of the learning rates that were tried."""
    lines = []
    for entry in dataset["entries"]:
        if "failed" in entry:
            lines.append(f"- {entry['method']}: {entry['failed']}")
            continue
        if "diverged" in entry:
            lines.append(f"- {entry['method']}, {entry['diverged']}; its row has the others")
        if entry.get("diverged_rates"):
            rates = ", ".join(f"{rate:g}" for rate, _ in entry["diverged_rates"])
            lines.append(f"- {entry['method']} at a rate of {rates}: {entry['diverged_rates'][0][1]}")
    return [f"Failed{f' on {where}' if where else ''}:\n\n" + "\n".join(lines)] if lines else []
