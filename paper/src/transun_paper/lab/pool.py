"""Studies and computations carried out by processes of one thread each; finished ones are in the store."""

import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import torch

from transun.support.files import remove_leftovers
from transun_paper.lab.computation import Computation
from transun_paper.lab.constants import one_thread
from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path, training_rows
from transun_paper.lab.execute import execute
from transun_paper.lab.progress import ProgressLog, WriteLine, to_stderr
from transun_paper.lab.protocol import Study, validation
from transun_paper.lab.run import Run
from transun_paper.lab.store import Store


def carry_out(
    studies: Iterable[Study],
    store: Store,
    cache: Path,
    jobs: int = 2,
    *,
    computations: Iterable[Computation] = (),
    device: str = "cpu",
    write: WriteLine = to_stderr,
) -> None:
    """Do every run and every computation that the store lacks.

    Of a study the candidates come first, then the seeds of the chosen one. Runs that differ only in their correction
    share one trained model. Long work begins first. If the program is killed at any moment, the next call continues
    from the store, and removes the files that the killed one was writing.

    Args:
        studies: they may share runs.
        store: where reports are read and written.
        cache: folder of encoded data.
        jobs: processes; 1 computes in this one. With more, a script that calls this needs the usual
            `if __name__ == "__main__":`, because the processes import it.
        computations: further work; some may be equal.
        device: where models are trained, such as "cuda", which the processes share.
        write: takes lines of progress with an estimate of the time left.

    """
    if jobs < 1:
        raise ValueError(f"carry_out needs jobs >= 1, got {jobs}")
    remove_leftovers(store.folder)
    queue = _Queue(list(studies), list(computations), store, cache, device)
    waiting = queue.next()
    if not waiting:
        return
    log = ProgressLog("runs", queue.total_cost(), write)
    if jobs == 1:
        with one_thread():
            while waiting:
                waiting.sort(key=lambda task: -task.cost)
                task = waiting.pop(0)
                log.advance(task.cost, task.execute(cache, store.folder))
                waiting += queue.next()
        return
    with processes(jobs) as pool:
        _drain(pool, queue, waiting, jobs, log)


def carry_out_computations(
    computations: Iterable[Computation], store: Store, jobs: int = 2, *, write: WriteLine = to_stderr
) -> None:
    """Do every computation that the store lacks, where none of them reads encoded data; see `carry_out`."""
    carry_out([], store, Path(), jobs, computations=computations, write=write)


def _drain(pool: ProcessPoolExecutor, queue: "_Queue", waiting: "list[_Task]", jobs: int, log: ProgressLog) -> None:
    running: dict[Future[str], _Task] = {}
    try:
        while waiting or running:
            waiting.sort(key=lambda task: -task.cost)
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                running[pool.submit(task.execute, queue.cache, queue.store.folder)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                log.advance(task.cost, _result(future, task))
            waiting += queue.next()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _result(future: Future[str], task: "_Task") -> str:
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"while doing {task}")
        raise


def processes(jobs: int) -> ProcessPoolExecutor:
    """A pool of processes of one thread each."""
    # The libraries read this when a process imports them: sixteen processes of sixteen threads would mostly wait.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return ProcessPoolExecutor(jobs, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,))


# Characters of a computation that a line of progress shows.
_LINE = 120


class _Task(Protocol):
    """What one process does at a time."""

    @property
    def cost(self) -> float:
        """About how long it takes, in some unit."""

    def execute(self, cache: Path, store: Path) -> str:
        """Do it, write the results to the store, and describe the last one in a line."""


@dataclass(frozen=True)
class _RunGroup:
    """Runs that share one trained model, by their texts, which travel to another process."""

    texts: tuple[str, ...]
    cost: float
    device: str

    def execute(self, cache: Path, store: Path) -> str:
        runs = [Run.parse(text) for text in self.texts]
        data = _load(cache, runs[0].dataset)
        began = time.process_time()
        reports = execute(runs, data, self.device)
        # The runs share one training, so each has its part of the time.
        seconds = (time.process_time() - began) / len(runs)
        for run, report in zip(runs, reports, strict=True):
            Store(store).keep(run.text, report, seconds)
        return _line(runs[-1], reports[-1])


@dataclass(frozen=True)
class _ComputationTask:
    text: str
    cost: float

    def execute(self, cache: Path, store: Path) -> str:
        Store(store).run(self.text, lambda: Computation.parse(self.text).compute(cache))
        # The text begins with what tells computations apart; the rest would fill the screen.
        return self.text if len(self.text) <= _LINE else f"{self.text[:_LINE]}…"


@dataclass
class _Queue:
    """The work that is not done yet, in an order in which it can be done."""

    studies: list[Study]
    computations: list[Computation]
    store: Store
    cache: Path
    device: str
    begun: set[str] = field(default_factory=set)

    def total_cost(self) -> float:
        """The cost of all runs and computations that the store lacks, those of later seeds included."""
        costs: dict[tuple[object, ...], float] = {}
        for study in self.studies:
            decided = study.decided(self.store)
            for run in study.finals(self.store) if decided else study.tried(self.store):
                if run.text not in self.store:
                    costs[run.trained] = _cost(run, self.cache)
            if not decided:
                # Nobody knows yet which rate will be chosen; studies that share a model mostly choose the same.
                later = study.candidates[0]
                costs["later", later.trained] = _cost(later, self.cache) * (len(study.seeds) - 1)
        for computation in self.computations:
            if computation.text not in self.store:
                costs["computation", computation.text] = computation.cost(self.cache)
        return sum(costs.values())

    def next(self) -> list[_Task]:
        """Tasks that can begin now and have not begun yet."""
        runs: dict[str, Run] = {}
        undecided = []
        for study in self.studies:
            decided = study.decided(self.store)
            undecided += [] if decided else [study]
            for run in study.finals(self.store) if decided else study.tried(self.store):
                if self._begin(run.text):
                    runs[run.text] = run
        self.studies = undecided
        groups: dict[tuple[str, ...], list[Run]] = {}
        for run in runs.values():
            groups.setdefault(run.trained, []).append(run)
        tasks: list[_Task] = [
            _RunGroup(tuple(run.text for run in group), _cost(group[0], self.cache), self.device)
            for group in groups.values()
        ]
        tasks += [
            _ComputationTask(computation.text, computation.cost(self.cache))
            for computation in self.computations
            if self._begin(computation.text)
        ]
        return tasks

    def _begin(self, text: str) -> bool:
        """Whether something is still to be done; noted, so that it begins once."""
        if text in self.begun or text in self.store:
            return False
        self.begun.add(text)
        return True


def _line(run: Run, report: Mapping[str, Any]) -> str:
    name = f"{run.dataset} {run.spec['head']} {run.spec['correction']} {run.spec['training']} seed {run.seed}"
    if "failed" in report:
        return f"{name}: {report['failed']}"
    return f"{name}: validation NRMSE {validation(report):.4f}, {report['seconds']:.1f} s"


@lru_cache(maxsize=2)
def _load(folder: Path, key: str) -> EncodedDataset:
    return EncodedDataset.load(cache_path(folder, key))


def _cost(run: Run, folder: Path) -> float:
    """Rows that pass through a branch of the network, in all epochs."""
    return training_rows(folder, run.dataset) * run.training.epochs * (1 + len(run.head.branches))
