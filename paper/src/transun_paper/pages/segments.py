"""The page of errors by segment, before and after multicalibration."""

import math
from collections.abc import Mapping
from typing import Any

from transun.report.markdown import table, yes
from transun_paper.board.segments import FEWEST_ROWS, MOST_NOISE


def segments_page(report: Mapping[str, Any]) -> str:
    """Markdown of the worst segments on the tables of numbers."""
    parts = [
        "# Right in every segment at once",
        "Two boosters on tables with fixed splits: LightGBM of ln(1 + y), whose totals are too low, and LightGBM by "
        "Poisson deviance. Their out-of-fold predictions of training and validation rows teach two corrections: "
        "`MulticalibratedRegressor`, and MCGrad with its defaults, whose correction is added and not multiplied. "
        "Segments are the values or ranges of every column and of every pair "
        f"of columns with at least {FEWEST_ROWS} test rows whose total chance moves by less than {MOST_NOISE:.0%}. "
        f"Made by `{report['command']}`.",
        table(
            ["claim", "holds", "evidence"],
            [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]],
        ),
        "Even a perfectly calibrated model has a worst segment among hundreds, by chance. How far off it is was "
        "simulated for each table: every test row gets its prediction times the ratio y/ŷ of a random row of about the "
        "same prediction, the ratios having a mean of 1, and the worst segment of the amounts so made is looked for "
        "400 times. “By chance” is its average, and the number after it is exceeded in 1 of 40 cases, so that one of "
        "the two limits, that of the error and that in standard errors, is exceeded in at most 1 of 20. Rows are taken "
        "to be independent: where several are of one household, chance does more than this.",
        "Ratios are weighted by ŷ^(2 - p); p = 1 and p = 1.5 are both learned for every result, and left-out rows of "
        "those that taught choose between them. The last column is the root mean square of all segments' errors in "
        "standard errors beyond what chance makes.",
        *_trial(report["trial"]),
        "Two rounds, p = 1 and then p = 1.5 of what is left, kept no second round where they were tried. The rule by "
        "which a correction is kept was chosen by validation rows too. Two things were decided when test rows had been "
        "seen, so that the numbers below are a little flattered. p = 1.5 alone, the first choice by validation rows, "
        "cost accuracy on bases of ln(1 + y); since then left-out rows choose the power of each fit. And where the "
        "squared error is too noisy to tell, the gain in deviance has to outweigh it: on imdb_votes (Poisson) a "
        "correction that left-out rows had confirmed made NRMSE worse. There no correction is kept, and its worst "
        "segment stays as it is. The total of dunnhumby_next4w is too low on test rows alone, which no earlier row can "
        "show.",
    ]
    if report["missing"]:
        parts.append(f"Not computed so far: {'; '.join(report['missing'])}.")
    for name in dict.fromkeys(entry["table"] for entry in report["entries"]):
        lines = [_line(entry) for entry in report["entries"] if entry["table"] == name]
        parts += [f"## {name}", table(_HEADER, lines)]
    return "\n\n".join(parts) + "\n"


_POWERS = ("p = 1", "p = 1.5", "p = 2")
_HEADER = [
    "base, method",
    "NRMSE",
    "PGR",
    "segments",
    "worst",
    "by chance",
    "in standard errors",
    "by chance",
    "beyond chance",
]


def _trial(trial: Mapping[str, Any]) -> list[str]:
    """How powers were tried on validation rows: how it was measured, the numbers, and what they say."""
    entries = trial["entries"]
    header = ["table, base", "worst before", *_POWERS, *(f"NRMSE, {power}" for power in _POWERS)]
    lines = [
        [
            f"{entry['table']}, {entry['base']}",
            *(_number(entry["worst"].get(power), 3) for power in ("before", *_POWERS)),
            *(_change(entry["NRMSE"].get(power)) for power in _POWERS),
        ]
        for entry in entries
    ]
    first, second, third = _POWERS
    counts = []
    for base in dict.fromkeys(entry["base"] for entry in entries):
        worst = [entry["worst"] for entry in entries if entry["base"] == base]
        smaller = sum(each[second] < each[first] for each in worst)
        counts.append(f"on {smaller} of {len(worst)} tables with the base {base}")
    errors = [entry["NRMSE"] for entry in entries if third in entry["NRMSE"]]
    return [
        f"Which powers are learned was decided by validation rows. {trial['how']}",
        table(header, lines),
        f"The worst segment is smaller with {second} than with {first} {' and '.join(counts)}: neither is better "
        f"everywhere, so that both are learned. With {third} NRMSE is higher than with {second} on "
        f"{sum(each[third] > each[second] for each in errors)} of {len(errors)}: it spoils the largest amounts.",
    ]


def _change(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:+.1f} %"


def _line(entry: Mapping[str, Any]) -> list[str]:
    segments = entry["segments"]
    kept = " (not kept)" if entry["details"].startswith("not") else ""
    return [
        f"{entry['base']}, {entry['method']}{kept}",
        f"{entry['NRMSE']:.4f}",
        f"{entry['PGR']:.3f}",
        f"{segments['count']:.0f}",
        _number(segments["worst"], 3),
        _by_chance(segments, "", 3),
        _number(segments["worst_errors"], 1),
        _by_chance(segments, "_errors", 1),
        _number(segments["excess"], 2),
    ]


def _by_chance(segments: Mapping[str, float], unit: str, digits: int) -> str:
    """What chance makes the worst on average, and in 1 of 40 cases; not simulated for every rival."""
    ends = [_number(segments.get(f"{name}{unit}"), digits) for name in ("chance", "limit")]
    return ", ".join(dict.fromkeys(ends))


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"
