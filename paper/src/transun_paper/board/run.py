"""The runs of the board: one method on one table with one seed, measured on the test rows and kept in the store."""

import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

import transun
from transun.metrics import NRMSE, PGR, XAUC, Metric
from transun.metrics.paired import leave_out
from transun.support.extras import need
from transun.support.suggest import did_you_mean
from transun_paper.board.method import NOTHING, BoardMethod
from transun_paper.board.methods import METHODS
from transun_paper.board.tables import BOARD_TABLES, ON_REQUEST, BoardTable, TableSplit
from transun_paper.lab.computation import Computation
from transun_paper.lab.measures import values
from transun_paper.lab.pool import carry_out_computations
from transun_paper.lab.progress import WriteLine, to_stderr
from transun_paper.lab.store import Store

BOARD_METRICS: tuple[Metric, ...] = (NRMSE, PGR, XAUC)
SEEDS = 5

Cell = tuple[str, str]
"""The names of a table and a method."""


def run_of(
    table: str, data: str, method: BoardMethod, seed: int, rows: int | None, given: Mapping[str, Any] = NOTHING
) -> Computation:
    """The computation of one result; equal texts mean equal data, settings, seed and version of the method.

    The code itself is not part of the key, as a comment in it would make every result old.

    Args:
        table: its name.
        data: the fingerprint of its file.
        method: to train.
        seed: of the method.
        rows: about how many rows of the table; None takes all.
        given: what the method takes from the result that it needs.

    """
    arguments = {
        "table": table,
        "method": method.name,
        "seed": seed,
        "rows": rows,
        "data": data,
        "settings": method.settings,
        "given": dict(given),
        "version": method.version,
    }
    return Computation("board", arguments)


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """One result: metrics of the test rows, seconds, and what the method chose; or the message of a failure."""
    method, data = METHODS[arguments["method"]], _load(BOARD_TABLES[arguments["table"]], arguments["rows"])
    began = time.perf_counter()
    try:
        # Some libraries look at the number of cores, whatever threads the process was given.
        with need("threadpoolctl").threadpool_limits(1):
            result = method.fit_predict(data, arguments["seed"], arguments["given"])
    except Exception as error:  # every library has its own exceptions; the page quotes the message
        return {"failed": f"{type(error).__name__}: {error}", "elapsed": time.perf_counter() - began}
    pred, y = torch.from_numpy(result.test), torch.from_numpy(data.y_test.copy())
    valid, y_valid = torch.from_numpy(result.valid), torch.from_numpy(data.y_valid.copy())
    return {
        "rows": data.sizes,
        "metrics": values(BOARD_METRICS, pred, y),
        "left_out": leave_out(BOARD_METRICS, pred, y),
        "valid": values((NRMSE, PGR), valid, y_valid),
        "seconds": result.seconds,
        "elapsed": time.perf_counter() - began,
        "details": dict(result.details),
        "version": transun.__version__,
        "machine": _machine(),
    }


def _machine() -> str:
    """The processor and the number of its cores, without which seconds mean little."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8").splitlines() if cpu.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Rows, times how much longer the method takes than boosted trees."""
    rows = BOARD_TABLES[arguments["table"]].row_count()
    return min(rows, arguments["rows"] or rows) * METHODS[arguments["method"]].cost


@lru_cache(maxsize=2)
def _load(table: BoardTable, rows: int | None) -> TableSplit:
    return table.load(rows)


