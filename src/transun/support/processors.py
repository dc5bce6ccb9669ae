"""Processors that others use too: how many there are for this process, and how its threads wait for each other.

torch and LightGBM give every operation to all threads and wait for the last of them. GNU's OpenMP waits in a loop, for
milliseconds, which costs nothing as long as every thread has a processor of its own. Where other processes use the
processors, the loop keeps the thread that is waited for from running: beside two busy processes, two threads took 63 s
to boost trees on 20,000 rows, where one took a second. If threads sleep after a thousand turns of the loop, two of them
take a second there too, and are as fast as before where the processors are free. With threads that sleep at once, which
another setting asks for, a whole training takes half as long again there.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["limit_busy_waiting", "processor_quota", "threads_for_boosting"]

# The settings of GNU's OpenMP that decide about the loop; somebody who has set one of them has decided already.
_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
# Libraries that bring OpenMP with them, which reads its settings when it is loaded.
_LOADS_OPENMP = ("torch", "lightgbm")
_TURNS = "1000"
_CGROUPS = "/sys/fs/cgroup"


def limit_busy_waiting() -> None:
    """Let threads sleep after a thousand turns, unless somebody decided otherwise or OpenMP is loaded already."""
    if not _waiting_is_limited() and not any(name in sys.modules for name in _LOADS_OPENMP):
        os.environ["GOMP_SPINCOUNT"] = _TURNS


def _waiting_is_limited() -> bool:
    """Whether a second thread costs little where the processors are busy; other systems have another OpenMP."""
    return sys.platform != "linux" or any(name in os.environ for name in _SETTINGS)


def processor_quota(cgroups: "str | Path" = _CGROUPS) -> float | None:
    """The processors that this container may use, such as 0.5; None without a limit, and where the system has none.

    Linux keeps it as microseconds of processor time in each period: in `cpu.max`, or in two files of the first version
    of control groups.
    """
    from pathlib import Path  # not with `import transun`, which is to be quick

    folder = Path(cgroups)
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = (
                (folder / "cpu" / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
        share = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" is no limit
        return None
    return share if share > 0.0 else None  # -1 is no limit


def threads_for_boosting(available: int) -> int:
    """The threads that trees are boosted with; with another number the trees are the same but for rounding.

    OMP_NUM_THREADS says how many, where it is set. Where torch was imported before transun, waiting is not limited, a
    second thread could cost a hundred times what it saves, and there is one thread. Otherwise there are as many as the
    container may use.

    Args:
        available: threads that torch would use.

    """
    if os.environ.get("OMP_NUM_THREADS"):
        return available
    if not _waiting_is_limited():
        return 1
    quota = processor_quota()
    return available if quota is None else max(1, min(available, int(quota)))
