"""AutoGluon in medium quality on the tables of a folder; see `transun_paper.board.external` for the files.

Needs `pip install autogluon.tabular[all]` in an environment of its own: python autogluon_medium.py FOLDER
"""

import json
import sys
import tempfile
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Train within the seconds of the request, predict, and write the result."""
    pandas: Any = import_module("pandas")
    tabular: Any = import_module("autogluon.tabular")
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    train, valid, test = (pandas.read_parquet(folder / f"{part}.parquet") for part in ("train", "valid", "test"))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as models:
        # The problem is named, because a target of few whole numbers would be taken for classes.
        predictor = tabular.TabularPredictor(
            request["target"],
            problem_type="regression",
            eval_metric="root_mean_squared_error",
            path=models,
            verbosity=0,
        )
        predictor.fit(
            train,
            tuning_data=valid,
            presets="medium_quality",
            time_limit=request["seconds"],
            num_cpus=1,
            num_gpus=0,
        )
        seconds = time.perf_counter() - began
        predictions = {name: predictor.predict(part).tolist() for name, part in (("valid", valid), ("test", test))}
        details = {"version": version("autogluon.tabular"), "best": str(predictor.model_best)}
    result = {**predictions, "seconds": seconds, "details": details}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
