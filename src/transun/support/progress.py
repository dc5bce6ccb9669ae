"""A progress bar that appears on terminals and costs nothing elsewhere."""

import sys
import time
from typing import Any, Self

__all__ = ["Progress"]


class Progress:
    """A bar with the share done and the time left, on standard error.

    Args:
        label: the name of the work.
        total: the number of steps.
        show: True or False; None shows the bar where standard error is a terminal.

    >>> with Progress("counting", 3, show=False) as bar:
    ...     bar.advance(3)

    """

    def __init__(self, label: str, total: int, show: bool | None = None) -> None:
        self.label, self.total = label, total
        self.show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._drawn = 0.0

    def __enter__(self) -> Self:
        if self.show:
            # Imported here, so that code without a bar runs where only torch and numpy are installed.
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Bar(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task(self.label, total=self.total, note="")
        return self

    def advance(self, done: int, note: str = "") -> None:
        """Set the number of finished steps; the bar is redrawn at most ten times a second."""
        if self._bar is None:
            return
        now = time.perf_counter()
        if now - self._drawn > 0.1 or done >= self.total:
            self._bar.update(self._task, completed=done, note=note)
            self._drawn = now

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
