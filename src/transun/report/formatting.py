"""Numbers and texts as people and programs read them: rounded numbers, harmless texts from the data, plain JSON."""

import json
import math
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

__all__ = [
    "Unit",
    "as_json",
    "number",
    "p_value_text",
    "ratio",
    "sentence",
    "share",
    "signed",
    "visible",
    "visible_line",
]

_LONGEST = 80


def number(value: float) -> str:
    """A number in four digits, thousands apart.

    >>> [number(v) for v in (1234567.8, -0.12345, 12.0, math.nan, math.inf, 1e-7)]
    ['1,234,568', '−0.1235', '12', '–', '∞', '1e-07']
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", "−", 1) if value < 0 else text


@dataclass(frozen=True)
class Unit:
    """The unit of the amounts on a page: a sign such as € stands before a number, a word such as EUR behind it.

    >>> Unit("€").amount(-1234.0), Unit("seconds").amount(1234.0), Unit().amount(1234.0)
    ('−€1,234', '1,234 seconds', '1,234')
    >>> Unit("EUR").title("gmv"), Unit().title("gmv")
    ('gmv in EUR', 'gmv')
    """

    name: str = ""

    def amount(self, value: float) -> str:
        """A number with the unit, as `number` shows it."""
        text = number(value)
        if not self.name or not math.isfinite(value):
            return text
        if len(self.name) == 1 and not self.name.isalpha():
            return f"−{self.name}{text[1:]}" if value < 0 else f"{self.name}{text}"
        return f"{text} {self.name}"

    def title(self, text: str) -> str:
        """The title of an axis or a column whose numbers have the unit."""
        return f"{text} in {self.name}" if self.name else text


def share(value: float, digits: int = 0) -> str:
    """A share in per cent.

    >>> share(0.123), share(0.123, 1)
    ('12 %', '12.3 %')
    """
    return f"{100 * value:.{digits}f} %" if math.isfinite(value) else number(value)


def ratio(value: float) -> str:
    """A ratio or a relative error, with three decimals.

    >>> ratio(0.98765), ratio(-0.5)
    ('0.988', '−0.500')
    """
    return f"{value:.3f}".replace("-", "−") if math.isfinite(value) else number(value)


def signed(value: float, digits: int = 3) -> str:
    """A number whose sign matters.

    >>> signed(0.25), signed(-0.25, 1)
    ('+0.250', '−0.2')
    """
    return f"{value:+.{digits}f}".replace("-", "−") if math.isfinite(value) else number(value)


def p_value_text(probability: float) -> str:
    """A p-value.

    >>> p_value_text(0.25), p_value_text(1e-9), p_value_text(math.nan)
    ('0.250', '< 0.001', '–')
    """
    if math.isnan(probability):
        return number(probability)
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"


def sentence(text: str) -> str:
    """The text with a capital and a full stop.

    >>> sentence("not biased")
    'Not biased.'
    """
    return f"{text[0].upper()}{text[1:]}."


def visible(text: str) -> str:
    r"""A name from the data, fit to be shown: without control characters, and at most 80 characters long.

    >>> visible("a\x1b[31mb\n")
    'a�[31mb�'
    """
    clean = visible_line(text)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def visible_line(text: str) -> str:
    """A sentence that may quote the data, of any length: without control characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def as_json(value: Any, indent: int | None = None) -> str:
    """Results as JSON; a number that is not finite is null, since JSON has no name for it.

    >>> as_json({"a": (1.0, math.nan)})
    '{"a": [1.0, null]}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, indent=indent)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(part) for key, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case float() if not math.isfinite(value):
            return None
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    return value
