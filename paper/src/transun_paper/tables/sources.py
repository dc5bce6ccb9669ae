"""The paper's own public data, frozen for people who have the files: CIKM16 and DTMart."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from transun_paper.datasets.paper import cikm16, dtmart
from transun_paper.datasets.public import PublicDataset
from transun_paper.lab.sources import Source, freeze, split_public

# Changing how rows are read, split or encoded must change this.
_VERSION = 1


@dataclass(frozen=True)
class Own:
    """A data set that a person brings: how to read its folder, and which files there decide what it is."""

    read: Callable[[Path], PublicDataset]
    files: tuple[str, ...]


OWN: dict[str, Own] = {
    "cikm16": Own(cikm16, ("train-item-views.csv", "train-queries.csv")),
    "dtmart": Own(dtmart, ("Sales.csv",)),
}


def own_source(name: str, folder: Path) -> Source:
    """CIKM16 or DTMart from a folder: 80 % of its rows to train, 10 % to choose, 10 % to test, by hash.

    The paper has no validation rows: it trains on 80 % and tests on 20 %.

    Args:
        name: `cikm16` or `dtmart`.
        folder: holds the files as they are distributed.

    """
    if name not in OWN:
        raise ValueError(f"{name!r} is not among the paper's data sets that files are read of: {', '.join(OWN)}")
    own = OWN[name]

    def fingerprint() -> str:
        return f"v{_VERSION} {name}: {', '.join(_digest(folder / file) for file in own.files)}"

    return Source(fingerprint, lambda: split_public(own.read(folder)))


def freeze_own(cache: Path, folders: Mapping[str, Path]) -> dict[str, str]:
    """Key by name of the paper's data sets in these folders, frozen where they were not yet."""
    return {name: freeze(name, own_source(name, folder), cache) for name, folder in folders.items()}


def _digest(file: Path) -> str:
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file.absolute()}; the folder must hold it as it is distributed")
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
