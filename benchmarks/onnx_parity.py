"""How far predictions of ONNX files are from those in Python: every head, network and estimator, on 10,000 rows.

    python benchmarks/onnx_parity.py                       # all three parts; some minutes
    python benchmarks/onnx_parity.py --part heads --every 5  # every fifth head, which nothing is written of
    python benchmarks/onnx_parity.py --resume              # what an interrupted run has left

Writes benchmarks/results/parity.json, and `python benchmarks/page.py` makes docs/parity.md of it. Exit code 1 if a
prediction differs by more than 1e-5, relative to itself, or to a tenth of the mean target where it is smaller: in
single precision a difference such as eˣ - 1 has no more digits there.

A prediction is head(network(columns)), and neither knows which the other is: a graph of one is joined to a graph of the
other. So heads, corrections among them, are exported alone, and compared on raw outputs of sizes from 0.1 to 1e12;
networks are exported whole, from raw columns with unseen ids, missing values, empty lists and 1e12, under heads of one
and of two branches on any layer.
"""

import argparse
import importlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from record import RESULTS, machine, write

from registry import all_heads, name, raw_for
from transun import DIN, ZILN, Features, LogMSE, LogSUN, Recipe, TableModel, calibrate, train
from transun.corrections import BinnedSmearing
from transun.data import Bag, Datetime, Id, Number, Split
from transun.estimators import (
    BalancedRegressor,
    CorrectedRegressor,
    GTSRegressor,
    MulticalibratedRegressor,
    UnbiasedRegressor,
    to_onnx,
)
from transun.heads import Head
from transun.tables import export
from transun.tables.model import embedding_mlp, tabm
from transun.tables.onnx_graph import torch_to_onnx

TOLERANCE = 1e-5
ROWS = 10_000


