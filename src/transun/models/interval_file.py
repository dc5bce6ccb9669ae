"""The intervals of rows beside a saved model: a JSON file, written anew when they are learned from other rows."""

import json
from pathlib import Path

from transun.models.description import describe_model
from transun.models.row_intervals import RowIntervals
from transun.support.files import checksum, write_json

__all__ = ["read_intervals", "save_intervals"]

FILE = "intervals.json"


def save_intervals(intervals: RowIntervals | None, folder: str | Path) -> None:
    """Write the intervals into the folder of the model that they are of, or remove those of another model."""
    path = Path(folder) / FILE
    if intervals is None:
        path.unlink(missing_ok=True)
        return
    body = {"model": describe_model(folder).checksum, "intervals": intervals.to_dict()}
    write_json(path, {**body, "checksum": checksum(body)})


def read_intervals(folder: str | Path) -> RowIntervals | None:
    """The intervals in the folder of a model; None where there are none, or they belong to another model."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        stored = body.pop("checksum")
        intervals = RowIntervals.from_dict(body["intervals"])
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged: remove it, or learn the intervals again") from None
    if stored != checksum(body):
        raise ValueError(f"{path} was changed after it was written: remove it, or learn the intervals again")
    return intervals if body["model"] == describe_model(folder).checksum else None
