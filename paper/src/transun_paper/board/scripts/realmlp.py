"""RealMLP with its tuned defaults on the tables of a folder; see `transun_paper.board.external` for the files.

Needs `pip install pytabkit` in an environment of its own: python realmlp.py FOLDER
"""

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Train by squared error, stop by the validation rows, predict, and write the result."""
    pandas: Any = import_module("pandas")
    pytabkit: Any = import_module("pytabkit")
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    target = request["target"]
    train, valid, test = (pandas.read_parquet(folder / f"{part}.parquet") for part in ("train", "valid", "test"))
    features = [_features(part, train.drop(columns=target)) for part in (train, valid, test)]
    # Targets in units of their mean: the library standardises them, but in single precision.
    unit = float(train[target].mean())
    model = pytabkit.RealMLP_TD_Regressor(device="cpu", n_cv=1, n_threads=1, random_state=request["seed"])
    began = time.perf_counter()
    model.fit(features[0], train[target] / unit, features[1], valid[target] / unit)
    seconds = time.perf_counter() - began
    held_out = (("valid", features[1]), ("test", features[2]))
    predictions = {name: [unit * float(value) for value in model.predict(part)] for name, part in held_out}
    result = {**predictions, "seconds": seconds, "details": {"version": version("pytabkit")}}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


def _features(part: Any, train: Any) -> Any:
    """Text as it is, times as numbers, and missing numbers replaced by the median of the training rows."""
    frame = part[train.columns].copy()
    for name in train.columns:
        kind = train[name].dtype.kind
        if kind == "M":
            frame[name] = frame[name].astype("int64").astype("float64")
        elif kind in "iuf":
            frame[name] = frame[name].astype("float64").fillna(float(train[name].median()))
        else:
            frame[name] = frame[name].astype("object").fillna("missing").astype("str")
    return frame


if __name__ == "__main__":
    main(Path(sys.argv[1]))
