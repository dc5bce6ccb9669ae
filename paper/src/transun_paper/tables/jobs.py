"""Computations of the paper's tables that are not runs: pure functions of a text, done by processes, kept in a store.

On another machine, with torch and numpy alone, `transun_paper.lab.worker` does them.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from transun_paper.lab.constants import one_thread
from transun_paper.lab.pool import Say, to_stderr
from transun_paper.lab.store import Store, rounded

# Where the functions are that a text may name; each has `compute(arguments, cache)`.
_MODULES = {
    name: f"transun_paper.tables.{module}"
    for name, module in {"industrial": "industrial", "trace": "traces", "variance": "variance"}.items()
}
# Seconds between lines of progress.
_PAUSE = 5.0


@dataclass(frozen=True)
class Job:
    """What to compute: the name of a function and its arguments, plain values. Equal jobs have equal texts.

    >>> job = Job("trace", {"seed": 0})
    >>> Job.parse(job.text) == job
    True
    """

    name: str
    arguments: Mapping[str, Any] = field(hash=False)

    @property
    def text(self) -> str:
        """One line of JSON: what a store keeps the result under and a worker reads."""
        return json.dumps({"job": self.name, **self.arguments}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> "Job":
        """The inverse of `text`."""
        found = json.loads(text)
        return cls(found.pop("job"), found)

    def compute(self, cache: Path) -> Any:
        """The result, as plain values."""
        if self.name not in _MODULES:
            raise ValueError(f"there is no job {self.name!r}; there are {', '.join(_MODULES)}")
        function: Callable[[Mapping[str, Any], Path], Any] = import_module(_MODULES[self.name]).compute
        return rounded(function(self.arguments, cache))


def carry_out_jobs(jobs: Iterable[Job], store: Store, cache: Path, processes: int = 2, say: Say = to_stderr) -> None:
    """Do every job that the store lacks; killed at any moment, it goes on from the store when called again.

    Args:
        jobs: what to do; some may be equal.
        store: where results are and go.
        cache: folder of frozen data.
        processes: of one thread each; 1 computes in this one.
        say: gets lines of progress.

    """
    texts = list(dict.fromkeys(job.text for job in jobs if job.text not in store))
    board = _Progress(len(texts), say)
    if processes == 1:
        for text in texts:
            with one_thread():
                _do(text, cache, store.folder)
            board.advance()
        return
    if not texts:
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            for future in as_completed([pool.submit(_do, text, cache, store.folder) for text in texts]):
                future.result()
                board.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _do(text: str, cache: Path, folder: Path) -> None:
    Store(folder).run(text, lambda: Job.parse(text).compute(cache))


@dataclass
class _Progress:
    total: int
    say: Say
    done: int = 0
    began: float = field(default_factory=time.perf_counter)
    told: float = 0.0

    def advance(self) -> None:
        self.done += 1
        now = time.perf_counter()
        if now - self.told > _PAUSE or self.done == self.total:
            self.told = now
            left = (now - self.began) * (self.total - self.done) / self.done
            self.say(f"{self.done} of {self.total} other computations, about {left / 60:.1f} min left")
