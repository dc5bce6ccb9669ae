"""What the theme would squeeze: numbers with their errors, sentences in wide tables, and charts of several panels."""

import re
from typing import Any

# No line may end at the spaces within 0.04 ± 0.02 and 0.9 to 1.1, nor before a mark behind a number.
_BETWEEN = re.compile(r"(?<=[\d%]) (±|to) (?=[-+−]?\d)")
_BEFORE_A_MARK = re.compile(r"(?<=\d) (?=[%*†‡])")
_NO_BREAK = "\N{NO-BREAK SPACE}"
# Characters from which on a cell is a sentence, which the theme would set one word a line where a table is wide.
_SENTENCE = 30


def keep_numbers_together(text: str) -> str:
    r"""The text of a cell with spaces within a number at which no line ends.

    >>> keep_numbers_together("0.94 ± 0.02 (12 tables)").split(" ")
    ['0.94\xa0±\xa00.02', '(12', 'tables)']
    >>> [keep_numbers_together(text).count("\xa0") for text in ("-0.1 to -0.2 *", "5 % ± 1 %", "1 and 2", "a ± b")]
    [3, 4, 0, 0]
    """
    return _BEFORE_A_MARK.sub(_NO_BREAK, _BETWEEN.sub(rf"{_NO_BREAK}\1{_NO_BREAK}", text))


def make_readable(app: Any, page: Any, name: str) -> None:
    """Change a page before it is written, as the event `doctree-resolved` of Sphinx asks; CSS sizes the classes."""
    from docutils import nodes

    for cell in page.findall(nodes.entry):
        for text in list(cell.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.literal):
                text.parent.replace(text, nodes.Text(keep_numbers_together(text)))
        if len(cell.astext()) >= _SENTENCE:
            cell["classes"].append("sentence")
    if name.startswith("generated/evidence/"):
        for image in page.findall(nodes.image):
            image["classes"].append("chart")
