"""Where encoded data comes from: the public data sets, and the paper's own for people who have the files."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data import hashing
from transun.data.split import hash_rows
from transun.support.extras import need
from transun_paper.datasets.paper import cikm16, dtmart
from transun_paper.datasets.public import PUBLIC, PublicDataset, load_public_dataset
from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path

if TYPE_CHECKING:
    import pyarrow as pa

# Ends of training and validation rows on the unit interval that hashes fall in; the rest is for testing.
TRAIN_END, VALID_END = 0.8, 0.9
# Part of every cache key. A change of how rows are read, split or encoded must change it: otherwise old files and old
# results would be taken for new ones.
_VERSION = 1

# The columns that identify a row. A user's two views of one video are one draw seen twice and stay on one side. The
# other three data sets have one row per order, session or person, whose id is no feature and is not in the table: there
# the row number is the key. Users, items and customers are on both sides on purpose, since the task is to predict for
# known ids.
KEYS: dict[str, tuple[str, ...]] = {
    "kuairand": ("user_id", "video_id"),
    "lastfm": ("userID", "artistID"),
    "movietweetings": ("user_id", "movie_id"),
}


@dataclass(frozen=True)
class DatasetSource:
    """A data set that can be encoded.

    Args:
        fingerprint: a text that changes when the rows, their split or their encoding change.
        build: makes the encoded data set; called only where no file with this fingerprint exists yet.

    """

    fingerprint: Callable[[], str]
    build: Callable[[], EncodedDataset]


def encode_dataset(name: str, source: DatasetSource, cache: Path) -> str:
    """The cache key of a data set, whose rows are in `cache/KEY.npz` after this call.

    The key is the name and the beginning of a hash of the fingerprint. Data that changes gets another key, so that
    neither an old file nor an old result is taken for it.
    """
    key = f"{name}-{hashlib.sha256(source.fingerprint().encode()).hexdigest()[:8]}"
    path = cache_path(cache, key)
    if not path.exists():
        source.build().save(path)
    return key


def public_source(name: str, rows: int | None = None) -> DatasetSource:
    """A public data set: 80 % of its rows to train, 10 % to choose, 10 % to test, by a hash of what identifies a row.

    Features are fitted to the training rows alone; ids that first appear later share one vector.

    Args:
        name: one of `PUBLIC`.
        rows: keep about so many rows, those with the smallest other hash; None keeps all.

    """
    loaded: list[PublicDataset] = []

    def data() -> PublicDataset:
        if not loaded:
            loaded.append(load_public_dataset(name))
        return loaded[0]

    def fingerprint() -> str:
        return f"v{_VERSION} {data().features.columns} by {KEYS.get(name)} of {rows} rows: {_digest(data().table)}"

    return DatasetSource(fingerprint, lambda: split_public(data(), rows))


def split_public(data: PublicDataset, rows: int | None = None) -> EncodedDataset:
    """The encoded form of a loaded data set."""
    keys, all_rows = KEYS.get(data.name), len(data.table)
    parts = split_rows(data.table, keys, rows)
    features = data.features.fit(parts[0])
    train, valid, test = (features.to_dataset(part, data.target) for part in parts)
    unit = "rows with equal " + " and ".join(keys) if keys else "each row"
    cut = f"; {rows:,} of {all_rows:,} rows by hash" if rows is not None and rows < all_rows else ""
    columns = features.ids, features.bags, features.numeric
    return EncodedDataset(data.name, train, valid, test, *columns, f"{unit} on one side, by hash{cut}")


def split_rows(table: "pa.Table", keys: tuple[str, ...] | None = None, rows: int | None = None) -> "list[pa.Table]":
    """Training, validation and test rows: 80, 10 and 10 % by a hash, which no order of the rows can spoil.

    Args:
        table: all rows.
        keys: the columns that identify a row, so that rows with equal values stay on one side; None hashes its number.
        rows: keep about so many rows, see `sample_rows`.

    """
    hashes = hash_rows(table, keys, seed=0) if keys else _row_hashes(len(table), "split")
    kept = sample_rows(len(table), rows)
    table, hashes = table.take(kept), hashes[kept]
    sides = (hashes < TRAIN_END, (hashes >= TRAIN_END) & (hashes < VALID_END), hashes >= VALID_END)
    return [table.filter(need("pyarrow").array(side)) for side in sides]


def sample_rows(count: int, rows: int | None) -> np.ndarray:
    """The numbers of the rows with the smallest hashes, in order; all of them where `rows` is None.

    >>> sample_rows(3, None).tolist(), len(sample_rows(100, 7))
    ([0, 1, 2], 7)
    """
    if rows is None or rows >= count:
        return np.arange(count)
    return np.sort(np.argsort(_row_hashes(count, "lab.rows"), kind="stable")[:rows])


def encode_public(
    cache: Path, names: Iterable[str] = PUBLIC, rows: Mapping[str, int] = MappingProxyType({})
) -> dict[str, str]:
    """Cache keys by name of public data sets, which are encoded where they were not yet."""
    return {name: encode_dataset(name, public_source(name, rows.get(name)), cache) for name in names}


@dataclass(frozen=True)
class UserDataset:
    """A data set that we may not ship and a user may have: how to read its folder, and which files decide the rows."""

    read: Callable[[Path], PublicDataset]
    files: tuple[str, ...]


USER_DATASETS: dict[str, UserDataset] = {
    "cikm16": UserDataset(cikm16, ("train-item-views.csv", "train-queries.csv")),
    "dtmart": UserDataset(dtmart, ("Sales.csv",)),
}


def user_source(name: str, folder: Path) -> DatasetSource:
    """CIKM16 or DTMart from a folder: 80 % of its rows to train, 10 % to choose, 10 % to test, by hash.

    The paper has no validation rows: it trains on 80 % and tests on 20 %.

    Args:
        name: `cikm16` or `dtmart`.
        folder: holds the files as they are distributed.

    """
    if name not in USER_DATASETS:
        known = ", ".join(USER_DATASETS)
        raise ValueError(f"{name!r} is not among the paper's data sets that files are read of: {known}")
    dataset = USER_DATASETS[name]

    def fingerprint() -> str:
        return f"v{_VERSION} {name}: {', '.join(file_digest(folder / file) for file in dataset.files)}"

    return DatasetSource(fingerprint, lambda: split_public(dataset.read(folder)))


def encode_user_datasets(cache: Path, folders: Mapping[str, Path]) -> dict[str, str]:
    """Cache keys by name of the user's data sets in these folders, which are encoded where they were not yet."""
    return {name: encode_dataset(name, user_source(name, folder), cache) for name, folder in folders.items()}


def _row_hashes(rows: int, stream: str) -> np.ndarray:
    return hashing.uniform(torch.arange(rows), 0, stream).numpy()


def _digest(table: Any) -> str:
    """A hash of the values of a table, whatever chunks it is stored in."""
    pa = need("pyarrow")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as stream:
        stream.write_table(table.replace_schema_metadata(None).combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def file_digest(file: Path) -> str:
    """A hash of the content of a file."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file.absolute()}; the folder must hold it as it is distributed")
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
