"""
ONNX: from raw columns to a prediction in one file
==================================================

The file holds everything between a row of the table and its prediction: vocabularies and scales, the network, the
inverse transform, κ, z and every clamp. Who serves it needs onnxruntime and nothing of this library.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from transun import LogSUN, Recipe, export, train

# %%
rng = np.random.default_rng(5)
item = rng.integers(0, 20, 3_000)
table = {"item": item, "price": 10.0 + item, "gmv": (10.0 + item) * rng.lognormal(0, 1, 3_000)}
model = train(table, "gmv", LogSUN(shared=1), recipe=Recipe(epochs=3), progress=False)

# %%
# `export` compares the graph with the model before it keeps the file. Without the extra `onnx` the same call with a
# name that ends in .pt2 writes a graph for torch.
name = "model.onnx" if find_spec("onnxruntime") else "model.pt2"
folder = Path(tempfile.mkdtemp())
written = export(model, folder / name)
print(f"{name}: {written.path.stat().st_size / 1e3:.0f} kB, largest relative difference {written.difference:.1e}")

# %%
# Where it is served: columns in, by their names, and predictions out. The third item was never seen in training.
if find_spec("onnxruntime"):
    import onnxruntime

    session = onnxruntime.InferenceSession(written.path)
    rows = {"item": np.array([3, 7, 999]), "price": np.array([13.0, 17.0, 20.0])}
    print("served", session.run(["prediction"], rows)[0].round(3))
    print("Python", np.asarray(model.predict(rows)).round(3))
else:
    print("onnxruntime is not installed: pip install 'transun[onnx]'")
