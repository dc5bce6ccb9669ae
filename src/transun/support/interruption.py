"""Ctrl-C at any moment of a command; apart from the commands, whose import may be what is interrupted."""

import _thread
import sys
import threading

__all__ = ["INTERRUPTED", "never_lose_interrupts"]

INTERRUPTED = "interrupted: nothing was written but what was finished before"
"""Files are replaced in one step, so that this holds at every moment."""

# Seconds after which a lost interrupt is sent again: at once it would be lost in the very function that sends it.
_LATER = 0.01


def never_lose_interrupts() -> None:
    """Make Python end at a Ctrl-C that comes while it clears an object away, as it does after every import.

    It would print the exception and go on, because whoever caused the object to be cleared away is not prepared for it.
    """
    sys.unraisablehook = _deliver_again


def _deliver_again(lost: "sys.UnraisableHookArgs") -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        again = threading.Timer(_LATER, _thread.interrupt_main)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)
