"""
ONNX: the whole prediction in one graph
=======================================

The graph holds the network, the inverse transform, κ, z and every clamp, so that a service computes what Python does.
It is compared with the model before it is written.
"""

import tempfile
from pathlib import Path

import numpy as np

from transun import LogSUN, Recipe, export, train

# %%
rng = np.random.default_rng(5)
item = rng.integers(0, 20, 3_000)
table = {"item": item, "price": 10.0 + item, "gmv": (10.0 + item) * rng.lognormal(0, 1, 3_000)}
model = train(table, "gmv", LogSUN(shared=1), recipe=Recipe(epochs=3), progress=False)

# %%
# Where the extra `onnx` is not installed, the same call with a file name that ends in .pt2 writes a graph for torch.
try:
    import onnxruntime  # noqa: F401

    name = "model.onnx"
except ModuleNotFoundError:
    name = "model.pt2"
with tempfile.TemporaryDirectory() as folder:
    written = export(model, Path(folder) / name)
    print(f"{name}: {written.path.stat().st_size / 1e3:.0f} kB, largest relative difference {written.difference:.1e}")
    print(*sorted(path.name for path in Path(folder).iterdir()), sep=", ")
