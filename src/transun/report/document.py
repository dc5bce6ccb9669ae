"""A report as a document of sections, rendered to HTML, Markdown and the terminal.

A report builds one `Document`; the three renderings below are the only places that know how a page is written, and
`_html` the only place that escapes HTML. A block is a paragraph, a list, a table, a figure and so on; it renders itself
in three ways:

    html()      HTML; every text is escaped.
    markdown()  Markdown; every text is escaped. A figure is left out, as its numbers are in a table.
    terminal()  printed to a `rich` console.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape as _html
from typing import TYPE_CHECKING, Protocol

import transun
from transun.report import markdown
from transun.report.formatting import sentence, visible_line
from transun.report.theme import SCRIPT, STYLE

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Block",
    "Cell",
    "Chart",
    "Code",
    "Document",
    "Facts",
    "Figure",
    "Gallery",
    "Glossary",
    "Items",
    "Paragraph",
    "Section",
    "Strong",
    "Table",
    "Tables",
    "VerdictBox",
]


class Block(Protocol):
    """A part of a document."""

    def html(self) -> str:
        """The block as HTML."""

    def markdown(self) -> str:
        """The block as Markdown; empty if it has nothing to show there."""

    def terminal(self, console: "Console") -> None:
        """Print the block."""


@dataclass(frozen=True)
class Strong:
    """Emphasised words in a paragraph."""

    text: str

    def html(self) -> str:
        """The words in <strong>."""
        return f"<strong>{_text(self.text)}</strong>"

    def markdown(self) -> str:
        """The words between stars."""
        return f"**{markdown.escape(self.text)}**"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Code:
    """Code in a paragraph, which never comes from the data."""

    text: str

    def html(self) -> str:
        """The code in <code>."""
        return f"<code>{_text(self.text)}</code>"

    def markdown(self) -> str:
        """The code between backticks."""
        return f"`{self.text}`"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Paragraph:
    """Sentences, with emphasised words and code among them; `style` is a class of the style sheet.

    >>> Paragraph(("a < b in ", Code("x"))).html(), Paragraph(("a < b in ", Code("x"))).markdown()
    ('<p>a &lt; b in <code>x</code></p>', 'a &#60; b in `x`')
    """

    parts: Sequence[str | Strong | Code]
    style: str = ""

    def html(self) -> str:
        """A <p>."""
        inner = "".join(_text(part) if isinstance(part, str) else part.html() for part in self.parts)
        return f"<p{_class(self.style)}>{inner}</p>"

    def markdown(self) -> str:
        """A line of text."""
        return "".join(markdown.escape(part) if isinstance(part, str) else part.markdown() for part in self.parts)

    def terminal(self, console: "Console") -> None:
        """A line of text."""
        _print_lines(console, "".join(map(str, self.parts)))


@dataclass(frozen=True)
class Items:
    """A list of sentences, with a heading if there is one."""

    texts: Sequence[str]
    heading: str = ""

    def html(self) -> str:
        """A <ul>."""
        heading = f"<h3>{_text(self.heading)}</h3>" if self.heading else ""
        return f"{heading}<ul>{''.join(f'<li>{_text(text)}</li>' for text in self.texts)}</ul>"

    def markdown(self) -> str:
        """A list with dashes."""
        lines = "\n".join(f"- {markdown.escape(text)}" for text in self.texts)
        return f"### {self.heading}\n\n{lines}" if self.heading else lines

    def terminal(self, console: "Console") -> None:
        """One line per sentence."""
        _print_lines(console, "\n".join(self.texts))


@dataclass(frozen=True)
class VerdictBox:
    """The verdict: a sentence in a box with a label, whose colour says at a glance whether it is good news.

    Args:
        tone: "good", "warn", "bad", or "neutral" where nothing is known.
        label: the verdict in a word or three.
        text: the verdict in a sentence.

    """

    tone: str
    label: str
    text: str

    def html(self) -> str:
        """A box in the colour of the tone."""
        return f'<div class="verdict {self.tone}"><b>{_text(self.label)}</b>{_text(self.text)}</div>'

    def markdown(self) -> str:
        """Label and sentence, emphasised."""
        return f"**{markdown.escape(self._line())}**"

    def terminal(self, console: "Console") -> None:
        """Label and sentence."""
        _print_lines(console, self._line())

    def _line(self) -> str:
        return f"{self.label.upper()}: {self.text}"


@dataclass(frozen=True)
class Facts:
    """The few numbers to read first: title, value and a smaller second line, which may be empty."""

    facts: Sequence[tuple[str, str, str]]

    def html(self) -> str:
        """One card per number."""
        cards = "".join(
            f"<div><dt>{_text(title)}</dt><dd>{_text(value)}<small>{_text(more)}</small></dd></div>"
            for title, value, more in self.facts
        )
        return f'<dl class="facts">{cards}</dl>'

    def markdown(self) -> str:
        """One sentence."""
        return markdown.escape(self._sentence())

    def terminal(self, console: "Console") -> None:
        """One sentence."""
        _print_lines(console, self._sentence())

    def _sentence(self) -> str:
        facts = [f"{title} {value}" + (f" ({more})" if more else "") for title, value, more in self.facts]
        return sentence(", ".join(facts))


@dataclass(frozen=True)
class Cell:
    """A cell: its text, the number to sort by (None: by the text), a class of the style sheet, and a second line."""

    text: str
    value: float | None = None
    style: str = ""
    more: str = ""

    def html(self) -> str:
        """A <td>; a cell without a number sorts below all numbers, and its text is shown as it is in any language."""
        sort = ' translate="no"' if self.value is None else f' data-v="{_sortable(self.value):.6g}"'
        more = f"<small>{_text(self.more)}</small>" if self.more else ""
        return f"<td{_class(self.style)}{sort}>{_text(self.text)}{more}</td>"

    def lines(self) -> str:
        """The text, and in a second line what is `more`."""
        return "\n".join(visible_line(line) for line in (self.text, self.more) if line)

    def line(self) -> str:
        """Both lines as one: `text (more)`."""
        return f"{self.text} ({self.more})" if self.more else self.text


@dataclass(frozen=True)
class Table:
    """A table of cells.

    Attributes:
        header: titles of the columns.
        rows: cells, as many in each row as there are columns.
        narrow: how many columns a terminal shows, from the left; None shows all.

    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    narrow: int | None = None

    def html(self) -> str:
        """A table that is sorted by a click on a title, and scrolls by itself where the page is narrow."""
        heads = "".join(f'<th scope="col"><button type="button">{_text(title)}</button></th>' for title in self.header)
        body = "".join(f"<tr>{''.join(cell.html() for cell in row)}</tr>" for row in self.rows)
        return (
            f'<div class="scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody>'
            "</table></div>"
        )

    def markdown(self) -> str:
        """A Markdown table, each cell in one line."""
        rows = [[markdown.escape(cell.line()) for cell in row] for row in self.rows]
        return markdown.table([markdown.escape(title) for title in self.header], rows)

    def terminal(self, console: "Console") -> None:
        """A table with two lines in a cell where it has two, so that it fits into 80 columns."""
        from rich.table import Column
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(*[Column(Text(visible_line(title))) for title in self.header[: self.narrow]])
        for row in self.rows:
            table.add_row(*[Text(cell.lines()) for cell in row[: self.narrow]])
        console.print(table)


