"""The pages of the board of tables: all methods, the ablations of the default, and one table left out at a time."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transun.report.markdown import table, yes
from transun.support.files import write_text
from transun_paper.board.left_out import left_out_summary
from transun_paper.board.tables import IDS, NUMBERS, UNSEEN

Report = Mapping[str, Any]

# No error of a model that has learned anything is so large, in units of the mean.
_DIVERGED = 1e6
# The folder of the board's reports below that of all reports.
FOLDER = "board"
_GROUPS = {
    NUMBERS: "Tables with numbers in them",
    IDS: "Tables made of ids",
    UNSEEN: "Tables that took part in no choice",
}
_PROTOCOL = (
    "Every method gets the same columns, nothing declared about them, and the same rows: it learns from training rows, "
    "may stop or choose by validation rows, and is measured on test rows that choose nothing. Some learn from "
    "validation rows too, once nothing is left to choose: the default, whose trees do where these rows tell them much, "
    "and methods whose name ends in refit. Each runs on one thread. A method with randomness is run with several seeds."
)
_LEGEND = (
    "Ratios are of NRMSE; ± is one standard error, of test rows (delete-a-group jackknife over 20 blocks, paired) and "
    "of seeds (paired). The interval is that of Student's t over tables, as if they were a sample of all tables. A "
    "total is wrong if it is more than two standard errors from the actual one. Seconds are of fitting, on one thread; "
    "for a network with a tuned rate, of the training at that rate."
)


def write_board_pages(out: Path) -> list[Path]:
    """Write the page of every report of the board that lies below a folder; the pages' paths."""
    folder = out / FOLDER
    written = []
    for path in sorted(folder.glob("tables*.json")):
        report = _read(path)
        written.append(_write(path.with_suffix(".md"), tables_page(report)))
        if report["ablations"]:
            written.append(
                _write(folder / f"{path.stem.replace('tables', 'ablations')}.md", _ablations(folder, report))
            )
    candidates = folder / "left_out.json"
    if candidates.is_file():
        written.append(_write(candidates.with_suffix(".md"), left_out_page(_read(candidates))))
    return written


def _ablations(folder: Path, report: Report) -> str:
    tried = folder / "tried.json"
    return ablations_page(report, _read(tried) if tried.is_file() else [])


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, text: str) -> Path:
    write_text(path, text)
    return path


def tables_page(report: Report) -> str:
    """All methods on all tables: what the default has to show, where it loses, means, and every table by itself."""
    subset = "" if report["rows"] is None else f", about {report['rows']:,} rows of each"
    parts = [
        f"# {len(report['methods'])} methods on {len(report['tables'])} tables{subset}",
        f"{_PROTOCOL} Made by `{report['command']}` with transun {report['version']} and torch {report['torch']}.",
        "## What the default has to show",
        table(["claim", "holds", "evidence"], [[c["text"], yes(c["holds"]), c["evidence"]] for c in report["claims"]])
        if report["claims"]
        else "The default has not been run.",
        "## Where it loses",
        _losses(report["losses"]),
        "## Over all tables",
        _LEGEND,
        *_machines(report["machines"]),
    ]
    for group, heading in _GROUPS.items():
        averages = [entry for entry in report["averages"] if entry["group"] == group]
        if averages:
            parts += [f"### {heading}", averages_table(averages, report["reference"])]
            parts += ["NRMSE:", nrmse_table(report, group)]
    parts += ["## Table by table"]
    for described in report["tables"]:
        parts += _table_section(report, described)
    return "\n\n".join([*parts, *_left_out_methods(report)]) + "\n"


