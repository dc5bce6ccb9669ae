"""Processes that tests use as ranks: started once, and joined to a new group for every job."""

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

# A job that takes longer than this has a rank that waits for another one in vain.
SECONDS = 300


class RankPool:
    """Up to `most` processes; `run` gives some of them a function, which finds itself in a group of that size."""

    def __init__(self, most: int) -> None:
        # A server that has imported torch already forks the processes: importing it takes longer than most jobs.
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch.distributed", "transun.training.loop", "transun.training.calibration"])
        self._ends, self._processes = [], []
        for _ in range(most):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there,), daemon=True)
            process.start()
            self._ends.append(here)
            self._processes.append(process)

    def run(self, size: int, job: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What the job returns on each rank; an error of any rank is raised here, with its text."""
        with tempfile.TemporaryDirectory() as folder:
            for rank, end in enumerate(self._ends[:size]):
                end.send((rank, size, str(Path(folder) / "store"), job, arguments))
            answers = []
            for rank, (end, process) in enumerate(zip(self._ends[:size], self._processes, strict=False)):
                ready = wait([end, process.sentinel], SECONDS)
                if end not in ready:
                    raise RuntimeError(f"rank {rank} of {size} {'died' if ready else 'hangs'} in {job.__name__}")
                answers.append(end.recv())
        for rank, (_, error) in enumerate(answers):
            if error:
                raise RuntimeError(f"rank {rank} of {size} failed:\n{error}")
        return [result for result, _ in answers]

    def close(self) -> None:
        """End the processes."""
        for end in self._ends:
            end.close()
        for process in self._processes:
            process.join(5)
            process.kill()


def _serve(end: Any) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    while True:
        try:
            rank, size, store, job, arguments = end.recv()
        except EOFError:
            return
        try:
            dist.init_process_group(
                "gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=SECONDS)
            )
            try:
                answer = job(*arguments), None
            finally:
                dist.destroy_process_group()
        except Exception:
            answer = None, traceback.format_exc()
        # Not before the group has ended: the last answer removes the store, and a rank that still needs it would die.
        end.send(answer)
