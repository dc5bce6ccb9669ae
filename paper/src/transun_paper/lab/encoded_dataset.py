"""Encoded data sets: training, validation and test rows in a file that torch and numpy alone can read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from transun.data import Dataset
from transun.support.files import replacing

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class EncodedDataset:
    """A data set as every method of a comparison gets it: the same rows, split and encoded the same way.

    Args:
        name: the name that people use.
        train: rows to learn from; features were fitted to these alone.
        valid: rows that choose learning rates, the end of training and corrections.
        test: rows that choose nothing.
        ids: sizes of the id columns, as `EmbeddingMLP` takes them.
        bags: sizes of the columns of lists of ids, as `EmbeddingMLP` takes them.
        numeric: names of the numeric columns.
        notes: how the rows were split and where they come from, in sentences.

    """

    name: str
    train: Dataset
    valid: Dataset
    test: Dataset
    ids: Mapping[str, int | str]
    bags: Mapping[str, int | str]
    numeric: tuple[str, ...] = ()
    notes: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each part."""
        return {part: len(getattr(self, part)) for part in PARTS}

    def save(self, path: Path) -> None:
        """Write one compressed `.npz`. Integers are narrowed, because the file is copied between machines."""
        about = {
            "name": self.name,
            "sizes": self.sizes,
            "ids": dict(self.ids),
            "bags": dict(self.bags),
            "numeric": self.numeric,
            "notes": self.notes,
        }
        arrays = {"about": np.array(json.dumps(about, ensure_ascii=False))}
        for part in PARTS:
            data = getattr(self, part)
            arrays[f"{part}/y"] = data.y.numpy()
            arrays |= {f"{part}/x/{name}": _narrow(column.numpy()) for name, column in data.x.items()}
        with replacing(path) as draft, draft.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its second parameter is a flag

    @classmethod
    def load(cls, path: Path) -> "EncodedDataset":
        """Read what `save` wrote; nothing in the file is executed."""
        if not path.is_file():
            raise FileNotFoundError(f"there is no encoded data set {path}: encode it first, where the source is")
        with np.load(path, allow_pickle=False) as file:
            about = _about(file)
            train, valid, test = (_part(file, part) for part in PARTS)
        columns = about["ids"], about["bags"], tuple(about["numeric"])
        return cls(about["name"], train, valid, test, *columns, about["notes"])


def cache_path(cache: Path, key: str) -> Path:
    """The file of an encoded data set in a folder of them."""
    return cache / f"{key}.npz"


def describe(path: Path) -> dict[str, Any]:
    """Name, sizes and columns of an encoded data set, without reading its rows."""
    with np.load(path, allow_pickle=False) as file:
        return _about(file)


@cache
def training_rows(folder: Path, key: str) -> int:
    """How many training rows an encoded data set has."""
    return int(describe(cache_path(folder, key))["sizes"]["train"])


def _about(file: Any) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(str(file["about"]))
    return about


def _part(file: Any, part: str) -> Dataset:
    prefix = f"{part}/x/"
    x = {key.removeprefix(prefix): file[key] for key in file.files if key.startswith(prefix)}
    return Dataset(x, file[f"{part}/y"])


def _narrow(column: np.ndarray) -> np.ndarray:
    return column if column.dtype.kind == "f" else column.astype(np.int32)
