"""The examples of the guide run where their tool is installed, and leave there what the model and its history have.

Each runs in a process of its own: tools keep global state, and their warnings are not ours.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?:\{code-block\} python\n:name: (\w+)\n\n|python\n)(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLES = BLOCK.findall((ROOT / "docs" / "guides" / "trackers.md").read_text(encoding="utf-8"))
NAMED = {name: code for name, code in EXAMPLES if name}
# The first block of the page trains the model that the others take.
MODEL = next(code for name, code in EXAMPLES if not name)

TENSORBOARD = """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator("runs/first").Reload()
for name in ("RMSE", "PGR"):
    logged = [(event.step, event.value) for event in events.Scalars(f"valid/{name}")]
    checks = [(check.step, check.values[name]) for check in model.history.checks]
    assert [step for step, _ in logged] == [step for step, _ in checks]
    assert np.allclose([value for _, value in logged], [value for _, value in checks])  # TensorBoard has float32
assert {"loss/total", "loss/bias", "learning_rate"} <= set(events.Tags()["scalars"])
import copy

copy.deepcopy(tracker).log(1, {"loss/total": 1.0})  # as scikit-learn copies parameters of estimators
"""

WANDB = """
from transun.training.tracking import PrefixedTracker

tracker.log(20, {"valid/PGR": 0.5})
PrefixedTracker(tracker, "fold_2/").log(10, {"valid/PGR": 0.75})  # fewer steps than before
summary = dict(wandb.run.summary)
wandb.finish()
assert (summary["valid/PGR"], summary["fold_2/valid/PGR"], summary["training_step"]) == (0.5, 0.75, 10)
"""

MLFLOW = """
import json
from mlflow.client import MlflowClient
from transun import NRMSE, PGR, STRE, XAUC
from transun.data import Features, HashedId
from transun.integrations.mlflow import save_model
from wide_rows import new_rows, wide_model

first = mlflow.search_runs(output_format="list", order_by=["start_time"])[0]
history = MlflowClient().get_metric_history(first.info.run_id, "valid/PGR")
checks = [(check.step, check.values["PGR"]) for check in model.history.checks]
assert [(point.step, point.value) for point in history] == checks

pred = model.predict(table).numpy()
assert np.allclose(served.predict(frame.drop(columns="gmv")), pred, rtol=1e-5)
for metric in (PGR, STRE, NRMSE, XAUC):
    assert np.isclose(result.metrics[metric.name], metric(pred, table["gmv"]), rtol=1e-4), metric
assert np.isclose(result.metrics["sum_on_prediction"], pred.sum(), rtol=1e-5)
assert np.isclose(result.metrics["sum_on_target"], table["gmv"].sum())

metrics = MlflowClient().get_run(logged.run_id).data.metrics
assert (metrics["pgr"], metrics["pgr_low"], metrics["pgr_high"]) == (1.0, 0.95, 1.05)
folder = mlflow.artifacts.download_artifacts(logged.model_uri)
assert json.loads(open(f"{folder}/data/model/certificate.json").read())["target"] == "gmv"
requirements = open(f"{folder}/requirements.txt").read()
assert "onnxruntime==" in requirements and "transun" not in requirements and "torch" not in requirements

wide = wide_model()
save_model(wide, "wide")
new_rows().to_pickle("rows.pkl")
np.save("expected.npy", wide.predict(new_rows()).numpy())

names = {"name": ["a", "b"] * 50, "gmv": [1.0, 2.0] * 50}
kinds = Features({"name": HashedId(8)})
hashed = train(names, "gmv", LogSUN(), features=kinds, recipe=Recipe(epochs=1), progress=False)
try:
    save_model(hashed, "hashed")
except ValueError as error:
    assert "column 'name' cannot be encoded inside the ONNX file" in str(error), error
else:
    raise AssertionError("a model that needs transun was saved")
"""

# Where the model is served.
SERVED = """
import sys

sys.modules["transun"] = None  # an import of it fails, as if it were not installed
import mlflow
import numpy as np
import pandas as pd

served = mlflow.pyfunc.load_model("wide")
assert np.allclose(served.predict(pd.read_pickle("rows.pkl")), np.load("expected.npy"), rtol=1e-5)
assert "torch" not in sys.modules
print(served.metadata.signature)
"""


def run(code, folder):
    paths = [str(ROOT / "tests"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        # A database, MLflow's default, takes longer than all the rest.
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_TRACKING_URI": str(folder / "mlruns"),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "WANDB_SILENT": "true",
    }
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def need(*libraries):
    for library in libraries:
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")


def test_tensorboard(tmp_path):
    need("tensorboard")
    run(MODEL + NAMED["tensorboard"] + TENSORBOARD, tmp_path)


def test_wandb(tmp_path):
    need("wandb")
    run(MODEL + NAMED["wandb"] + WANDB, tmp_path)
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_torchmetrics(tmp_path):
    need("torchmetrics")
    run(MODEL + NAMED["torchmetrics"], tmp_path)


def test_mlflow_and_a_model_that_is_served_without_transun(tmp_path):
    need("mlflow", "matplotlib", "onnxruntime", "pandas")
    example = "".join(NAMED[f"mlflow_{part}"] for part in ("tracker", "model", "evaluate"))
    # As the comment in the example says.
    certified = example.replace("log_model(model)", "log_model(model, certificate=certificate())")
    run(f"from certified import certificate\n{MODEL}{certified}{MLFLOW}", tmp_path)
    signature = run(SERVED, tmp_path)
    for column in ("'country': string", "'item': long", "'shop': Any", "'price': double", "'vip': boolean"):
        assert column in signature
    for column in ("'ordered': datetime", "'tags': Array(string)", "'years': double"):
        assert column in signature


def test_every_example_is_run_here_or_by_the_tests_of_the_pages():
    run_here = {"tensorboard", "wandb", "torchmetrics", "mlflow_tracker", "mlflow_model", "mlflow_evaluate"}
    assert set(NAMED) == run_here
