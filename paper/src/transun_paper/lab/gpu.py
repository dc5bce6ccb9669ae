"""The industrial table on one GPU: `python -m transun_paper.lab.gpu --store FOLDER`.

It needs torch and numpy alone, trains what the store lacks, method by method, and measures predictions in processes of
their own while the GPU trains on. Interrupted, or at the end of its minutes, it keeps what is finished; the same
command continues. Copy the folder back, and `transun-paper reproduce industrial fig_bins_industrial` makes the pages.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transun_paper.lab.computation import Computation
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.industrial import INDUSTRIAL, Predicted, measured, train_and_predict


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and measure everything that the store does not hold yet."""
    parser = argparse.ArgumentParser(prog="python -m transun_paper.lab.gpu", description=__doc__)
    parser.add_argument("--store", type=Path, required=True, help="folder of results, a file each")
    parser.add_argument("--quick", action="store_true", help="a toy that any processor trains, to see that it works")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no training begins after so many minutes")
    parser.add_argument("--shard", default="0/1", help="such as 0/2: of two commands side by side the first")
    parser.add_argument("--jobs", type=int, default=8, help="processes that measure")
    options = parser.parse_args(arguments)
    if not options.quick and not torch.cuda.is_available():
        parser.error("there is no GPU here; --quick tries the program on a toy")
    part, parts = map(int, options.shard.split("/"))
    rows = list(INDUSTRIAL.by_row(options.quick).values())[part::parts]
    left = run(
        [seed for seeds in rows for seed in seeds],
        Store(options.store),
        time.monotonic() + 60.0 * options.minutes,
        options.jobs,
    )
    print(f"{left} trainings are left" if left else "finished", flush=True)
    return 0


def run(work: Sequence[Computation], store: Store, deadline: float, jobs: int) -> int:
    """Do the work that the store lacks; the number of trainings that are left at the deadline."""
    work = [computation for computation in work if computation.text not in store]
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,))
    waiting: list[tuple[Computation, Future[dict[str, Any]]]] = []
    done = 0
    with pool:
        for computation in work:
            if time.monotonic() > deadline:
                break
            began = time.monotonic()
            try:
                predicted = train_and_predict(computation.arguments)
            except (FloatingPointError, ValueError) as error:
                store.keep(computation.text, {"failed": str(error)})
            else:
                waiting.append(
                    (computation, pool.submit(_measure, _arrays(predicted), predicted.seconds, predicted.train))
                )
            done += 1
            head, seed = computation.arguments["head"], computation.arguments["seed"]
            print(f"{time.monotonic() - began:6.1f} s  {head}, seed {seed}", file=sys.stderr, flush=True)
            waiting = [item for item in waiting if not _kept(store, *item)]
        for computation, future in waiting:
            store.keep(computation.text, rounded(future.result()))
    return len(work) - done


def _measure(arrays: Mapping[str, NDArray[np.float32]], seconds: float, train: int) -> dict[str, Any]:
    """`measured` of arrays: tensors would share memory with this process, of which a machine has little."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return measured(Predicted(tensors["pred"], tensors["y"], tensors["truth"], tensors.get("slope"), seconds, train))


def _arrays(predicted: Predicted) -> dict[str, NDArray[np.float32]]:
    columns = {name: getattr(predicted, name) for name in ("pred", "y", "truth", "slope")}
    return {name: column.float().numpy() for name, column in columns.items() if column is not None}


def _kept(store: Store, computation: Computation, future: "Future[dict[str, Any]]") -> bool:
    """Store a result that is measured; False where it is not yet."""
    if future.done():
        store.keep(computation.text, rounded(future.result()))
    return future.done()


if __name__ == "__main__":
    sys.exit(main())
