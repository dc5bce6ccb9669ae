"""
Spark: score a table with a model that was trained in Python
============================================================

A saved model is a folder of text and numbers, which every worker loads once. Where PySpark or Java is not installed,
the function that a worker runs is called without Spark.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pandas as pd

from transun import LogSUN, Recipe, load, train

# %%
rng = np.random.default_rng(6)
item = rng.integers(0, 20, 2_000)
table = pd.DataFrame({"item": item, "price": 10.0 + item, "gmv": (10.0 + item) * rng.lognormal(0, 1, 2_000)})
folder = Path(tempfile.mkdtemp()) / "model"
train(table, "gmv", LogSUN(shared=1), recipe=Recipe(epochs=3), progress=False).save(folder)


# %%
def score(frames):
    """What a worker does with the chunks of its partition: load the model once, predict each chunk."""
    model = load(folder)
    for frame in frames:
        yield frame.assign(prediction=model.predict(frame))


if find_spec("pyspark") and which("java"):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.createDataFrame(table)
    scored = rows.mapInPandas(score, "item long, price double, gmv double, prediction double").toPandas()
    print(f"scored by Spark {spark.version}")
    spark.stop()
else:
    print("PySpark or Java is not installed: one worker, without Spark")
    scored = pd.concat(score([table.iloc[:1_000], table.iloc[1_000:]]))
print(f"{len(scored):,} rows, predicted / actual total {scored['prediction'].sum() / scored['gmv'].sum():.3f}")
