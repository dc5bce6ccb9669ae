"""Markdown from rows of text."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, first column to the left, numbers to the right.

    >>> print(table(["method", "TRE"], [["LogSUN", "0.01"]]))
    | method | TRE |
    | :-- | --: |
    | LogSUN | 0.01 |
    """
    lines = [header, [":--", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def yes(holds: bool) -> str:
    """A claim's answer.

    >>> yes(True)
    'yes'
    """
    return "yes" if holds else "**no**"
