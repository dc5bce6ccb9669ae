"""Tables of numbers as Markdown, for the pages that benchmarks write."""

from collections.abc import Sequence
from typing import Any


def cell(value: Any) -> str:
    """A cell as text: four digits of a float, separators in a large integer, nothing for no value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value).replace("|", "\\|")


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table whose columns of numbers are aligned to the right."""
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(columns))]
    lines = [
        f"| {' | '.join(columns)} |",
        f"| {' | '.join('--:' if number else ':--' for number in numeric)} |",
        *(f"| {' | '.join(cell(value) for value in row)} |" for row in rows),
    ]
    return "\n".join(lines)
