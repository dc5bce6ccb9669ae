"""How long a served model takes, by one ONNX file from raw columns or features: call by call, as ratios.

Writes benchmarks/results/serving.json. Each pair of functions is called in turn with the same rows. Times are those of
the processor, on one thread, because other work on the machine would lengthen those of the clock. Networks with and
without the bias branch differ by less than two processes do, in which their weights lie elsewhere in memory: they are
compared in several processes.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from lightgbm import LGBMRegressor
from record import Cell, machine, write

from transun import GTSRegressor, LogMSE, LogSUN, Recipe, UnbiasedRegressor, train
from transun.data import Datetime, Features, Id, Number
from transun.estimators import to_onnx
from transun.heads import Head
from transun.tables import export

CALLS = {1: 2_000, 4096: 40}
PROCESSES = 5
ROWS = 8192

Call = Callable[[], object]


def table(rows: int) -> dict[str, np.ndarray]:
    """Two columns of ids, three numbers and a time, as of orders."""
    rng = np.random.default_rng(0)
    item = rng.integers(0, 2000, rows)
    columns = {
        "country": rng.choice(["DE", "FR", "IT", "ES"], rows).astype(object),
        "item": item,
        "price": rng.lognormal(2.0, 1.0, rows),
        "age": rng.uniform(18.0, 80.0, rows),
        "discount": np.where(rng.random(rows) < 0.3, np.nan, rng.random(rows)),
        "ordered": np.datetime64("2024-01-01", "us") + rng.integers(0, 3 * 10**13, rows),
    }
    return columns | {"gmv": columns["price"] * (1 + item % 7) * rng.lognormal(0.0, 1.0, rows)}


def session(content: bytes, inputs: Mapping[str, np.ndarray], output: str | None = None) -> Call:
    """A call of an ONNX file with these inputs, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    opened = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda: opened.run(None if output is None else [output], dict(inputs))


def alternate(calls: Mapping[str, Call], count: int) -> dict[str, np.ndarray]:
    """Milliseconds of every call; the first tenth is not counted.

    Every other turn goes through the calls backwards: the first one of a turn finds less of what it needs in the caches
    of the processor, which is two per cent of the time of one row.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(count + count // 10):
        for name, call in list(calls.items())[:: -1 if turn % 2 else 1]:
            began = time.process_time()
            call()
            times[name].append(1e3 * (time.process_time() - began))
    return {name: np.array(values[count // 10 :]) for name, values in times.items()}


def write_networks(folder: Path, data: Mapping[str, np.ndarray]) -> None:
    """A network from raw columns, with the bias branch on its last layer and without, as ONNX files."""
    heads: dict[str, Head] = {"with": LogSUN(shared="all"), "without": LogMSE()}
    for name, head in heads.items():
        kinds = {"item": Id(), "price": Number(), "age": Number(), "discount": Number(), "ordered": Datetime()}
        features = Features({"country": Id(), **kinds})
        model = train(data, "gmv", head, features=features, recipe=Recipe(epochs=1), progress=False)
        export(model, folder / f"{name}.onnx", original=False)


def time_networks(folder: Path) -> dict[int, dict[str, np.ndarray]]:
    """Milliseconds of the calls of both files, by rows a call."""
    data, times = table(ROWS), {}
    for size, count in CALLS.items():
        inputs = {name: values[:size] for name, values in data.items() if name != "gmv"}
        inputs["ordered"] = inputs["ordered"].astype("datetime64[us]").astype(np.int64)
        files = {name: (folder / f"{name}.onnx").read_bytes() for name in ("with", "without")}
        calls = {name: session(content, inputs, "prediction") for name, content in files.items()}
        times[size] = alternate(calls, count)
    return times


def ratios(times: Mapping[str, np.ndarray]) -> list[float]:
    """The mean, the median and the 99th percentile of the first over those of the second."""
    measures = (np.mean, np.median, lambda values: np.quantile(values, 0.99))
    return [round(float(measure(times["with"]) / measure(times["without"])), 3) for measure in measures]


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = table(ROWS)
    features = np.column_stack([data[name].astype(np.float32) for name in ("item", "price", "age", "discount")])
    booster = LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1)
    plain = LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1).fit(features, data["gmv"])
    estimators: dict[str, Any] = {}
    for kind in (GTSRegressor, UnbiasedRegressor):
        estimator = kind(booster, random_state=0).fit(features, data["gmv"])
        compact = estimator.compact(features, data["gmv"])
        estimators |= {kind.__name__: estimator, f"compact {kind.__name__}": compact}
    with tempfile.TemporaryDirectory() as folder:
        write_networks(Path(folder), data)
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            by_process = pool.map(time_networks, [Path(folder)] * PROCESSES, chunksize=1)
    rows: list[list[Cell]] = []
    spread = []
    for size, count in CALLS.items():
        each = [process[size] for process in by_process]
        means = sorted(ratios(times)[0] for times in each)
        spread.append(f"{means[0]} to {means[-1]} for {size:,}")
        joined = {name: np.concatenate([times[name] for times in each]) for name in ("with", "without")}
        measured = {"LogSUN on the last layer, ONNX | LogMSE, ONNX": joined}
        few = np.ascontiguousarray(features[:size])
        for name, estimator in estimators.items():
            served = session(to_onnx(estimator, features[:1]).SerializeToString(), {"X": few})
            calls: dict[str, Call] = {"with": served, "without": lambda few=few: plain.predict(few)}
            measured[f"{name} of LightGBM, ONNX | one LightGBM, its own predict"] = alternate(calls, count)
            calls = {"with": served, "without": lambda few=few, model=estimator: model.predict(few)}
            measured[f"{name} of LightGBM, ONNX | the same through Python"] = alternate(calls, count)
        for name, times in measured.items():
            rows.append([*name.split(" | "), size, round(float(np.median(times["with"])), 3), *ratios(times)])
            print(*rows[-1], flush=True)
    write(
        "serving",
        "Processor time of a call of an ONNX file from raw columns (networks) or features (boosters), over that of "
        "another way to predict the same rows. Aims: a network with its bias branch on the last layer at most 1.03 of "
        "one without; GTSRegressor by ONNX faster than one LightGBM through scikit-learn. For thousands of rows the "
        "second aim is that of a compact one.",
        ["this", "over", "rows a call", "median ms of this", "ratio of means", "of medians", "of 99th percentiles"],
        rows,
        [
            f"Calls in turn: {', '.join(f'{count:,} of {size:,} rows' for size, count in CALLS.items())}.",
            f"Networks are compared in {PROCESSES} processes, whose ratios of means are {', '.join(spread)} rows.",
            "A call of one row costs LightGBM the way through scikit-learn and little else. One of 4,096 rows costs "
            "the walk through the trees: a GTSRegressor has six boosters of 100 trees, one LightGBM has one. A compact "
            "estimator has one booster again.",
        ],
        where=machine("torch", "onnxruntime", "lightgbm"),
    )


if __name__ == "__main__":
    main()