@dataclass(frozen=True)
class Tables:
    """Several small tables, side by side on a wide page."""

    tables: Sequence[Table]

    def html(self) -> str:
        """A grid of tables."""
        return f'<div class="pair">{"".join(f"<div>{table.html()}</div>" for table in self.tables)}</div>'

    def markdown(self) -> str:
        """One table below the other."""
        return "\n\n".join(table.markdown() for table in self.tables)

    def terminal(self, console: "Console") -> None:
        """One table below the other."""
        for table in self.tables:
            table.terminal(console)


@dataclass(frozen=True)
class Figure:
    """A picture as SVG with a caption; `file` is its name if it is also written to a file beside the Markdown page."""

    svg: str
    caption: str
    file: str = ""

    def html(self) -> str:
        """The SVG inline."""
        return f"<figure>{self.svg}<figcaption>{_text(self.caption)}</figcaption></figure>"

    def markdown(self) -> str:
        """A link to the file; nothing if there is no file."""
        return f"![{markdown.escape(self.caption)}]({self.file})" if self.file else ""

    def terminal(self, console: "Console") -> None:
        """The caption."""
        _print_lines(console, self.caption)


@dataclass(frozen=True)
class Chart:
    """Figures beside the table of their numbers; on a narrow page above it."""

    figures: Sequence[Figure]
    table: Table

    def html(self) -> str:
        """The figures at the left and the table at the right."""
        return f'<div class="both"><div>{_figures(self.figures)}</div><div>{self.table.html()}</div></div>'

    def markdown(self) -> str:
        """The table."""
        return self.table.markdown()

    def terminal(self, console: "Console") -> None:
        """The table."""
        self.table.terminal(console)


