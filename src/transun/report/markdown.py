"""Markdown from text."""

from collections.abc import Collection, Sequence

from transun.report.formatting import visible_line

__all__ = ["escape", "table", "yes"]

# As entities, which mean the character itself wherever they stand, in tables and outside.
_SPECIAL = {char: f"&#{ord(char)};" for char in "&<>`*_[]\\~#"}


def escape(text: str) -> str:
    """Text with nothing in it that Markdown or HTML would act on.

    >>> escape("<b>*x*")
    '&#60;b&#62;&#42;x&#42;'
    """
    return "".join(_SPECIAL.get(char, char) for char in visible_line(text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[str] = ()) -> str:
    """A Markdown table, first column to the left, numbers to the right.

    Args:
        header: names of columns.
        rows: the cells.
        texts: names of further columns that hold text, which is to the left as well.

    >>> print(table(["method", "TRE"], [["LogSUN", "0.01"]]))
    | method | TRE |
    | :-- | --: |
    | LogSUN | 0.01 |

    """
    sides = [":--", *(":--" if name in texts else "--:" for name in header[1:])]
    lines = [header, sides, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def yes(holds: bool) -> str:
    """The answer to a claim.

    >>> yes(True)
    'yes'
    """
    return "yes" if holds else "**no**"
