"""Ctrl-C at any moment of a command; apart from the commands, whose import may be what is interrupted."""

import _thread
import sys
import threading
import time
from types import FrameType

__all__ = ["INTERRUPTED", "never_lose_interrupts"]

INTERRUPTED = "interrupted: nothing was written but what was finished before"
"""Files are replaced in one step, so that this holds at every moment."""

# Seconds between two looks at where the main thread is.
_PAUSE = 0.001


def never_lose_interrupts() -> None:
    """Make Python end at a Ctrl-C that comes while it clears an object away, as it does after every import.

    It would print the exception and go on, because whoever caused the object to be cleared away is not prepared for it.
    """
    sys.unraisablehook = _deliver_again


def _deliver_again(lost: "sys.UnraisableHookArgs") -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt, ())
    else:
        sys.__unraisablehook__(lost)


def _interrupt() -> None:
    """Interrupt the main thread as soon as it has left this module's hook, in which the interrupt would be lost too."""
    main = threading.main_thread().ident
    while main is not None and _is_in_hook(sys._current_frames().get(main)):
        time.sleep(_PAUSE)
    _thread.interrupt_main()


def _is_in_hook(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not _deliver_again.__code__:
        frame = frame.f_back
    return frame is not None
