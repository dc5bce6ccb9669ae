"""A block says the same in HTML, in Markdown and on a terminal, and text from the data does nothing in any of them."""

import io

import pytest
from rich.console import Console

from pages import Collector
from transun.report.document import (
    Cell,
    Chart,
    Code,
    Document,
    Facts,
    Figure,
    Gallery,
    Glossary,
    Items,
    Paragraph,
    Section,
    Strong,
    Table,
    Tables,
    VerdictBox,
)

HOSTILE = "<b>[bold]*x*|\x1b[31m`y`"
TABLE = Table(["name", HOSTILE], [[Cell(HOSTILE, more="1 to 2"), Cell("0.5", 0.5)]])
BLOCKS = {
    "paragraph": Paragraph([HOSTILE, Strong(HOSTILE), Code("f(1)")]),
    "items": Items([HOSTILE], "heading"),
    "verdict": VerdictBox("bad", "biased", HOSTILE),
    "facts": Facts([(HOSTILE, "1", ""), ("b", HOSTILE, "more")]),
    "table": TABLE,
    "tables": Tables([TABLE, TABLE]),
    "chart": Chart([Figure("<svg></svg>", HOSTILE)], TABLE),
    "gallery": Gallery([Figure("<svg></svg>", HOSTILE)], {"first": TABLE, "second": TABLE}),
    "glossary": Glossary({HOSTILE: "meaning"}),
}


def printed(block, width=80):
    console = Console(file=io.StringIO(), width=width)
    block.terminal(console)
    return console.file.getvalue()


@pytest.mark.parametrize("name", BLOCKS)
def test_text_from_the_data_does_nothing(name):
    block = BLOCKS[name]
    page = Collector.read(block.html())
    # The label of a verdict is the only <b> that we write.
    assert page.count("b") == (name == "verdict")
    assert "\x1b" not in block.html() + block.markdown() + printed(block)
    for special in ("<b>", "*x*", "`y`"):
        assert special not in block.markdown()
    shown = page.text + printed(block)
    assert "<b>[bold]*x*" in shown.replace("\n", "")


@pytest.mark.parametrize("name", BLOCKS)
def test_every_rendering_has_the_content(name):
    for text in (BLOCKS[name].html(), BLOCKS[name].markdown(), printed(BLOCKS[name])):
        assert text.strip()


def test_a_document_has_its_parts_in_order():
    document = Document(
        "title", "subtitle", [Paragraph(["opening"])], [Section("first", [TABLE]), Section("second", [])], command="cmd"
    )
    page = Collector.read(document.html().split("<body>")[1].split("<script>")[0])
    for text in (page.text, document.markdown()):
        places = [text.index(part) for part in ("title", "subtitle", "opening", "first", "0.5", "second", "Made by")]
        assert places == sorted(places)
    assert page.count("h2") == 2
    assert document.markdown().count("\n## ") == 2


def test_a_terminal_shows_the_first_columns_of_a_wide_table():
    table = Table(["a", "b", "c"], [[Cell("1"), Cell("2"), Cell("3")]], narrow=2)
    assert "3" not in printed(table)
    assert "3" in table.html()
    assert "3" in table.markdown()


def test_lines_are_not_wrapped_on_a_terminal():
    """A script that reads the output finds a sentence in one line."""
    assert printed(Paragraph(["word " * 50]), width=40).count("\n") == 1


def test_a_bar_in_a_name_opens_no_cell():
    header, _, row = Table(["a|b", "c"], [[Cell("d|e"), Cell("1")]]).markdown().splitlines()
    assert header.replace("\\|", "").count("|") == row.replace("\\|", "").count("|") == 3


def test_a_cell_without_a_number_sorts_below_all_numbers():
    assert 'data-v="-1e+300"' in Cell("–", float("nan")).html()
    assert 'data-v="1e+300"' in Cell("∞", float("inf")).html()
    assert "data-v" not in Cell("text").html()


def test_a_picture_with_a_file_is_linked_in_markdown():
    assert Figure("<svg/>", "caption", "a.svg").markdown() == "![caption](a.svg)"
    assert Figure("<svg/>", "caption").markdown() == ""