@dataclass(frozen=True)
class Gallery:
    """Several figures that fill the width of the page, and the tables of their numbers by title, folded below them."""

    figures: Sequence[Figure]
    tables: Mapping[str, Table]

    def html(self) -> str:
        """A grid of figures; a click on a title unfolds its table."""
        tables = "".join(
            f"<details><summary>{_text(title)}</summary>{table.html()}</details>"
            for title, table in self.tables.items()
        )
        return f'<div class="pair">{_figures(self.figures)}</div>{tables}'

    def markdown(self) -> str:
        """The tables, each under its title."""
        return "\n\n".join(
            f"### {markdown.escape(title)}\n\n{table.markdown()}" for title, table in self.tables.items()
        )

    def terminal(self, console: "Console") -> None:
        """The tables."""
        for table in self.tables.values():
            table.terminal(console)


@dataclass(frozen=True)
class Glossary:
    """Terms and their meanings."""

    entries: Mapping[str, str]

    def html(self) -> str:
        """A <dl>."""
        entries = "".join(f"<dt>{_text(term)}</dt><dd>{_text(text)}</dd>" for term, text in self.entries.items())
        return f'<dl class="words">{entries}</dl>'

    def markdown(self) -> str:
        """A list of terms."""
        return "\n".join(
            f"- **{markdown.escape(term)}**: {markdown.escape(text)}" for term, text in self.entries.items()
        )

    def terminal(self, console: "Console") -> None:
        """One line per term."""
        _print_lines(console, "\n".join(f"{term}: {text}" for term, text in self.entries.items()))


@dataclass(frozen=True)
class Section:
    """A titled part of a document."""

    title: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """The section with its title."""
        return f"<section><h2>{_text(self.title)}</h2>{''.join(block.html() for block in self.blocks)}</section>"

    def markdown(self) -> str:
        """The section with its title."""
        texts = [block.markdown() for block in self.blocks]
        return "\n\n".join([f"## {markdown.escape(self.title)}", *filter(None, texts)])


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: of the report.
        subtitle: which rows and columns it is about.
        opening: blocks before the first section.
        sections: the report.
        brief: the blocks that a terminal shows; the files have the rest.
        command: that made the report, such as `transun diagnose`.

    """

    title: str
    subtitle: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    brief: Sequence[Block] = ()
    command: str = ""

    def html(self) -> str:
        """One self-contained page: it loads nothing from anywhere."""
        body = "".join([*(block.html() for block in self.opening), *(section.html() for section in self.sections)])
        footer = f"{self._made_by(self.command)} This page loads nothing from anywhere."
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; img-src data:\">"
            f'<link rel="icon" href="data:,"><title>{_text(self.title)}</title><style>{STYLE}</style></head><body>'
            f'<header><h1>{_text(self.title)}</h1><p class="sub">{_text(self.subtitle)}</p></header>'
            f"<main>{body}</main><footer>{_text(footer)}</footer><script>{SCRIPT}</script></body></html>\n"
        )

    def inline(self) -> str:
        """The page in a frame, for the output of a notebook cell: neither the page nor the notebook changes the other.

        >>> Document("Title", "rows", [], []).inline()[:44]
        '<iframe title="Title" srcdoc="&lt;!doctype h'
        """
        style = "width: 100%; height: 36rem; border: 1px solid #8888; border-radius: 4px"
        return (
            f'<iframe title="{_text(self.title)}" srcdoc="{_html(self.html())}" sandbox="allow-scripts" '
            f'style="{style}"></iframe>'
        )

    def markdown(self) -> str:
        """The content of the page without its pictures."""
        parts = [f"# {markdown.escape(self.title)}", markdown.escape(self.subtitle)]
        parts += [block.markdown() for block in self.opening]
        parts += [section.markdown() for section in self.sections]
        parts.append(self._made_by(f"`{self.command}`" if self.command else ""))
        return "\n\n".join(filter(None, parts)) + "\n"

    def _made_by(self, command: str) -> str:
        return f"Made by transun {transun.__version__}{f', {command}' if command else ''}."


def _text(text: str) -> str:
    """The one place where text becomes HTML: escaped, without control characters."""
    return _html(visible_line(text))


def _print_lines(console: "Console", text: str) -> None:
    """Print text, whose lines are not wrapped and whose brackets are not markup."""
    clean = "\n".join(map(visible_line, text.split("\n")))
    console.print(clean, soft_wrap=True, markup=False, highlight=False, emoji=False)


def _figures(figures: Sequence[Figure]) -> str:
    """The figures that have a picture: a chart of nothing has none."""
    return "".join(figure.html() for figure in figures if figure.svg)


def _sortable(value: float) -> float:
    return min(max(value, -1e300), 1e300) if not math.isnan(value) else -1e300


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""