class Reading(torch.nn.Module):
    """What a served model reads off the raw outputs: the prediction, and the one before debiasing."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, raw: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """Both predictions (n,)."""
        return {"prediction": self.head(raw), "original": self.head.undebiased(raw)}


def open_session(model: Any) -> Any:
    """A session of onnxruntime for a model, or for the file of one."""
    import onnxruntime

    content = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def relative(made: np.ndarray, wanted: np.ndarray, mean: float) -> float:
    """The largest difference relative to the prediction wanted, or to a tenth of the mean where that is more."""
    wanted = np.asarray(wanted, np.float64)
    difference = np.abs(made - wanted) / np.abs(wanted).clip(0.1 * mean)
    return float(difference.max()) if np.isfinite(difference).all() else float("inf")


def distance(head: Head, rows: int = ROWS) -> float:
    """The largest relative difference between a head in Python and as ONNX, over raw outputs of several sizes."""
    generator = torch.Generator().manual_seed(0)
    y = torch.distributions.LogNormal(0.0, 1.0).icdf(torch.rand(500, generator=generator).clamp(1e-3, 1 - 1e-3))
    head = head.prepare(y).eval()
    batch = torch.export.Dim("batch")
    reading = Reading(head).eval()
    program = torch.export.export(
        reading, (raw_for(head, 8),), dynamic_shapes=(tuple({0: batch} for _ in head.branches),)
    )
    session = open_session(torch_to_onnx(program, len(head.branches), ["prediction", "original"]))
    largest = 0.0
    for scale in (0.1, 1.0, 5.0, 1e4, 1e12):
        raw = raw_for(head, rows // 5, 1, scale)
        values = {f"column_{number}": part.numpy() for number, part in enumerate(raw)}
        used = {each.name: values[each.name] for each in session.get_inputs()}
        with torch.no_grad():
            expected = reading(raw)
        for made, wanted in zip(session.run(["prediction", "original"], used), expected.values(), strict=True):
            largest = max(largest, relative(made, wanted.numpy(), float(y.mean())))
    return largest


def orders(rows: int) -> dict[str, np.ndarray]:
    """Ids, text, lists in a text, numbers of several sizes and times."""
    rng = np.random.default_rng(0)
    return {
        "item": rng.integers(0, 9, rows),
        "country": rng.choice(["DE", "FR", "IT"], rows),
        "genres": rng.choice(["x|y", "x", "z|y|x|w", "w|z"], rows),
        "price": np.where(rng.random(rows) < 0.1, np.nan, rng.lognormal(0.0, 2.0, rows)),
        "ordered": np.datetime64("2024-01-01", "us") + rng.integers(0, 10**13, rows),
        "clicks": rng.choice(["1|2", "3", "0|1|2", "8|4"], rows),
        "gmv": rng.lognormal(1.0, 1.0, rows),
    }


def din(features: Features) -> DIN:
    """DIN over the features of `orders`, small."""
    return DIN(
        features.ids,
        {name: size for name, size in features.bags.items() if name != "clicks"},
        features.numeric,
        4,
        (8,),
        ranks=features.ranks,
        history={"clicks": "item"},
    )


NETWORKS: dict[str, Any] = {
    "EmbeddingMLP": partial(embedding_mlp, dim=4, hidden=(8, 8)),
    "TabM": partial(tabm, dim=4, hidden=(8,), members=2),
    "DIN": din,
}
HEADS: dict[str, Callable[[], Head]] = {
    "LogMSE": LogMSE,
    "LogSUN(shared=0)": partial(LogSUN, shared=0),
    "LogSUN(shared=1)": partial(LogSUN, shared=1),
    "LogSUN(shared='all')": partial(LogSUN, shared="all"),
    "ZILN": ZILN,
}


def table_distance(model: TableModel) -> float:
    """The largest relative difference between a table model in Python and its file, from raw columns."""
    with tempfile.TemporaryDirectory() as folder:
        session = open_session(export(model, Path(folder) / "model.onnx").path)
    rng = np.random.default_rng(1)
    inputs = {each.name: each for graph in model.features.graphs() for each in graph.inputs}
    values = {key: each.draw(ROWS, rng) for key, each in inputs.items()}
    table = {key: each.to_arrow(values[key]) for key, each in inputs.items()}
    (made,) = session.run(["prediction"], {each.name: values[each.name] for each in session.get_inputs()})
    return relative(made, model.predict(table).numpy(), float(np.mean(orders(300)["gmv"])))


def network_distance(network: str, head: str) -> float:
    """That of a network under a head, trained for an epoch."""
    kinds = {"item": Id(), "country": Id(), "genres": Bag(Split("|")), "price": Number(), "ordered": Datetime()}
    features = Features(kinds | {"clicks": Bag(Split("|"))})
    data, recipe = orders(300), Recipe(epochs=1)
    made = HEADS["LogMSE" if head == "corrected" else head]()
    model = train(data, "gmv", made, features=features, backbone=NETWORKS[network], recipe=recipe, progress=False)
    if head == "corrected":
        fitted = calibrate(model.model, model.dataset(data), BinnedSmearing(4))
        model = TableModel(model.features, fitted, "gmv")
    return table_distance(model)


def default_distance(only: str | None) -> float:
    """That of what `train` makes without being told a head."""
    return table_distance(train(orders(900), "gmv", only=only, recipe=Recipe(budget=20), progress=False))


def booster(library: str) -> Any:
    """A small booster, or a pipeline, by its library."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if library == "pipeline":
        return make_pipeline(StandardScaler(), LinearRegression())
    if library == "scikit-learn":
        return HistGradientBoostingRegressor(max_iter=30)
    module = importlib.import_module(library)
    if library == "catboost":
        silent = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
        return module.CatBoostRegressor(iterations=30, **silent)
    if library == "xgboost":
        return module.XGBRegressor(n_estimators=30, n_jobs=1)
    return module.LGBMRegressor(n_estimators=30, verbose=-1, n_jobs=1)


LIBRARIES = ("lightgbm", "xgboost", "catboost", "scikit-learn", "pipeline")
ESTIMATORS: dict[str, Callable[[Any], Any]] = {
    "GTSRegressor": lambda inner: GTSRegressor(inner, cv=2, random_state=0),
    "GTSRegressor, in-sample, by squares": lambda inner: GTSRegressor(inner, cv=None, emphasis=0.0),
    "UnbiasedRegressor": lambda inner: UnbiasedRegressor(inner, cv=2, budget=6, random_state=0),
    "UnbiasedRegressor, compact": lambda inner: UnbiasedRegressor(inner, cv=2, budget=6, random_state=0),
    "CorrectedRegressor": lambda inner: CorrectedRegressor(inner, cv=2, random_state=0),
    "CorrectedRegressor, isotonic": lambda inner: CorrectedRegressor(
        inner, bias_correction="isotonic", cv=2, random_state=0
    ),
    "BalancedRegressor": lambda inner: BalancedRegressor(inner, cv=2, random_state=0),
    "MulticalibratedRegressor": lambda inner: MulticalibratedRegressor(inner, cv=2, random_state=0),
}


