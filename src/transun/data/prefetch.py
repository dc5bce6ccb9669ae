"""Work done in the background, one item ahead of its use."""

import atexit
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _Failure(NamedTuple):
    error: BaseException


_END = _Failure(StopIteration())


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """The items in their order, the next one made in a thread while the caller uses the last.

    Two items exist at a time, never three, whatever their cost: the thread begins an item only when the one before it
    has been taken. An error in the thread is raised where its item would have come. Leaving the loop early, closing or
    dropping the iterator ends the thread, after the item at hand.

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
        # The garbage collector may close us from any thread, even from this one.
        if thread is not threading.current_thread():
            thread.join()

    # At exit a daemon thread is killed where it stands, which crashes inside the libraries it calls; an ordinary one
    # would wait for ever for an iterator that somebody still holds.
    atexit.register(stop)
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            taken.release()
            yield item
            del item  # before the thread begins another
    finally:
        stop()
        atexit.unregister(stop)
