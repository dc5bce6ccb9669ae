"""Counts in sentences: one row is, and two rows are."""

__all__ = ["counted", "counted_are", "verb"]


def counted(count: int, one: str, several: str | None = None) -> str:
    """So many of something, thousands apart.

    Args:
        count: how many there are.
        one: what one of them is called, such as "row" or "labelled row".
        several: what several are called; None puts an s behind it.

    >>> counted(1, "row"), counted(1234, "row"), counted(0, "value")
    ('1 row', '1,234 rows', '0 values')
    >>> counted(2, "value of 'shop'", "values of 'shop'")
    "2 values of 'shop'"

    """
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def counted_are(count: int, one: str, several: str | None = None) -> str:
    """So many of something, and the verb that follows; see `counted`.

    >>> counted_are(1, "row"), counted_are(2, "row")
    ('1 row is', '2 rows are')
    """
    return f"{counted(count, one, several)} {verb(count, 'is', 'are')}"


def verb(count: int, one: str, several: str) -> str:
    """The verb that follows a count, where more stands between the two.

    >>> [f"{count} of 5 rows {verb(count, 'has', 'have')} no value" for count in (1, 2)]
    ['1 of 5 rows has no value', '2 of 5 rows have no value']
    """
    return one if count == 1 else several
