"""Numbers and truth values that are written as text, as in a CSV file, and how to tell them from other text."""

from typing import TYPE_CHECKING, Any

from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WRITE_NUMBERS", "as_booleans", "as_fractions", "as_integers", "looks_numeric", "no_null_texts"]

WRITE_NUMBERS = "write numbers as 1234.5, without currency, unit or thousands mark"
"""What to do about amounts such as €1,234.50, which are text."""

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_DECIMAL_COMMA = r"^\s*[+-]?\d+(,\d+)?\s*$"
# 1,234 is 1234 where a comma separates thousands, and 1.234 where it is a decimal comma.
_AMBIGUOUS = r"^\s*[+-]?\d{1,3}(,\d{3})?\s*$"


def no_null_texts(text: "pa.Array") -> "pa.Array":
    """Text without blanks around it, null where it is what programs write for a missing number.

    These are the texts that pyarrow takes for missing where it guesses that a CSV column holds numbers. In a column of
    text they are text: NA is Namibia.

    >>> import pyarrow
    >>> no_null_texts(pyarrow.array([" 7", "NaN", "", "a"], pyarrow.large_string())).to_pylist()
    ['7', None, None, 'a']
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    text = compute.utf8_trim_whitespace(text)
    nulls = pa.array(need("pyarrow.csv").ConvertOptions().null_values, pa.large_string())
    return compute.if_else(compute.is_in(text, value_set=nulls), None, text)


def as_integers(text: "pa.Array") -> "pa.Array | None":
    """Text as int64, or None where a text is no such number."""
    return _cast(text, need("pyarrow").int64())


def as_fractions(text: "pa.Array") -> "pa.Array | None":
    """Text as float64, or None where a text is no number; a comma is a decimal comma if that is the only reading.

    >>> import pyarrow
    >>> as_fractions(pyarrow.array(["1,5", "1,234"])).to_pylist(), as_fractions(pyarrow.array(["1,234"]))
    ([1.5, 1.234], None)
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    numbers = _cast(text, pa.float64())
    if numbers is None and _all(text, _DECIMAL_COMMA) and not _all(text, _AMBIGUOUS):
        numbers = _cast(compute.replace_substring(text, ",", "."), pa.float64())
    return numbers


def as_booleans(text: "pa.Array") -> "pa.Array":
    """Text as booleans: true, 1, false and 0 in any case; null for other text.

    >>> import pyarrow
    >>> as_booleans(pyarrow.array(["TRUE", "0", "perhaps"])).to_pylist()
    [True, False, None]
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    lower = compute.cast(compute.utf8_lower(text), pa.large_string())

    def among(*words: str) -> Any:
        return compute.is_in(lower, value_set=pa.array(words, pa.large_string()))

    known = compute.or_(among("true", "1"), among("false", "0"))
    return compute.if_else(known, among("true", "1"), pa.scalar(None, pa.bool_()))


def looks_numeric(text: "pa.Array") -> "pa.Array":
    """Whether each text is written as a number, as in 12, 1.5 or 2e3; null stays null.

    >>> import pyarrow
    >>> looks_numeric(pyarrow.array(["1.5", "cheap", None])).to_pylist()
    [True, False, None]
    """
    return need("pyarrow.compute").match_substring_regex(text, _NUMBER)


def _cast(text: "pa.Array", type_: Any) -> "pa.Array | None":
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    try:
        return compute.cast(text, type_)
    except pa.ArrowInvalid:
        return None


def _all(text: "pa.Array", pattern: str) -> bool:
    compute = need("pyarrow.compute")
    return bool(compute.all(compute.match_substring_regex(text, pattern), min_count=0).as_py())
