"""One item in advance, never two, and errors where the item would have been.

That the thread ends with its iterator is tested with files, in `test_stream`.
"""

from collections.abc import Iterator

import pytest

from transun.data.prefetch import prefetch


def test_an_item_is_made_only_when_the_one_before_is_taken() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10):
            made.append(item)
            yield item

    for item in prefetch(items()):
        assert len(made) <= item + 2
    assert made == list(range(10))


def test_an_error_of_the_thread_is_raised_in_place_of_its_item() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise LookupError("no second")

    prefetched = prefetch(items())
    assert next(prefetched) == 1
    with pytest.raises(LookupError, match="no second"):
        next(prefetched)
