"""How much memory this process may still take, and memory that it can give back."""

import contextlib
import ctypes
import sys
from pathlib import Path

__all__ = ["free_memory", "return_freed_memory"]

_MEMINFO = Path("/proc/meminfo")
# The limit and the use of a container, of control groups in their second and first version.
_LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


def free_memory() -> int | None:
    """Bytes that are available: of the machine, of its container, and below the limit that `ulimit -v` sets.

    None where the system does not say, as on Windows.
    """
    free = [_available(), *(_left(limit, used) for limit, used in _LIMITS), _address_space()]
    known = [number for number in free if number is not None]
    return min(known) if known else None


def return_freed_memory() -> None:
    """Give memory back to the system that was freed but that allocators keep for later: between two stages of work.

    After a pass over many small tables that is some hundred MB, which the next stage might not find a use for. Arrow's
    allocator has a call for it and so has glibc; elsewhere nothing is given back.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _available() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left(limit: Path, used: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
        return max(int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")), 0)
    return None


def _address_space() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit
