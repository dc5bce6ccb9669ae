"""How far predictions of exported files are from those in Python: every head, network and estimator, on 10,000 rows.

    python benchmarks/export_parity.py                         # all three parts; half an hour
    python benchmarks/export_parity.py --part heads --every 5  # every fifth head, of which nothing is written
    python benchmarks/export_parity.py --resume                # what an interrupted run has left

Writes benchmarks/results/parity.json, and `python benchmarks/page.py` makes docs/parity.md of it. Exit code 1 if a
prediction differs by more than 1e-5, relative to itself, or to a tenth of the mean target where it is smaller: in
single precision a difference such as eˣ - 1 has no more digits there.

A prediction is head(network(columns)), and neither knows which the other is: a graph of one is joined to a graph of the
other. So heads, corrections among them, are exported alone, and compared on raw outputs of sizes from 0.1 to 1e12;
networks are exported whole, from raw columns with unseen ids, missing values, empty lists and 1e12, under heads of one
and of two branches on any layer.

An ONNX file is opened by onnxruntime in a process that can import neither torch nor transun. Heads and networks are
compared as .pt2 files of torch too. To compile an .aoti.pt2 file takes half a minute and a C++ compiler: only networks
under two of the heads are compiled.

A correction by bins steps at the edges of its bins. A raw output that lies on an edge to its last digits may be rounded
to either side of it, in Python as well: on another processor, or among other rows. Where a prediction differs by more
than 1e-5, it is therefore compared with those that Python makes of the raw outputs moved by four units of their last
digit, up and down; the remark says how many rows these are.
"""

import argparse
import importlib
import io
import json
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
FORMS = (".onnx", ".pt2", ".aoti.pt2")
ROUNDING = 4 * float(np.finfo(np.float32).eps)


class Reading(torch.nn.Module):
    """What a served model reads off the raw outputs: the prediction, and the one before debiasing."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, raw: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """Both predictions (n,)."""
        return {"prediction": self.head(raw), "original": self.head.undebiased(raw)}


# A program without torch and transun: it reads a file and rows from its input, and writes predictions.
STRANGER = """
import pickle, sys
sys.modules["torch"] = sys.modules["transun"] = None  # to import them is an error
import onnxruntime

content, outputs, batches = pickle.load(sys.stdin.buffer)
session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
names = [each.name for each in session.get_inputs()]
made = [session.run(outputs, {name: batch[name] for name in names}) for batch in batches]
pickle.dump(made, sys.stdout.buffer)
"""

Values = Mapping[str, np.ndarray]


def run_onnx(content: bytes, outputs: Sequence[str] | None, batches: Sequence[Values]) -> list[list[np.ndarray]]:
    """The outputs of an ONNX file for every batch, in a process that can import neither torch nor transun."""
    sent = pickle.dumps((content, outputs, batches))
    done = subprocess.run([sys.executable, "-c", STRANGER], input=sent, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip().splitlines()[-1])
    made: list[list[np.ndarray]] = pickle.loads(done.stdout)
    return made


def differences(made: np.ndarray, wanted: np.ndarray, mean: float) -> np.ndarray:
    """Differences relative to the predictions wanted, or to a tenth of the mean where that is more; never NaN."""
    wanted = np.asarray(wanted, np.float64)
    return np.nan_to_num(np.abs(made - wanted) / np.abs(wanted).clip(0.1 * mean), nan=np.inf)


@dataclass(frozen=True)
class Parity:
    """The largest relative difference between a model in Python and its files.

    Args:
        distances: by the form of the file.
        remark: what a reader has to know about them.

    """

    distances: Mapping[str, float]
    remark: str = ""


@torch.no_grad()
def head_parity(head: Head, rows: int = ROWS) -> Parity:
    """That of a head as ONNX and as .pt2, over raw outputs of several sizes."""
    generator = torch.Generator().manual_seed(0)
    y = torch.distributions.LogNormal(0.0, 1.0).icdf(torch.rand(500, generator=generator).clamp(1e-3, 1 - 1e-3))
    head = head.prepare(y).eval()
    batch = torch.export.Dim("batch")
    reading = Reading(head).eval()
    program = torch.export.export(
        reading, (raw_for(head, 8),), dynamic_shapes=(tuple({0: batch} for _ in head.branches),)
    )
    outputs = ["prediction", "original"]
    raws = [raw_for(head, rows // 5, 1, scale) for scale in (0.1, 1.0, 5.0, 1e4, 1e12)]
    content = torch_to_onnx(program, len(head.branches), outputs).SerializeToString()
    batches = [{f"column_{number}": part.numpy() for number, part in enumerate(raw)} for raw in raws]
    file = io.BytesIO()
    torch.export.save(program, file)
    loaded = torch.export.load(io.BytesIO(file.getvalue())).module()
    made = {
        ".onnx": run_onnx(content, outputs, batches),
        ".pt2": [[loaded(raw)[output].numpy() for output in outputs] for raw in raws],
    }
    wanted = np.array([[reading(raw)[output].numpy() for output in outputs] for raw in raws])
    mean = float(y.mean())
    return Parity({form: float(differences(np.array(each), wanted, mean).max()) for form, each in made.items()})


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


COMPILED = ("LogSUN(shared=1)", "corrected")


def predict_onnx(file: Path, values: Values, columns: Mapping[str, torch.Tensor]) -> np.ndarray:
    """Predictions of an ONNX file, of values as they are."""
    ((prediction,),) = run_onnx(file.read_bytes(), ["prediction"], [values])
    return prediction


def predict_torch(file: Path, values: Values, columns: Mapping[str, torch.Tensor]) -> np.ndarray:
    """Predictions of a .pt2 file, of tensors."""
    return np.asarray(torch.export.load(file).module()(columns)["prediction"])


def predict_compiled(file: Path, values: Values, columns: Mapping[str, torch.Tensor]) -> np.ndarray:
    """Predictions of a compiled file, of tensors."""
    return np.asarray(torch._inductor.aoti_load_package(str(file))(columns)["prediction"])


PREDICT = dict(zip(FORMS, (predict_onnx, predict_torch, predict_compiled), strict=True))


@torch.no_grad()
def table_parity(model: TableModel, forms: Sequence[str] = FORMS) -> Parity:
    """That of a table model in several forms, from raw columns.

    torch has no text: in its files columns of text are inputs of codes, which the features of the model make.
    """
    rng = np.random.default_rng(1)
    inputs = {each.name: each for graph in model.features.graphs() for each in graph.inputs}
    values = {key: each.draw(ROWS, rng) for key, each in inputs.items()}
    table = {key: each.to_arrow(values[key]) for key, each in inputs.items()}
    encoded = model.features.encode(table)
    columns: dict[str, torch.Tensor] = {}
    for graph in model.features.graphs(text=False):
        for each in graph.inputs:
            columns[each.name] = encoded[each.name] if graph.encoded else torch.from_numpy(values[each.name])
    with tempfile.TemporaryDirectory() as folder:
        files = {form: export(model, Path(folder) / f"model{form}").path for form in forms}
        made = {form: PREDICT[form](file, values, columns) for form, file in files.items()}
    mean = float(np.mean(orders(300)["gmv"]))
    wanted = model.predict(table).numpy()
    raw = model.model.raw(encoded)
    moved = [
        model.model.over_members(model.model.head(tuple(part * factor for part in raw))).numpy()
        for factor in (1 - ROUNDING, 1 + ROUNDING)
    ]
    distances, steps = {}, 0
    for form, each in made.items():
        plain = differences(each, wanted, mean)
        least = np.minimum.reduce([plain, *(differences(each, other, mean) for other in moved)])
        on_step = (plain > TOLERANCE) & (least <= TOLERANCE)
        distances[form], steps = float(np.where(on_step, least, plain).max()), max(steps, int(on_step.sum()))
    return Parity(distances, f"{steps} of {ROWS:,} rows on a step of the prediction" if steps else "")


def network_parity(network: str, head: str) -> Parity:
    """That of a network under a head, trained for an epoch."""
    kinds = {"item": Id(), "country": Id(), "genres": Bag(Split("|")), "price": Number(), "ordered": Datetime()}
    features = Features(kinds | {"clicks": Bag(Split("|"))})
    data, recipe = orders(300), Recipe(epochs=1)
    made = HEADS["LogMSE" if head == "corrected" else head]()
    model = train(data, "gmv", made, features=features, backbone=NETWORKS[network], recipe=recipe, progress=False)
    if head == "corrected":
        fitted = calibrate(model.model, model.dataset(data), BinnedSmearing(4))
        model = TableModel(model.features, fitted, "gmv")
    return table_parity(model, FORMS if head in COMPILED else FORMS[:2])


def default_parity(only: str | None) -> Parity:
    """That of what `train` makes where no head is named."""
    return table_parity(train(orders(900), "gmv", only=only, recipe=Recipe(budget=20), progress=False))


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
    "GTSRegressor, compact": lambda inner: GTSRegressor(inner, cv=2, random_state=0),
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


def estimator_parity(estimator: str, library: str) -> Parity:
    """That of an estimator around a booster, which becomes an ONNX file alone.

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
    ((made,),) = run_onnx(to_onnx(model, x[:1]).SerializeToString(), None, [{"X": new}])
    return Parity({".onnx": float(differences(made[:, 0], model.predict(new), float(y.mean())).max())})


