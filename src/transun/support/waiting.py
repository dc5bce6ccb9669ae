"""How long threads of OpenMP wait for each other in a loop before they sleep.

torch and LightGBM give every operation to all threads and wait for the last of them. GNU's OpenMP waits in a loop, for
milliseconds, which costs nothing as long as every thread has a processor of its own. Where other processes use the
processors, the loop keeps the thread that is waited for from running: beside two busy processes, two threads took 63 s
to boost trees on 20,000 rows, where one took a second. If threads sleep after a thousand turns of the loop, two of them
take a second there too, and are as fast as before where the processors are free. With threads that sleep at once, which
another setting asks for, a whole training takes half as long again there.
"""

import os
import sys

__all__ = ["busy_waiting_is_limited", "limit_busy_waiting", "threads_for_boosting"]

# The settings of GNU's OpenMP that decide about the loop; somebody who has set one of them has decided already.
_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
# Libraries that bring OpenMP with them, which reads its settings when it is loaded.
_LOADS_OPENMP = ("torch", "lightgbm")
_TURNS = "1000"


def limit_busy_waiting() -> None:
    """Let threads sleep after a thousand turns, unless somebody decided otherwise or OpenMP is loaded already."""
    if not busy_waiting_is_limited() and not any(name in sys.modules for name in _LOADS_OPENMP):
        os.environ["GOMP_SPINCOUNT"] = _TURNS


def busy_waiting_is_limited() -> bool:
    """Whether a second thread costs little where the processors are busy; other systems have another OpenMP."""
    return sys.platform != "linux" or any(name in os.environ for name in _SETTINGS)


def threads_for_boosting(available: int) -> int:
    """The threads that trees are boosted with; with another number the trees are the same but for rounding.

    Where torch was imported before transun, waiting is not limited, and a second thread could cost a hundred times what
    it saves. There is one thread then, unless OMP_NUM_THREADS says how many.

    Args:
        available: threads that torch would use.

    """
    return available if busy_waiting_is_limited() or os.environ.get("OMP_NUM_THREADS") else 1
