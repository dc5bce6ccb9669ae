"""One self-contained HTML page: nothing is loaded from anywhere, and every text is escaped here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from transun.report.theme import SCRIPT, STYLE

__all__ = ["Cell", "beside", "figure", "items", "number", "paragraph", "section", "share", "table", "whole_page"]


@dataclass(frozen=True)
class Cell:
    """What a cell shows, what it is sorted by (None: its text), a class for its look, and a small second line."""

    text: str
    value: float | None = None
    look: str = ""
    more: str = ""


def number(value: float) -> str:
    """A number for people: four digits, thousands apart.

    >>> [number(v) for v in (1234567.8, -0.12345, 12.0, math.nan, math.inf, 1e-7)]
    ['1,234,568', '−0.1235', '12', '–', '∞', '1e-07']
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", "−", 1) if value < 0 else text


def share(value: float, digits: int = 0) -> str:
    """A share in per cent.

    >>> share(0.123), share(0.123, 1)
    ('12 %', '12.3 %')
    """
    return f"{100 * value:.{digits}f} %" if math.isfinite(value) else number(value)


def whole_page(title: str, subtitle: str, body: str, footer: str) -> str:
    """The page; `body` is HTML, the rest is text."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">"
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{STYLE}</style></head><body>'
        f'<header><h1>{escape(title)}</h1><p class="sub">{escape(subtitle)}</p></header><main>{body}</main>'
        f"<footer>{escape(footer)}</footer><script>{SCRIPT}</script></body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A titled part of a page; the parts are HTML."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str, look: str = "") -> str:
    """A paragraph of text.

    >>> paragraph("a < b", "note")
    '<p class="note">a &lt; b</p>'
    """
    return f"<p{_class(look)}>{escape(text)}</p>"


def items(texts: Sequence[str]) -> str:
    """A list of texts."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def figure(picture: str, caption: str) -> str:
    """An inline SVG with a caption."""
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def beside(picture: str, other: str) -> str:
    """A figure and what belongs to it: side by side on a desk, one above the other on a phone."""
    return f'<div class="both">{picture}<div>{other}</div></div>'


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table that sorts when a column's title is clicked; it scrolls by itself where the page is narrow."""
    heads = "".join(f'<th scope="col"><button type="button">{escape(text)}</button></th>' for text in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: Cell) -> str:
    # What has no value is sorted below everything else.
    value = "" if cell.value is None else f' data-v="{_sortable(cell.value):.6g}"'
    more = f"<small>{escape(cell.more)}</small>" if cell.more else ""
    return f"<td{_class(cell.look)}{value}>{escape(cell.text)}{more}</td>"


def _sortable(value: float) -> float:
    return min(max(value, -1e300), 1e300) if not math.isnan(value) else -1e300


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""
