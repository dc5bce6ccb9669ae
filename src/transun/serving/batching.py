"""Requests that wait while others are predicted are predicted together, in one worker thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

__all__ = ["OverloadedError", "Worker"]

T = TypeVar("T")
R = TypeVar("R")


class OverloadedError(RuntimeError):
    """More requests wait than a server may hold."""


class Worker(Generic[T]):
    """One thread that answers requests, so that the event loop stays free to accept others.

    A request that comes while the thread is idle begins at once. Those that come meanwhile wait, and begin together
    when it is done: a batch costs little more than a row, so that the work for a request shrinks as the load grows,
    and no time is spent waiting for a batch to fill.

    Args:
        answer: the answers to several bodies; an answer that is an exception is raised for its request alone.
        batch: the most bytes of bodies that are answered together, if they are several.
        waiting: the most bytes of bodies that wait, if they are several; more raise an `OverloadedError`.

    """

    def __init__(self, answer: Callable[[Sequence[bytes]], Sequence[T | ValueError]], batch: int, waiting: int) -> None:
        self._answer, self._batch, self._most = answer, batch, waiting
        self._queue: deque[tuple[bytes, asyncio.Future[T]]] = deque()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "transun-worker")

    async def submit(self, body: bytes) -> T:
        """The answer to one body."""
        self._reserve(len(body))
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append((body, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await future

    async def call(self, function: Callable[[bytes], R], body: bytes) -> R:
        """The result of another function of a body, in the same thread; the body waits like those of `submit`."""
        self._reserve(len(body))
        try:
            return await self.run(partial(function, body))
        finally:
            self._bytes -= len(body)

    async def run(self, function: Callable[[], R]) -> R:
        """The result of a function in the same thread, which nothing else uses meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def close(self) -> None:
        """Wait for the work that has begun, and end the thread."""
        self._thread.shutdown()

    def _reserve(self, size: int) -> None:
        if self._bytes and self._bytes + size > self._most:
            raise OverloadedError("too many requests wait: try again in a second")
        self._bytes += size

    async def _work(self) -> None:
        while self._queue:
            taken = self._take()
            try:
                answers = await self.run(partial(self._answer, [body for body, _ in taken]))
            except Exception as error:  # a mistake of ours: every request learns of it, and the server goes on
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(taken, answers, strict=True):
                if future.done():  # the client has gone
                    continue
                if isinstance(answer, ValueError):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def _take(self) -> list[tuple[bytes, "asyncio.Future[T]"]]:
        taken: list[tuple[bytes, asyncio.Future[T]]] = []
        size = 0
        while self._queue and (not taken or size + len(self._queue[0][0]) <= self._batch):
            taken.append(self._queue.popleft())
            size += len(taken[-1][0])
        self._bytes -= size
        return taken