def _machines(machines: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Which methods were run where, if the machines differ: their seconds cannot be compared."""
    if len(machines) > 1:
        where = "; ".join(f"on {machine}: {', '.join(methods)}" for machine, methods in machines.items())
        yield f"The methods were run on different machines, whose seconds cannot be compared: {where}."


def averages_table(averages: Sequence[Report], reference: str) -> str:
    """A line per method, the best first; methods that were not run on every table come after those that were."""
    most = max(entry["tables"] for entry in averages)
    ordered = sorted(averages, key=lambda entry: (entry["tables"] < most, entry["to_best"]["value"]))
    header = [
        "method",
        f"to {reference}",
        "interval",
        "to each table's best",
        "best on",
        "wrong totals",
        "mean XAUC",
        "seconds",
        "slowest",
        "tables",
        "seeds",
    ]
    return table(
        header,
        [
            [
                entry["method"],
                *_mean_cells(entry["to_reference"]),
                _with_error(entry["to_best"]["value"], entry["to_best"]["error"]),
                str(entry["first"]),
                str(entry["wrong_totals"]),
                f"{entry['xauc']:.4f}",
                f"{entry['seconds']:.1f}",
                f"{entry['slowest']:.0f}",
                str(entry["tables"]),
                str(entry["seeds"]),
            ]
            for entry in ordered
        ],
    )


def nrmse_table(report: Report, group: str) -> str:
    """NRMSE, a line per method and a column per table; the least of a table is bold."""
    names = [described["table"] for described in report["tables"] if described["group"] == group]
    values = {(entry["table"], entry["method"]): entry["metrics"]["NRMSE"] for entry in report["entries"]}
    compared = [entry["method"] for entry in report["averages"] if entry["group"] == group]
    least = {name: min(values[name, method] for method in compared if (name, method) in values) for name in names}

    def cell(name: str, method: str) -> str:
        value = values.get((name, method))
        text = "–" if value is None else f"{value:.4f}"
        return f"**{text}**" if value == least[name] else text

    return table(["method", *names], [[method, *[cell(name, method) for name in names]] for method in compared])


def _table_section(report: Report, described: Report) -> list[str]:
    sizes = ", ".join(f"{count:,} to {part}" for part, count in described["rows"].items())
    exposure = f"; exposure `{described['exposure']}`" if described["exposure"] else ""
    entries = [entry for entry in report["entries"] if entry["table"] == described["table"]]
    return [
        f"### {described['table']}",
        f"Target `{described['target']}`{exposure}; rows: {sizes}.",
        entries_table(entries, report["reference"]),
    ]


def entries_table(entries: Sequence[Report], reference: str) -> str:
    """One table of the board, a line per method, the least error first."""
    header = ["method", "NRMSE", f"to {reference}", "to the best", "total", "in errors", "XAUC", "seconds", "seeds"]
    return table(
        header,
        [
            [
                entry["method"],
                _with_error(entry["metrics"]["NRMSE"], entry["errors"]["NRMSE"]),
                _ratio(entry["to_reference"]),
                _ratio(entry["to_best"]),
                _with_error(entry["metrics"]["PGR"], entry["errors"]["PGR"], 3),
                f"{entry['total']:+.1f}",
                _with_error(entry["metrics"]["XAUC"], entry["errors"]["XAUC"]),
                f"{entry['seconds']:.1f}",
                str(entry["seeds"]),
            ]
            for entry in sorted(entries, key=lambda entry: entry["metrics"]["NRMSE"])
        ],
    )


def _losses(losses: Sequence[Report]) -> str:
    if not losses:
        return "Nowhere among the results so far."
    rows = [[loss["table"], loss["what"], loss["to"], loss["evidence"]] for loss in losses]
    return table(["table", "in", "to", "evidence"], rows)


def _left_out_methods(report: Report) -> Iterable[str]:
    if report["failures"]:
        rows = [[failure["method"], failure["table"], failure["failed"]] for failure in report["failures"]]
        yield "## Failed"
        yield table(["method", "table", "message"], rows)
    if report["skipped"]:
        yield "## Not run"
        yield table(["what", "why"], [[name, reason] for name, reason in report["skipped"].items()])
    yield "## Settings"
    yield table(["method", "settings"], [[entry["method"], f"`{entry['settings']}`"] for entry in report["methods"]])


def ablations_page(report: Report, tried: Sequence[Report]) -> str:
    """The default with one change at a time, and what was tried and dropped.

    Args:
        report: of the board.
        tried: rows with config, ratio, low, high (the 95 % interval) and note.

    """
    parts = [
        "# What each piece of the default is worth",
        f"{_PROTOCOL} Made by `{report['command']}` with transun {report['version']} and torch {report['torch']}.",
        "NRMSE of the changed default over that of the default: above 1, the piece helps. Left out says between which "
        "values the mean lies when one table at a time is left out: where all are above 1, no single table decides for "
        "the piece. XAUC is the mean difference over all tables: below 0, the piece helps the order. Trees are mixed "
        "with the default head alone, so compare another head with the network alone. "
        f"{_LEGEND}",
    ]
    ablations = report["ablations"]
    group_of = {described["table"]: described["group"] for described in report["tables"]}
    parts += [changes_table(ablations, group_of)] if ablations else ["None has been run."]
    for group, heading in _GROUPS.items():
        names = [described["table"] for described in report["tables"] if described["group"] == group]
        lines = [
            [line["change"], *[_ratio(line["tables"].get(name)) for name in names]]
            for line in ablations
            if group in line["means"]
        ]
        if lines:
            parts += [f"## {heading}", table(["change", *names], lines)]
    then = "Each was compared with the default as it was when it was tried."
    parts += ["## Tried and dropped", *([then, tried_table(tried)] if tried else ["Nothing is listed."])]
    return "\n\n".join(parts) + "\n"


def changes_table(ablations: Sequence[Report], group_of: Mapping[str, str]) -> str:
    """A line per change of the default: its means over the groups of tables.

    Args:
        ablations: of the report of the board.
        group_of: the group of each table.

    """
    groups = [group for group in _GROUPS if any(group in line["means"] for line in ablations)]
    header = ["change"]
    for group in groups:
        header += [group, "interval", "left out"]

    def cells(line: Report, group: str) -> list[str]:
        logs = [ratio["value"] for name, ratio in line["tables"].items() if group_of[name] == group]
        return [*_mean_cells(line["means"].get(group)), left_out_range(logs)]

    lines = [
        [
            line["change"],
            *[cell for group in groups for cell in cells(line, group)],
            f"{line['xauc']:+.4f} ± {line['xauc_error']:.4f}",
            str(line["wrong_totals"]),
            f"{line['seconds']:.1f}",
            f"`{line['settings']}`",
        ]
        for line in ablations
    ]
    return table([*header, "XAUC", "wrong totals", "seconds", "settings"], lines)


def left_out_range(logs: Sequence[float]) -> str:
    """Between which geometric means the ratios of all tables but one lie, given their logarithms.

    >>> left_out_range([0.0, math.log(2.0), math.log(2.0)])
    '1.4142 to 2.0000'
    >>> left_out_range([0.0])
    '–'
    """
    if len(logs) < 2:
        return "–"
    means = [(sum(logs) - left_out) / (len(logs) - 1) for left_out in logs]
    return _interval(math.exp(min(means)), math.exp(max(means)))


def tried_table(tried: Sequence[Report]) -> str:
    """What was tried and dropped: the ratio of its NRMSE to that of the default, its interval, and why.

    >>> row = {"config": "32 members", "ratio": 0.999, "low": 0.99, "high": 1.01, "note": "twice the time"}
    >>> print(tried_table([row]))
    | tried | NRMSE to the default's | 95 % interval | note |
    | :-- | --: | --: | --: |
    | 32 members | 0.9990 | 0.9900 to 1.0100 | twice the time |
    """
    header = ["tried", "NRMSE to the default's", "95 % interval", "note"]
    rows = [[row["config"], f"{row['ratio']:.4f}", _interval(row["low"], row["high"]), row["note"]] for row in tried]
    return table(header, rows)


def left_out_page(report: Report) -> str:
    """Settings chosen without the table that they are judged on.

    Args:
        report: `rows` as `left_out_summary` takes them, and optionally `reference` and `command`.

    """
    summary = left_out_summary(report["rows"], report.get("reference"))
    made = f" Made by `{report['command']}`." if "command" in report else ""
    parts = [
        "# One table left out at a time",
        "For every table the setting of least validation NRMSE on all other tables (geometric mean) is chosen, and its "
        f"test NRMSE on the table left out is reported. The reference is `{summary['reference']}`. Ratios are paired "
        "by seed; ± is one standard error of the seeds, the interval is that of Student's t over tables. The best "
        f"setting of a table is the one that its own test rows would choose, which nobody could know.{made}",
        f"All tables together choose `{summary['chosen']}`. Chosen without the table it is judged on, a setting errs "
        f"{_mean_sentence(summary['to_reference'])} as much as the reference, and {_mean_sentence(summary['to_best'])} "
        "as much as the best setting of each table.",
        table(
            ["table", "chosen", "NRMSE", "to the reference", "best", "to the best", "total", "seconds"],
            [
                [
                    line["table"],
                    line["config"],
                    f"{line['test']:.4f}",
                    _ratio(line["to_reference"]),
                    line["best"],
                    _ratio(line["to_best"]),
                    f"{line['pgr']:.3f}",
                    f"{line['seconds']:.1f}",
                ]
                for line in summary["tables"]
            ],
        ),
        "## Every setting, on all tables",
        table(
            ["setting", "test NRMSE to the reference", "interval", "chosen"],
            [
                [line["config"], *_mean_cells(line["to_reference"]), str(line["chosen"])]
                for line in sorted(summary["configs"], key=lambda line: line["to_reference"]["value"])
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _mean_sentence(mean: Report) -> str:
    interval = "" if mean["low"] is None else f" (95 % interval {_interval(mean['low'], mean['high'])})"
    return f"{mean['value']:.4f} times{interval}"


def _mean_cells(mean: Report | None) -> list[str]:
    if mean is None:
        return ["–", "–"]
    return [_with_error(mean["value"], mean["error"]), _interval(mean["low"], mean["high"])]


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.4f} to {high:.4f}"


def _with_error(value: float, error: float, digits: int = 4) -> str:
    """A number and its standard error; of a method that diverged, in powers of ten.

    >>> _with_error(1.25, 0.1), _with_error(2e20, 8e19)
    ('1.2500 ± 0.1000', '2e+20 ± 8e+19')
    """
    form = f".{digits}f" if abs(value) < _DIVERGED else ".0e"
    # A single seed has no error that anybody knows, and the reference none to itself.
    return f"{value:{form}} ± {error:{form}}" if error else f"{value:{form}}"


def _ratio(log: Report | None) -> str:
    """A ratio from its logarithm and the error of that.

    >>> _ratio({"value": 0.0, "error": 0.01, "p": 1.0})
    '1.0000 ± 0.0100'
    """
    if log is None:
        return "–"
    ratio = math.exp(log["value"])
    return _with_error(ratio, ratio * log["error"])
