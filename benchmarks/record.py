"""The results of benchmarks: each writes one table to benchmarks/results/NAME.json, from which page.py makes a page."""

import json
import math
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
Cell = str | int | float | bool | None


def machine(*packages: str, threads: int = 1) -> str:
    """The machine in words. A load above the number of cores means that other work made the times longer."""
    cores = f"{os.cpu_count()} CPU cores, {threads} thread{'s' if threads > 1 else ''}, load {os.getloadavg()[0]:.1f}"
    return ", ".join([cores, f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)])


def write(
    name: str,
    what: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
    *,
    where: str,
    folder: Path = RESULTS,
    script: str | None = None,
) -> None:
    """Write a table, or raise where a row does not fit the columns or holds a number that JSON cannot hold."""
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{name}: the row {row} has {len(row)} cells, the table {len(columns)} columns")
        if any(isinstance(cell, float) and not math.isfinite(cell) for cell in row):
            raise ValueError(f"{name}: the row {row} has a number that is not finite; write None for no value")
    result: dict[str, Any] = {
        "what": what,
        "command": f"python benchmarks/{script or f'bench_{name}.py'}",
        "machine": where,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
        "notes": list(notes),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def peak() -> int:
    """The largest number of bytes that this process has held; getrusage would count those of its parent as well."""
    return resident("VmHWM")


def resident(field: str) -> int:
    """Bytes of memory of this process by a field of /proc/self/status: VmRSS is the memory that it holds now."""
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) * 1024
