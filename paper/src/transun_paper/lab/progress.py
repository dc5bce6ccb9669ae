"""Progress as lines of text, which a terminal, a log file and a machine without `rich` can all show."""

import sys
import time
from collections.abc import Callable

WriteLine = Callable[[str], None]
"""Takes a line of progress."""

# Seconds between two lines.
_PAUSE = 5.0


def to_stderr(line: str) -> None:
    """Write a line where it does not mix with results."""
    print(line, file=sys.stderr, flush=True)


def silent(line: str) -> None:
    """Drop a line."""


class ProgressLog:
    """Writes how long some work has taken and how long the rest may take, at most one line every five seconds.

    The time left is the time so far, times the work left over the work done.

    Args:
        label: what is being done.
        total: all of the work, in any unit.
        write: takes the lines.

    >>> ProgressLog("counting", 4, print).advance(1, "one")
    counting:    0.0 min, about 0.0 min left: one

    """

    def __init__(self, label: str, total: float, write: WriteLine = to_stderr) -> None:
        self.label, self.total, self.write = label, total, write
        self.done = 0.0
        self._began = time.perf_counter()
        self._last_line: float | None = None

    def advance(self, work: float, note: str) -> None:
        """Add finished work, and write a line with a note on it unless the last line is recent."""
        self.done += work
        now = time.perf_counter()
        if self._last_line is not None and now - self._last_line <= _PAUSE:
            return
        self._last_line = now
        seconds = now - self._began
        left = seconds * max(self.total - self.done, 0.0) / self.done if self.done else 0.0
        self.write(f"{self.label}: {seconds / 60:6.1f} min, about {left / 60:.1f} min left: {note}")
