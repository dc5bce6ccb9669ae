"""Methods of libraries that need an environment of their own: a script of ours is run by its Python.

The script gets a folder with `train.parquet`, `valid.parquet`, `test.parquet` and `request.json` (target, seed,
seconds), and writes `result.json` into it (valid, test, seconds, details). It may import nothing of transun.
"""

import json
import math
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from transun.support.extras import need
from transun.support.files import write_json
from transun_paper.board.method import NOTHING, BoardMethod, FitResult
from transun_paper.board.tables import TableSplit

SCRIPTS = Path(__file__).parent / "scripts"
# A time limit is a promise of the library, which may take somewhat longer; nothing should take an hour longer.
_GRACE = 3600.0


@dataclass(frozen=True)
class External(BoardMethod):
    """A script run by another Python, whose path an environment variable holds.

    Args:
        name: of the method.
        script: the name of a file in `scripts`, or the path of another one.
        variable: the environment variable that holds the path of the Python.
        in_the_time_of: the method whose seconds on the same table and seed are its time limit; None gives none.

    """

    cost: ClassVar[float] = 60.0
    script: str
    variable: str
    in_the_time_of: str | None = None

    def needs(self, seed: int) -> tuple[str, int] | None:
        return None if self.in_the_time_of is None else (self.in_the_time_of, seed)

    def taken_from(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {"seconds": math.ceil(result["seconds"])}

    def missing(self) -> str | None:
        python = os.environ.get(self.variable)
        if not python:
            return f"set {self.variable} to the Python of an environment that has the library"
        return None if Path(python).is_file() else f"{self.variable} names no file: {python}"

    def fit_predict(self, data: TableSplit, seed: int, given: Mapping[str, Any] = NOTHING) -> FitResult:
        with TemporaryDirectory() as name:
            folder = Path(name)
            for part in ("train", "valid", "test"):
                need("pyarrow.parquet").write_table(getattr(data, part), folder / f"{part}.parquet")
            write_json(folder / "request.json", {"target": data.target, "seed": seed, "seconds": given.get("seconds")})
            result = self._run(folder, given["seconds"] + _GRACE if given else None)
        valid, test = (np.asarray(result[part], np.float64) for part in ("valid", "test"))
        return FitResult(valid, test, float(result["seconds"]), result["details"])

    def _run(self, folder: Path, timeout: float | None) -> dict[str, Any]:
        # The modules of this process may not suit the other Python.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        command = [os.environ[self.variable], str(SCRIPTS / self.script), str(folder)]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
        if process.returncode:
            lines = process.stderr.strip().splitlines() or ["no message"]
            raise RuntimeError(f"{self.script} stopped with exit code {process.returncode}: {lines[-1]}")
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return result
