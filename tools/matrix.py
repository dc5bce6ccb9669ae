"""Runs the quick tests under other threads, time zones, locales, instruction sets and orders: `make matrix`.

The results of the library must not depend on any of these. Every row below changes one of them, and the last row
changes all of them. `python tools/matrix.py tests/metrics` runs other tests in the same environments.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUICK = ("tests/heads", "tests/laws", "tests/data", "tests/models")
USUAL = {
    "OMP_NUM_THREADS": "1",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "ATEN_CPU_CAPABILITY": "",
    "MKL_CBWR": "",
    "NPY_DISABLE_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "",
    "TRANSUN_TEST_ORDER": "",
}
# What an older processor computes with: other kernels in numpy, scipy and torch, so other last digits everywhere.
OLD_PROCESSOR = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    "OPENBLAS_CORETYPE": "Nehalem",
}
# A locale that is not installed counts as C; German writes a comma into decimal numbers.
CHANGES = (
    {},
    {"OMP_NUM_THREADS": "4"},
    {"TZ": "Asia/Tokyo"},
    {"LC_ALL": "C"},
    {"LC_ALL": "de_DE.UTF-8"},
    {"ATEN_CPU_CAPABILITY": "default"},
    {"ATEN_CPU_CAPABILITY": "avx2"},
    OLD_PROCESSOR,
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"TRANSUN_TEST_ORDER": "1"},
    OLD_PROCESSOR | {"OMP_NUM_THREADS": "4", "TZ": "Asia/Tokyo", "LC_ALL": "C", "TRANSUN_TEST_ORDER": "2"},
)


def environment(change: dict[str, str]) -> dict[str, str]:
    """The variables of a process; an empty value is a variable that is not set."""
    changed = USUAL | change
    kept = {name: value for name, value in os.environ.items() if name not in changed}
    return kept | {name: value for name, value in changed.items() if value}


def installed(change: dict[str, str]) -> bool:
    """Whether the machine has the locale of this row."""
    listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.lower().split()
    name = change.get("LC_ALL", "C").lower().replace("-", "")
    return name in [entry.replace("-", "") for entry in listed]


def main() -> None:
    """Every row, and a list of those that failed."""
    tests = sys.argv[1:] or QUICK
    failed = []
    for change in CHANGES:
        name = ", ".join(f"{variable}={value}" for variable, value in change.items()) or "as usual"
        if not installed(change):
            print(f"left out: {name} (the locale is not installed)", flush=True)
            continue
        began = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
        result = subprocess.run(
            command, cwd=ROOT, env=environment(change), capture_output=True, text=True, errors="replace", check=False
        )
        passed = result.returncode == 0
        print(f"{'passed' if passed else 'FAILED'}: {name} ({time.perf_counter() - began:.0f} s)", flush=True)
        if not passed:
            failed.append(name)
            print(result.stdout[-3000:], flush=True)
    if failed:
        raise SystemExit(f"the tests depend on: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
