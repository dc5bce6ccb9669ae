"""The page of simulated A/B tests: whether they keep their word."""

from collections.abc import Mapping
from typing import Any

from transun.report.markdown import table, yes


def validity_page(report: Mapping[str, Any]) -> str:
    """Markdown of the tests of equal arms, of known effects, and of those that were looked at often."""
    entries = report["entries"]
    rows = [
        [
            entry["world"],
            *[f"{shares['significant']:.1%}" for shares in entry["outcomes"].values()],
            *[f"{shares['covered']:.1%}" for shares in entry["outcomes"].values()],
            f"{entry['looks']['one look']:.1%}",
            f"{entry['looks']['always valid']:.1%}",
            f"{entry['detectable']:+.1%}",
            f"{entry['found']:.1%}",
        ]
        for entry in entries
    ]
    header = [
        "world",
        "GMV, p < 0.05",
        "GMVPI, p < 0.05",
        "GMV covered",
        "GMVPI covered",
        "missed, one look",
        "missed, always valid",
        "planned change",
        "found",
    ]
    held = sum(claim["holds"] for claim in report["claims"])
    parts = [
        "# Do A/B tests keep their word on heavy tails?",
        f"{held} of {len(report['claims'])} promises hold. In every world {report['tests']:,} tests are simulated, of "
        f"{report['users']:,} users in arms of 20 and 15 parts, and analysed by the code of `transun abtest`, uncapped "
        "and adjusted by the value of the time before. Both arms are equal, so that the true change is 0. Values have "
        "a taste that lasts (log-normal, σ = 0.8) and noise: log-normal with σ = 1.2; 70 % zeros and log-normal with "
        "σ = 1; Pareto with index 2.5, and with 1.5, where the variance is infinite. Made by "
        f"`{report['command']}`.",
        table(header, rows),
        "Columns: tests of equal arms with p < 0.05; 95 % intervals that hold the true change; tests in which an "
        "interval excludes the truth at one look of five or more; a change for which the plan promises a power of "
        "80 %, and the share of tests of the planned size that found it.",
        "## The promises",
        table(
            ["promise", "holds", "evidence"],
            [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]],
        ),
        "Where the variance is infinite there is no standard error to estimate: the largest user decides, in the mean "
        "as in its error. `transun abtest` says so of such a log, and shows capped values beside.",
    ]
    return "\n\n".join(parts) + "\n"
