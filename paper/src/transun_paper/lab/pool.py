"""Studies carried out by processes of one thread each; what is finished is in the store and never repeated."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache, lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from transun_paper.lab.constants import one_thread
from transun_paper.lab.encoded_dataset import Frozen, describe
from transun_paper.lab.execute import execute
from transun_paper.lab.protocol import Study, validation
from transun_paper.lab.run import Run
from transun_paper.lab.sources import cache_path
from transun_paper.lab.store import Store

# Seconds between lines of progress.
_PAUSE = 5.0
Say = Callable[[str], None]


def to_stderr(line: str) -> None:
    """Write a line of progress where it does not mix with results."""
    print(line, file=sys.stderr, flush=True)


def carry_out(studies: Iterable[Study], store: Store, cached: Path, jobs: int = 2, say: Say = to_stderr) -> None:
    """Do every run of these studies that the store lacks: candidates first, then the seeds of the chosen ones.

    Runs that differ only in seed or correction are one job and are trained together. Long jobs begin first. Killed at
    any moment, it goes on from the store when called again.

    Args:
        studies: what to do; they may share runs.
        store: where reports are and go.
        cached: folder of frozen data.
        jobs: processes; 1 computes in this one. With more, a script that calls this needs the usual
            `if __name__ == "__main__":`, as they import it.
        say: gets lines of progress with an estimate of the time left.

    """
    if jobs < 1:
        raise ValueError(f"carry_out needs jobs >= 1, got {jobs}")
    board = _Board(list(studies), store, cached, say)
    ready = board.ready()
    if not ready:
        return
    if jobs == 1:
        while ready:
            with one_thread():
                board.finished(ready[0], _job(ready[0].texts, cached, store.folder))
            ready = [*ready[1:], *board.ready()]
            ready.sort(key=lambda job: -job.cost)
        return
    with processes(jobs) as pool:
        _drain(pool, board, ready, jobs, cached, store)


def _drain(pool: Executor, board: "_Board", ready: "list[_Job]", jobs: int, cached: Path, store: Store) -> None:
    running: dict[Future[list[str]], _Job] = {}
    try:
        while ready or running:
            ready.sort(key=lambda job: -job.cost)
            while ready and len(running) < jobs:
                job = ready.pop(0)
                running[pool.submit(_job, job.texts, cached, store.folder)] = job
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                board.finished(job, _result(future, job))
            ready += board.ready()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _result(future: Future[list[str]], job: "_Job") -> list[str]:
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"while doing {job.texts[0]}")
        raise


def processes(jobs: int) -> ProcessPoolExecutor:
    """Processes of one thread each."""
    # Read by the libraries when a child imports them: sixteen processes of sixteen threads would only wait.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return ProcessPoolExecutor(jobs, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,))


@dataclass(frozen=True)
class _Job:
    texts: tuple[str, ...]
    cost: float


@dataclass
class _Board:
    """What is to be done, what is under way and how long the rest may take."""

    studies: list[Study]
    store: Store
    cached: Path
    say: Say
    given: set[str] = field(default_factory=set)
    done: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    told: float = 0.0

    def __post_init__(self) -> None:
        """Add up the runs that are missing, and the seeds that will follow them."""
        lacking: dict[tuple[object, ...], float] = {}
        for study in self.studies:
            decided = study.decided(self.store)
            for run in study.finals(self.store) if decided else study.candidates:
                if run.text not in self.store:
                    lacking[run.trained, run.seed] = _cost(run, self.cached)
            if not decided:
                # Nobody knows yet which rate it will be; readings of one model mostly agree.
                later = study.candidates[0]
                lacking["later", later.trained] = _cost(later, self.cached) * (len(study.seeds) - 1)
        self.total = sum(lacking.values())
        self.open = list(self.studies)

    def ready(self) -> list[_Job]:
        """Jobs that can begin now and have not yet."""
        wanted: dict[str, Run] = {}
        undecided = []
        for study in self.open:
            decided = study.decided(self.store)
            undecided += [] if decided else [study]
            for run in study.finals(self.store) if decided else study.candidates:
                if run.text not in self.given and run.text not in self.store:
                    wanted[run.text] = run
        self.open = undecided
        self.given |= set(wanted)
        groups: dict[tuple[str, ...], list[Run]] = {}
        for run in wanted.values():
            groups.setdefault(run.trained, []).append(run)
        return [
            _Job(tuple(run.text for run in group), _cost(group[0], self.cached) * len({run.seed for run in group}))
            for group in groups.values()
        ]

    def finished(self, job: _Job, lines: Sequence[str]) -> None:
        """Note a finished job and say so, not too often."""
        self.done += job.cost
        now = time.perf_counter()
        if now - self.told > _PAUSE:
            self.told = now
            self.say(self._line(now - self.began, lines[-1]))

    def _line(self, seconds: float, last: str) -> str:
        left = seconds * max(self.total - self.done, 0.0) / self.done
        return f"{seconds / 60:6.1f} min, about {left / 60:.1f} min left: {last}"


def _job(texts: Sequence[str], cached: Path, folder: Path) -> list[str]:
    """Do some runs that are trained together, keep their reports, and say a line about each."""
    runs = [Run.parse(text) for text in texts]
    reports = execute(runs, _frozen(cached, runs[0].dataset))
    for run, report in zip(runs, reports, strict=True):
        Store(folder).keep(run.text, report)
    return [_line(run, report) for run, report in zip(runs, reports, strict=True)]


def _line(run: Run, report: Mapping[str, Any]) -> str:
    name = f"{run.dataset} {run.spec['head']} {run.spec['correction']} {run.spec['training']} seed {run.seed}"
    if "failed" in report:
        return f"{name}: {report['failed']}"
    return f"{name}: validation NRMSE {validation(report):.4f}, {report['seconds']:.1f} s"


@lru_cache(maxsize=2)
def _frozen(cached: Path, key: str) -> Frozen:
    return Frozen.load(cache_path(cached, key))


@cache
def _rows(cached: Path, key: str) -> int:
    return int(describe(cache_path(cached, key))["sizes"]["train"])


def _cost(run: Run, cached: Path) -> float:
    """What a run may cost in some unit: the weights it moves, as often as it may."""
    return _rows(cached, run.dataset) * run.training.epochs * (1 + len(run.head.branches))
