"""Ctrl-C among ranks: it is noted, and all ranks stop after the same step."""

import signal
import threading
from types import FrameType
from typing import Any, Self

from transun.support.group import Group

__all__ = ["Interrupt"]


class Interrupt:
    """Inside the `with` block, Ctrl-C on a rank sets `pending` instead of raising `KeyboardInterrupt` at once.

    A rank that stopped in the middle of a step would leave the others waiting for it. After every step the ranks ask
    each other and stop together, with weights that belong to one step. A second Ctrl-C raises at once. A process that
    is alone waits for nobody, and there nothing changes; nor does it in a thread, which no signal reaches.

    Args:
        group: the ranks.

    """

    def __init__(self, group: Group) -> None:
        self.pending = False
        self._watches = group.size > 1 and threading.current_thread() is threading.main_thread()
        self._before: Any = None

    def __enter__(self) -> Self:
        if self._watches:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._watches:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True
