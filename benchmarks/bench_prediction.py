"""What the bias branch costs in prediction: exported LogSUN against exported LogMSE, call by call.

Writes benchmarks/results/prediction.json. Both graphs are written by `export`, loaded again, and called in turn
with the same rows, so that other work on the machine slows both down. Only two graphs at a time: the weights of more
graphs evict each other from the processor's cache, and reading them again would be part of the time.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_overhead import DIM, HIDDEN, ITEMS, LIST, SHARED, SMALL, USERS, arithmetic
from record import Cell, machine, write

from transun import EmbeddingMLP, Features, LogMSE, LogSUN, Model, fit
from transun.data.kinds import Bag, Id, Kind, Numbered
from transun.heads import Head
from transun.tables.graph_export import export
from transun.tables.model import TableModel, embedding_mlp
from transun.training.recipe import plain_recipe

CALLS = {1: 4000, 64: 3000, 4096: 400}
TRAINED = 10_240
HEADS: dict[int, Head] = {0: LogMSE()} | {shared: LogSUN(shared=shared) for shared in SHARED}  # 0: no branch
FORMATS = {"torch": ".pt2", "onnxruntime": ".onnx"}

Call = Callable[[], object]


def table(rows: int) -> dict[str, np.ndarray]:
    """Rows in which every id occurs, so that tables have their full size."""
    rng = np.random.default_rng(0)
    columns = {name: rng.permutation(rows) % size for name, size in {"user_id": rows, **SMALL}.items()}
    columns |= {f"item_{place}": rng.permutation(rows) % (ITEMS + 1) - 1 for place in range(LIST)}
    return columns | {"y": rng.lognormal(5.0, 1.2, rows)}


def graphs(folder: Path, formats: dict[str, str]) -> tuple[dict[tuple[str, int], Any], EmbeddingMLP, Any]:
    """Every exported graph, the network they hold, and rows to predict."""
    rows = table(USERS["123k ids"])
    kinds: dict[str, Kind] = {name: Id() for name in ("user_id", *SMALL)} | {"item": Bag(Numbered(LIST))}
    features = Features(kinds).fit(rows)
    data = features.to_dataset(rows, "y")
    backbone, loaded = embedding_mlp(features, dim=DIM, hidden=HIDDEN), {}
    for side, head in HEADS.items():
        model = Model(backbone, head)
        fit(model, data.take(torch.arange(TRAINED)), plain_recipe())
        for runtime, suffix in formats.items():
            found = export(TableModel(features, model, "y"), folder / f"{side}{suffix}", encoded=True, original=False)
            print(f"{runtime}, {side}: differs from the model by {found.difference:.1e}", flush=True)
            loaded[runtime, side] = LOADERS[runtime](found.path)
    return loaded, backbone, data.x


def load_torch(path: Path) -> Callable[[dict[str, torch.Tensor]], Call]:
    graph = torch.export.load(path).module()
    return lambda x: lambda: graph(x)


def load_onnx(path: Path) -> Callable[[dict[str, torch.Tensor]], Call]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def prepare(x: dict[str, torch.Tensor]) -> Call:
        arrays = {name: column.numpy() for name, column in x.items()}
        return lambda: session.run(None, arrays)

    return prepare


LOADERS = {"torch": load_torch, "onnxruntime": load_onnx}


def alternate(calls: dict[int, Call], count: int) -> dict[int, np.ndarray]:
    """Milliseconds of every call; the sides take turns, in an order that turns as well."""
    times: dict[int, list[float]] = {side: [] for side in calls}
    sides = list(calls)
    for number in range(count + count // 10):
        for side in sides[number % len(sides) :] + sides[: number % len(sides)]:
            began = time.perf_counter()
            calls[side]()
            times[side].append(1e3 * (time.perf_counter() - began))
    return {side: np.array(found[count // 10 :]) for side, found in times.items()}


def main() -> None:
    torch.set_num_threads(1)
    present = all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))
    formats = FORMATS if present else {"torch": FORMATS["torch"]}
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as folder:
        loaded, backbone, x = graphs(Path(folder), formats)
    with torch.inference_mode():
        for size, count in CALLS.items():
            batch = {name: column[:size].clone() for name, column in x.items()}
            for runtime in formats:
                for shared in SHARED:
                    times = alternate({side: loaded[runtime, side](batch) for side in (0, shared)}, count)
                    plain, found = times[0], times[shared]
                    more = [
                        100 * (measure(found) / measure(plain) - 1)
                        for measure in (np.mean, np.median, lambda values: np.quantile(values, 0.99))
                    ]
                    least = 100 * arithmetic(backbone, shared, size) / np.median(plain)
                    row: list[Cell] = [runtime, size, shared, float(np.median(plain))]
                    rows.append([*row, *(round(float(value), 1) for value in (*more, least))])
                    print(*rows[-1], flush=True)
    write(
        "prediction",
        "Time of a prediction by one exported file with the bias branch, LogSUN, over that of LogMSE on the same "
        f"network: Globo's columns, {USERS['123k ids'] + ITEMS:,} ids, embeddings of {DIM}, layers {HIDDEN}. Aim: mean "
        "and 99th percentile within 2 %.",
        [
            "runtime",
            "rows a call",
            "shared stages",
            "median ms without",
            "mean, more %",
            "median, more %",
            "p99, more %",
            "least %",
        ],
        rows,
        [
            "Calls of each, the file with the branch and the one without in turn: "
            f"{', '.join(f'{count:,} with {size} rows' for size, count in CALLS.items())}.",
            "The least is the branch's multiplications at the rate of a product of large matrices, over a call without "
            "it: no layout of the same arithmetic costs less. The torch file joins layers of both branches "
            "where few zeros come between them, all of them with 3 or 4 shared stages; the ONNX file keeps them apart, "
            "which its runtime computes faster.",
            *([] if present else ["onnx, onnxscript and onnxruntime are not installed: only torch was measured."]),
        ],
        where=machine("torch", *(["onnxruntime"] if present else [])),
    )


if __name__ == "__main__":
    main()