def features(seed: int, rows: int) -> np.ndarray:
    """Three numbers of both signs, and a small whole one."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(rows, 3)), rng.integers(0, 4, rows)]).astype(np.float32)


def estimator_distance(estimator: str, library: str) -> float:
    """That of an estimator around a booster.

    Linear models compute in double precision, and trees in single, in which ONNX keeps their thresholds. At ±1e12 a
    linear model has no digits left, and is spared these rows.
    """
    linear = library == "pipeline"
    x = features(0, 1_500).astype(np.float64 if linear else np.float32)
    rng = np.random.default_rng(0)
    y = np.exp(0.7 * x[:, 0] + 0.4 * x[:, 1] * rng.normal(size=len(x)) + 0.2 * x[:, 3])
    model = ESTIMATORS[estimator](booster(library)).fit(x, y)
    if estimator.endswith("compact"):
        model = model.compact(x, y)
    extreme = [0.0, 1e-12] if linear else [1e12, -1e12, 0.0, 1e-12]
    new = np.concatenate([features(1, ROWS - len(extreme)) * 2, [[each] * 4 for each in extreme]]).astype(x.dtype)
    (made,) = open_session(to_onnx(model, x[:1])).run(None, {"X": new})
    return relative(made[:, 0], model.predict(new), float(y.mean()))


def heads() -> Iterator[tuple[str, Callable[[], float]]]:
    """Every head, wrapper and correction of tests/registry.py."""
    for head in all_heads():
        yield name(head), partial(distance, head)


def networks() -> Iterator[tuple[str, Callable[[], float]]]:
    """Every network under heads that differ in their branches, boosted trees, and what `train` makes by default."""
    for network in NETWORKS:
        for head in (*HEADS, "corrected"):
            yield f"{network}, {head}", partial(network_distance, network, head)
    yield "boosted trees", partial(default_distance, "trees")
    yield "trees and a network, as by default", partial(default_distance, None)


def estimators() -> Iterator[tuple[str, Callable[[], float]]]:
    """Every estimator around every booster."""
    for estimator in ESTIMATORS:
        for library in LIBRARIES:
            yield f"{estimator} of {library}", partial(estimator_distance, estimator, library)


PARTS = {"heads": heads, "networks": networks, "estimators": estimators}


def measure(work: Callable[[], float]) -> tuple[float | None, str]:
    """The distance, or None, and why there is none."""
    try:
        largest = work()
    except ModuleNotFoundError as error:
        return None, f"not measured: {error.name} is not installed"
    except Exception as error:  # a model that cannot be written is a result too
        return None, f"{type(error).__name__}: {str(error)[:150]}"
    return (largest, "") if np.isfinite(largest) else (None, "not finite on one side only")


def not_measured(rows: list[list[Any]]) -> list[str]:
    """How many models of which part an interrupted run has left, as a note; none if it has left none."""
    left = {part: len(list(models())) - sum(row[0] == part for row in rows) for part, models in PARTS.items()}
    counts = ", ".join(f"{count} {part}" for part, count in left.items() if count)
    return [f"The list is not complete: {counts} are left, which `--resume` measures."] if counts else []


def save(rows: list[list[Any]]) -> None:
    """Write the results so far."""
    write(
        "parity",
        "The largest difference between predictions of an ONNX file and of the same model in Python, on 10,000 random "
        "and extreme rows: relative to the prediction, or to a tenth of the mean target where the prediction is less. "
        f"Wanted: at most {TOLERANCE:g}.",
        ["part", "model", "largest difference", "within", "remark"],
        rows,
        [
            "Heads are compared on raw outputs of 0.1 to 1e12, networks from raw columns, estimators from X.",
            *not_measured(rows),
        ],
        where=machine("torch", "onnxruntime", "skl2onnx", "onnxmltools"),
        script="onnx_parity.py",
    )


def main() -> int:
    """Measure what is asked for, and return 1 if a difference is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, help="one part alone; results of the others are kept")
    parser.add_argument("--every", type=int, default=1, help="take every n-th model, and write nothing")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    file = RESULTS / "parity.json"
    before = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    chosen = [arguments.part] if arguments.part else list(PARTS)
    rows = [row for row in before if arguments.resume or row[0] not in chosen]
    known = {(row[0], row[1]) for row in rows}
    for part in chosen:
        for model, work in list(PARTS[part]())[:: arguments.every]:
            if (part, model) in known:
                continue
            largest, remark = measure(work)
            within = largest is not None and largest <= TOLERANCE
            rows.append([part, model, None if largest is None else float(f"{largest:.1e}"), within, remark])
            print(f"{'   ' if within else '!! '}{largest} {part} {model} {remark}", flush=True)
            if arguments.every == 1:
                save(sorted(rows, key=lambda row: list(PARTS).index(row[0])))
    wrong = sum(not row[3] for row in rows)
    print(f"{wrong} of {len(rows)} models differ by more than {TOLERANCE:g}, or were not measured")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
