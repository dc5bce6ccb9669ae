"""Docstrings as reStructuredText, which autodoc expects.

Ours are plain text with code between backticks, formulas in Unicode, indented formulas and sections such as `Args:`.
What reStructuredText would take for markup in a formula, |u| or a*b or a name_ with an underscore, is escaped here; an
indented block becomes a literal one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

# Sections that napoleon understands; their lines are indented, and are not formulas.
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note|Notes):$")
# `code` and ``code`` are left alone; what is between them is escaped.
_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_MARKUP = re.compile(r"([*|\\]|_(?=\W|$))")
# The name of an argument at the beginning of its description.
_ARGUMENT = re.compile(r"^(\s+\w+:)(.*)$")


def process_docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring by reStructuredText, in place, as the event of autodoc asks."""
    lines[:] = restructured(lines)


def skip_foreign_members(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what another library adds to a class of ours, such as the `set_fit_request` of scikit-learn."""
    return None if getattr(value, "__module__", "transun").startswith("transun") else True


def restructured(lines: Sequence[str]) -> list[str]:
    r"""The lines of a docstring as reStructuredText.

    >>> restructured(["The size |u| of `a_` is", "", "    x*y", "", "Args:", "    u: the |u|."])
    ['The size \\|u\\| of `a_` is', '', '', '::', '', '    x*y', '', 'Args:', '    u: the \\|u\\|.']
    """
    return list(_lines(lines))


def _lines(lines: Sequence[str]) -> Iterator[str]:
    in_section = in_example = in_block = False
    for line in lines:
        indented = line.startswith("    ")
        if not line.strip():
            in_example = False
            yield line
            continue
        if line.lstrip().startswith(">>>"):
            in_example = True
        if in_example:
            yield line
            continue
        if not indented:
            in_section, in_block = bool(_SECTION.match(line)), False
            yield line if in_section else _escaped(line)
        elif in_section:
            argument = _ARGUMENT.match(line)
            yield f"{argument[1]}{_escaped(argument[2])}" if argument else _escaped(line)
        else:
            if not in_block:
                yield from ("", "::", "")
                in_block = True
            yield line


def _escaped(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(part if index % 2 else _MARKUP.sub(r"\\\1", part) for index, part in enumerate(parts))