@dataclass(frozen=True)
class Board:
    """Methods, tables and seeds that are run.

    Args:
        methods: names in `METHODS`.
        tables: names in `BOARD_TABLES`.
        seeds: how many; a method without randomness gets one.
        rows: about how many rows of each table, by a hash; None takes all.
        recorded: by table, the fingerprint of its file in the record of results: a table that is not on this machine
            has the results of the file that it was recorded with.

    """

    methods: tuple[str, ...]
    tables: tuple[str, ...]
    seeds: int = SEEDS
    rows: int | None = None
    recorded: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def matching(
        cls, methods: Iterable[str] = (), tables: Iterable[str] = (), seeds: int = SEEDS, rows: int | None = None
    ) -> "Board":
        """The board of all names that match one of the patterns; where there is none, of all methods and tables.

        A pattern is a name in which `*` stands for anything; a table is also found by its group. Tables of
        `ON_REQUEST` take part only where they are named.

        >>> Board.matching(["lightgbm_*"], ["numbers"]).methods[:2]
        ('lightgbm_defaults', 'lightgbm_poisson')
        """
        usual = [table.name for table in BOARD_TABLES.values() if table.group not in ON_REQUEST]
        groups = {name: (name, table.group) for name, table in BOARD_TABLES.items()}
        return cls(
            _matching("method", methods, {name: (name,) for name in METHODS}) or tuple(METHODS),
            _matching("table", tables, groups) or tuple(usual),
            seeds,
            rows,
        )

    def run(self, store: Store, jobs: int = 2, write: WriteLine = to_stderr) -> None:
        """Compute what the store lacks; killed at any moment, the next call continues.

        A run that needs the result of another one waits for it.
        """
        while missing := [run for run in self._runs(store) if run.text not in store]:
            carry_out_computations(missing, store, jobs, write=write)

    def forget(self, store: Store) -> int:
        """Delete the results of these methods, tables and seeds; how many there were."""
        stored = [run for run in self._runs(store) if run.text in store]
        for run in stored:
            store.path(run.text).unlink()
        return len(stored)

    def results(self, store: Store) -> dict[Cell, list[dict[str, Any]]]:
        """Stored results by table and method, of the seeds up to the first that is missing; of failures one alone."""
        cells: dict[Cell, list[dict[str, Any]]] = {}
        for run in self._runs(store, here=False):
            if run.text in store:
                results = cells.setdefault((run.arguments["table"], run.arguments["method"]), [])
                if run.arguments["seed"] == len(results):
                    results.append(store.read(run.text))
        return {cell: _without_failures(results) for cell, results in cells.items() if results}

    def skipped(self) -> dict[str, str]:
        """Why methods and tables take no part here, by name."""
        methods = {name: METHODS[name].missing() for name in self.methods}
        tables = {name: BOARD_TABLES[name].missing() for name in self.tables}
        return {name: reason for name, reason in (methods | tables).items() if reason}

    def _runs(self, store: Store, here: bool = True) -> Iterator[Computation]:
        """The runs whose needs the store meets; `here` leaves out methods and tables that this machine lacks."""
        files = {name: BOARD_TABLES[name].fingerprint for name in self.tables if not BOARD_TABLES[name].missing()}
        if not here:
            files = {name: data for name in self.tables if (data := files.get(name, self.recorded.get(name)))}
        methods = [METHODS[name] for name in self.methods if not (here and METHODS[name].missing())]
        for table, data in files.items():
            for method in methods:
                for seed in range(1 if method.deterministic else self.seeds):
                    run = self._run(store, table, data, method, seed)
                    if run is not None:
                        yield run

    def _run(self, store: Store, table: str, data: str, method: BoardMethod, seed: int) -> Computation | None:
        """The run of a method, or None where the result that it needs is not there or failed."""
        needed = method.needs(seed)
        if needed is None:
            return run_of(table, data, method, seed, self.rows)
        name, first_seed = needed
        first = self._run(store, table, data, METHODS[name], first_seed)
        if first is None or first.text not in store or "failed" in (result := store.read(first.text)):
            return None
        return run_of(table, data, method, seed, self.rows, method.taken_from(result))


def _without_failures(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    failures = [result for result in results if "failed" in result]
    return failures[:1] or results


def _matching(what: str, patterns: Iterable[str], names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matches = [name for name, keys in names.items() if any(fnmatchcase(key, pattern) for key in keys)]
        if not matches:
            hint = f"{did_you_mean(pattern, names)} There are {', '.join(names)}".lstrip()
            raise ValueError(f"the board has no {what} {pattern!r}: {hint}")
        chosen |= dict.fromkeys(matches)
    return tuple(name for name in names if name in chosen)
