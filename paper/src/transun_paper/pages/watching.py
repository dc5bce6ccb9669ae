"""The page of simulated years of watching."""

from collections.abc import Mapping
from typing import Any

from transun.report.markdown import table, yes
from transun_paper.lab.watching import DELAY, HISTORY, ORDERS, SEGMENTS, WATCHED


def watching_page(report: Mapping[str, Any]) -> str:
    """Markdown of false alarms, of days until a change is found, and of what it is called."""
    days = [
        [
            f"{line['spread']:g}",
            f"{line['years']}",
            f"{line['days']:.0f}",
            f"{line['fixed_days']:.0f}",
            f"{line['ratio']:.2f}",
            f"{line['before_the_change']}",
        ]
        for line in report["found"]
    ]
    apart = [
        [kind, *(f"{counts[what]} of {counts['years']}" for what in WATCHED)]
        for kind, counts in report["apart"].items()
    ]
    parts = [
        "# Watching: simulated years",
        f"A day has about {ORDERS} orders of log-normal amounts in {len(SEGMENTS)} segments, whose labels arrive "
        f"{DELAY:g} days late on average. {HISTORY} days teach the delay and the spread, and a year is watched. Made "
        f"by `{report['command']}`.",
        table(
            ["claim", "holds", "evidence"],
            [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]],
        ),
        "## A change of 5 %",
        "All amounts are 5 % higher from a random day on. The fixed test is two-sided, of level 5 % and power 95 %; it "
        "knows the day of the change and the spread of daily totals, and looks once. The watch knows neither, and "
        "looks every day.",
        table(
            [
                "spread of ln(amount)",
                "years",
                "median days to the alarm",
                "days of the fixed test",
                "ratio",
                "alarms before",
            ],
            days,
        ),
        "## What a change is called",
        "Amounts or inputs grow by a fifth, or the delay doubles. Late labels lower what has arrived, so that a change "
        "of the delay raises the alarm of the total, too; the page of a watch says so.",
        table(["what changes", *WATCHED], apart),
    ]
    return "\n\n".join(parts) + "\n"
