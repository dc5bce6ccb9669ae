"""The hint in an error message about a name that does not exist."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str], show: Callable[[str], str] = repr) -> str:
    """The question "did you mean ...?" with at most two known names, or an empty text where none is close.

    A name that differs only in upper and lower case is meant for certain, so that then no other is offered.

    Args:
        name: the name that does not exist.
        known: the names that do.
        show: how a known name is printed; `str` leaves out the quotation marks.

    >>> did_you_mean("prise", ["price", "item"])
    "did you mean 'price'?"
    >>> did_you_mean("logsun", ["LogSUN", "LogMSE"])
    "did you mean 'LogSUN'?"
    >>> did_you_mean("oders.csv", ["orders.csv"], show=str)
    'did you mean orders.csv?'
    >>> did_you_mean("colour", ["price", "item"])
    ''

    """
    known = list(known)
    same_letters = [candidate for candidate in known if candidate.lower() == name.lower()]
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    similar = [by_lower_case[match] for match in get_close_matches(name.lower(), by_lower_case, n=2)]
    close = same_letters or similar
    return f"did you mean {' or '.join(map(show, close))}?" if close else ""
