"""Ctrl-C in a training: it is noted, and the training stops after the step that it came in."""

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["Interrupt"]


class Interrupt:
    """Inside the `with` block, Ctrl-C sets `pending` instead of raising `KeyboardInterrupt` at once.

    In the middle of a step, weights, averages and random numbers belong to no step: a training that went on from them
    would end elsewhere. Among ranks, one that stopped there would leave the others waiting for it. So the training
    stops after the step; ranks ask each other. A second Ctrl-C raises at once and sets `torn`: nothing is to be saved
    then. In a thread, which no signal reaches, nothing changes.
    """

    def __init__(self) -> None:
        self.pending, self.torn = False, False
        in_main_thread = threading.current_thread() is threading.main_thread()
        # Whoever has a handler of its own, or ignores Ctrl-C, keeps it.
        self._watches = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._before: Any = None

    def __enter__(self) -> Self:
        if self._watches:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._watches:
            signal.signal(signal.SIGINT, self._before)
        if self.pending and error is None:
            raise KeyboardInterrupt  # it came after the last step

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            self.torn = True
            raise KeyboardInterrupt
        self.pending = True
