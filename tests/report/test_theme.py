"""Pages in the reader's language of numbers, in a real browser."""

import pytest

from transun.report.document import Cell, Code, Document, Paragraph, Table
from transun.report.formatting import Unit, number, ratio, share
from transun.report.svg import Canvas

NARROW, WIDE = "\u202f", "\u00a0"  # the spaces that French puts between thousands and before a unit
# By the Unicode CLDR: 1,234,567; −0.500; 12.3 %; −€1,234; $0.25.
LANGUAGES = {
    "en-US": ["1,234,567", "−0.500", "12.3 %", "−€1,234", "$0.25"],
    "de-DE": ["1.234.567", "−0,500", "12,3 %", f"−1.234{WIDE}€", f"0,25{WIDE}$"],
    "fr-FR": [f"1{NARROW}234{NARROW}567", "−0,500", "12,3 %", f"−1{NARROW}234{WIDE}€", f"0,25{WIDE}$"],
    "en-IN": ["12,34,567", "−0.500", "12.3 %", "−€1,234", "$0.25"],
    "ar-EG": ["1,234,567", "−0.500", "12.3 %"],
}
VERBATIM = ("transun 0.2.0", "v1.5", "in 2024 of 31", "orders/1.5.csv")


def shown(browser, tmp_path, document, locale):
    path = tmp_path / "page.html"
    path.write_text(document.html(), encoding="utf-8")
    browser.open(path, 1280, "light", locale)
    assert browser.problems == []
    return browser.run("[...document.querySelectorAll('main p, main td, main text')].map(e => e.textContent)")


@pytest.mark.parametrize("locale", LANGUAGES)
def test_numbers_have_the_marks_of_the_reader(browser, tmp_path, locale):
    texts = [number(1_234_567.0), ratio(-0.5), share(0.123, 1), Unit("€").amount(-1234.0), Unit("$").amount(0.25)]
    expected = LANGUAGES[locale]
    document = Document("t", "s", [Paragraph([text]) for text in texts[: len(expected)]], [])
    assert shown(browser, tmp_path, document, locale) == expected


def test_charts_and_cells_have_them_and_names_do_not(browser, tmp_path):
    canvas = Canvas(40.0, "a chart")
    canvas.text(10.0, 10.0, "1.5k")
    canvas.text(10.0, 20.0, "12.05", style="name")
    table = Table(["name", "value"], [[Cell("12.05"), Cell("0.25 to 1,000.5", 0.25)]])
    document = Document("t", "s", [Paragraph([Code("abs(tre) <= 0.02")]), table, Drawn(canvas.svg())], [])
    assert shown(browser, tmp_path, document, "de-DE") == [
        "abs(tre) <= 0.02",
        "12.05",
        "0,25 to 1.000,5",
        "1,5k",
        "12.05",
    ]


def test_what_is_no_number_of_ours_stays(browser, tmp_path):
    document = Document("t", "s", [Paragraph([text]) for text in VERBATIM], [])
    assert shown(browser, tmp_path, document, "de-DE") == list(VERBATIM)


class Drawn:
    """A picture alone, as a block."""

    def __init__(self, svg):
        self.html = lambda: svg
