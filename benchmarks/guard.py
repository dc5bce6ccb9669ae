"""The cost of typical work in counts without noise, compared with the counts in benchmarks/results/guard.json.

`python benchmarks/guard.py` prints what became more expensive; `--write` stores the present counts. Counted are
operations that torch dispatches, megabytes of their results, calls of Python and C functions, the peak memory of numpy
and Python, and imported modules. The counts are the same in every run of one version of the code and its libraries, on
a busy machine as well. tests/test_speed.py runs the comparison.
"""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from transun.training.recipe import plain_recipe

STORED = Path(__file__).parent / "results" / "guard.json"
RENEW = "python benchmarks/guard.py --write"
# By kind of count, the factor above which it is a regression. Calls depend on the versions of libraries, so leave room.
TOLERANCE = {"operations": 1.25, "megabytes": 1.25, "calls": 1.5, "peak megabytes": 1.5, "modules": 1.25}
# Counts below this are not compared.
LEAST = 0.5
Counts = dict[str, float]
IMPORTS = {
    "import transun": "import transun",
    "transun --help": "import transun.cli",
    "transun.LogSUN": "import transun; transun.LogSUN",
}


class _Operations(TorchDispatchMode):
    """Counts what is dispatched and the bytes of the tensors that come out; views take none."""

    def __init__(self) -> None:
        super().__init__()
        self.operations, self.bytes = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.operations += 1
        given = {x.untyped_storage().data_ptr() for x in tree_leaves(args) if isinstance(x, torch.Tensor)}
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in given:
                self.bytes += x.untyped_storage().nbytes()
        return result


@dataclass
class _Calls:
    count: int = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        self.count += event in ("call", "c_call")


@contextmanager
def _profiled(calls: _Calls) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(calls)
    try:
        yield
    finally:
        sys.setprofile(before)


def cost(work: Callable[[], object]) -> Counts:
    """The counts of a call, after a first one that fills caches."""
    work()
    torch_work = _Operations()
    with torch_work:
        work()
    calls = _Calls()
    with _profiled(calls):
        work()
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {
        "operations": torch_work.operations,
        "megabytes": round(torch_work.bytes / 1e6, 2),
        "calls": calls.count,
        "peak megabytes": round(peak / 1e6, 2),
    }


def modules(code: str) -> Counts:
    """How many modules are imported by some lines of Python, in a process of its own.

    Those that are there before the first line do not count: they differ by Python and by what an environment imports
    at its start.
    """
    call = [sys.executable, "-c", f"import sys\nbefore = len(sys.modules)\n{code}\nprint(len(sys.modules) - before)"]
    return {"modules": int(subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()[-1])}


def _data() -> Any:
    from transun import Dataset

    rng = np.random.default_rng(0)
    n = 4096
    x = {"item": rng.integers(0, 500, n), "history": rng.integers(-1, 500, (n, 10)), "price": rng.normal(size=n)}
    return Dataset(x, np.exp(rng.normal(size=n)))


def _steps(head: Any) -> Callable[[], object]:
    from transun import Adam, EmbeddingMLP, Model, fit

    data = _data()
    model = Model(EmbeddingMLP({"item": 500}, bags={"history": "item"}, numeric=("price",)), head)
    return lambda: fit(model, data, plain_recipe(batch_size=512, optimiser=Adam()), progress=False)


def _predictions(call: str) -> Callable[[], object]:
    import transun
    from transun import EmbeddingMLP, LogSUN, Model

    data = _data()
    backbone = EmbeddingMLP({"item": 500}, bags={"history": "item"}, numeric=("price",))
    model = Model(backbone, LogSUN(shared=1)).prepare(data.targets().double())
    function = getattr(transun, call)
    return lambda: function(model, data, batch_size=512)


def _metric(name: str, rows: int) -> Callable[[], object]:
    from transun.metrics import metric_named
    from transun.metrics.sketch import XAUCSketch

    rng = np.random.default_rng(0)
    y = rng.gamma(1.0, 1.0, rows)
    pred = y + rng.normal(size=rows)
    metric = XAUCSketch() if name == XAUCSketch.label else metric_named(name)
    return lambda: metric(pred, y)


def _encoding() -> Callable[[], object]:
    from transun.data.features import Features
    from transun.data.kinds import Bag, Id, Standardised

    rng = np.random.default_rng(0)
    n = 2000
    table = {
        "item": [f"i{i}" for i in rng.integers(0, 300, n)],
        "history": [[f"i{i}" for i in row] for row in rng.integers(0, 300, (n, 5))],
        "price": rng.normal(size=n),
        "y": rng.normal(size=n),
    }
    kinds = {"item": Id(), "history": Bag(shares_table_with="item"), "price": Standardised()}
    features = Features(kinds).fit(table)
    return lambda: features.to_dataset(table, "y")


def workloads() -> dict[str, Callable[[], Callable[[], object]]]:
    """What is guarded, by name: a function that prepares the work and returns it."""
    from transun import AutoSUN, LogMSE, LogSUN

    return {
        "8 training steps, LogMSE": lambda: _steps(LogMSE()),
        "8 training steps, LogSUN, embedding shared": lambda: _steps(LogSUN(shared=1)),
        "8 training steps, AutoSUN": lambda: _steps(AutoSUN()),
        "predict, 8 batches": lambda: _predictions("predict"),
        "evaluate, 8 batches": lambda: _predictions("evaluate"),
        "XAUC, 200,000 rows": lambda: _metric("XAUC", 200_000),
        "XAUCSketch, 50,000 rows": lambda: _metric("XAUCSketch", 50_000),
        "NDCG, 200,000 rows": lambda: _metric("NDCG", 200_000),
        "features of 2,000 rows": _encoding,
    }


def measured() -> dict[str, Counts]:
    """The counts of every workload now."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = {name: cost(prepare()) for name, prepare in workloads().items()}
    finally:
        torch.set_num_threads(before)
    return found | {name: modules(code) for name, code in IMPORTS.items()}


def regressions(now: dict[str, Counts], stored: dict[str, Counts]) -> list[str]:
    """A sentence for each count that is higher than stored, and for each workload that is not stored."""
    found = [f"{name} is not stored: run {RENEW}" for name in now if name not in stored]
    found += [f"{name} is stored but gone: run {RENEW}" for name in stored if name not in now]
    for name in [name for name in now if name in stored]:
        for kind, before in stored[name].items():
            after = now[name][kind]
            if after > max(before, LEAST) * TOLERANCE[kind]:
                more = f"{after / before:.2f} times" if before else "more than"
                found.append(
                    f"{name} got slower: {after:,} {kind}, {more} the {before:,} stored. "
                    f"Find out why, or if it is worth it run {RENEW}"
                )
    return found


def main(write: bool) -> int:
    """Compare and say, or store."""
    now = measured()
    if write:
        STORED.parent.mkdir(exist_ok=True)
        STORED.write_text(json.dumps(now, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    for name, counts in now.items():
        print(f"{name:45s}", {kind: (value, stored.get(name, {}).get(kind)) for kind, value in counts.items()})
    found = regressions(now, stored)
    print("\n".join(found) or "nothing got slower")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv))
