"""Memory that was freed goes back to the system."""

import platform
import subprocess
import sys

import pytest

# Small blocks stay with the allocator as long as one above them is in use.
SCRIPT = """
from pathlib import Path
from transun.support.memory import return_freed_memory

def resident():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

blocks = [bytes(2000) for _ in range(100_000)]
last = blocks.pop()
held = resident()
del blocks
kept = resident()
return_freed_memory()
print(held, kept, resident(), len(last))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps, and gives back, memory in this way")
def test_memory_below_a_block_in_use_is_given_back():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    held, kept, left, _ = map(float, done.stdout.split())
    assert held - left > 150.0  # of 191 MiB
    assert left < kept