Models = Iterator[tuple[str, Callable[[], Parity]]]


def heads() -> Models:
    """Every head, wrapper and correction of tests/registry.py; some are there under several names, and equal."""
    for text, head in {name(head): head for head in all_heads()}.items():
        yield text, partial(head_parity, head)


def networks() -> Models:
    """Every network under heads that differ in their branches, boosted trees, and what `train` makes by default."""
    for network in NETWORKS:
        for head in (*HEADS, "corrected"):
            yield f"{network}, {head}", partial(network_parity, network, head)
    yield "boosted trees", partial(default_parity, "trees")
    yield "trees and a network, as by default", partial(default_parity, None)


def estimators() -> Models:
    """Every estimator around every booster."""
    for estimator in ESTIMATORS:
        for library in LIBRARIES:
            yield f"{estimator} of {library}", partial(estimator_parity, estimator, library)


PARTS = {"heads": heads, "networks": networks, "estimators": estimators}


def measure(work: Callable[[], Parity]) -> tuple[list[float | None], bool, str]:
    """The distance of every form of file, whether all are within the tolerance, and a remark."""
    try:
        parity = work()
    except ModuleNotFoundError as error:
        return [None] * len(FORMS), False, f"not measured: {error.name} is not installed"
    except Exception as error:  # a model that cannot be written is a result too
        return [None] * len(FORMS), False, f"{type(error).__name__}: {str(error)[:150]}"
    infinite = [form for form, distance in parity.distances.items() if np.isinf(distance)]
    rounded = {form: float(f"{each:.1e}") for form, each in parity.distances.items() if form not in infinite}
    remark = f"{', '.join(infinite)}: not finite on one side only" if infinite else parity.remark
    return [rounded.get(form) for form in FORMS], max(parity.distances.values()) <= TOLERANCE, remark


def not_measured(rows: list[list[Any]]) -> list[str]:
    """How many models of which part an interrupted run has left, as a note; none if it has left none."""
    left = {part: len(list(models())) - sum(row[0] == part for row in rows) for part, models in PARTS.items()}
    counts = ", ".join(f"{count} {part}" for part, count in left.items() if count)
    return [f"The list is not complete: {counts} are left, which `--resume` measures."] if counts else []


def save(rows: list[list[Any]]) -> None:
    """Write the results so far."""
    write(
        "parity",
        "The largest difference between predictions of an exported file and of the same model in Python, on 10,000 "
        "random and extreme rows: relative to the prediction, or to a tenth of the mean target where the prediction is "
        f"less. Wanted: at most {TOLERANCE:g}.",
        ["part", "model", *FORMS, "within", "remark"],
        rows,
        [
            "Heads are compared on raw outputs of 0.1 to 1e12, networks from raw columns, estimators from X.",
            "ONNX files are opened in a process that can import neither torch nor transun.",
            *not_measured(rows),
        ],
        where=machine("torch", "onnxruntime", "skl2onnx", "onnxmltools"),
        script="export_parity.py",
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
            measured, within, remark = measure(work)
            rows.append([part, model, *measured, within, remark])
            print("  " if within else "!!", *measured, part, model, remark, flush=True)
            if arguments.every == 1:
                save(sorted(rows, key=lambda row: list(PARTS).index(row[0])))
    wrong = sum(not row[-2] for row in rows)
    print(f"{wrong} of {len(rows)} models differ by more than {TOLERANCE:g}, or were not measured")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
