"""Prefetching: a background thread makes the next item while the last one is used."""

import atexit
import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

__all__ = ["prefetch"]

T = TypeVar("T")


class _Failure(NamedTuple):
    error: BaseException


_END = _Failure(StopIteration())


def prefetch(items: Iterator[T]) -> Generator[T]:
    """The items in their order, each made by a background thread while the caller uses the one before.

    At most two items exist at a time: the thread begins an item only when the caller has received the one before it. An
    error in the thread is raised in the caller, in place of the item. Leaving the loop early, closing the iterator or
    deleting it ends the thread, after the item it is making.

    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    taken = threading.Semaphore(1)
    ready: SimpleQueue[T | _Failure] = SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        try:
            while not stopped.is_set():
                taken.acquire()
                if not stopped.is_set():
                    ready.put(next(items, _END))
        except BaseException as error:
            ready.put(_Failure(error))

    thread = threading.Thread(target=work, name="transun.prefetch", daemon=True)

    def stop() -> None:
        stopped.set()
        taken.release()
        # The garbage collector may close the iterator from any thread, even from this one.
        if thread is not threading.current_thread():
            thread.join()

    # At exit, Python kills a daemon thread at any point, which crashes inside the libraries it calls; an ordinary
    # thread would keep the program alive for ever if somebody still holds the iterator.
    atexit.register(stop)
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            taken.release()
            yield item
            del item  # free its memory before the thread begins another
    finally:
        stop()
        atexit.unregister(stop)
