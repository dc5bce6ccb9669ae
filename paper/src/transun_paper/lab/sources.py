"""Where frozen data comes from: the public data sets, split by hash, and whatever else is registered."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from transun.data import hashing
from transun.data.split import hash_rows
from transun.support.extras import need
from transun_paper.datasets.public import PUBLIC, PublicDataset, load
from transun_paper.lab.encoded_dataset import PARTS, Frozen

# Ends of training and validation rows on the unit interval that hashes fall in; the rest is for testing.
TRAIN_END, VALID_END = 0.8, 0.9
# Changing how rows are split or encoded must change this, lest old caches and old results be taken for new ones.
_VERSION = 1

# What identifies a row. A user's two views of one video are one draw seen twice and stay on one side. The other three
# have one row per order, session or person, whose number is no feature and not in the table: their place is the key.
# Users, items and customers are on both sides on purpose: the task is to predict for known ids.
KEYS: dict[str, tuple[str, ...]] = {
    "kuairand": ("user_id", "video_id"),
    "lastfm": ("userID", "artistID"),
    "movietweetings": ("user_id", "movie_id"),
}


@dataclass(frozen=True)
class Source:
    """A data set that can be frozen.

    Args:
        fingerprint: a text that changes when the rows, their split or their encoding do.
        build: makes the frozen data; called only where no file with this fingerprint is there yet.

    """

    fingerprint: Callable[[], str]
    build: Callable[[], Frozen]


def freeze(name: str, source: Source, cache: Path) -> str:
    """The key of a data set, whose rows are in `cache/KEY.npz` from now on.

    A key is the name and the beginning of a hash of the fingerprint: data that changes gets another key, so that
    neither an old file nor an old result is ever taken for it.
    """
    key = f"{name}-{hashlib.sha256(source.fingerprint().encode()).hexdigest()[:8]}"
    path = cache_path(cache, key)
    if not path.exists():
        source.build().save(path)
    return key


def cache_path(cache: Path, key: str) -> Path:
    """Where frozen data lies."""
    return cache / f"{key}.npz"


def public(name: str, rows: int | None = None) -> Source:
    """A public data set: 80 % of its rows to train, 10 % to choose, 10 % to test, by a hash of what identifies a row.

    Features are fitted to the training rows alone; ids that first appear later share one vector.

    Args:
        name: one of `PUBLIC`.
        rows: keep about so many rows, those with the smallest other hash; None keeps all.

    """
    loaded: list[PublicDataset] = []

    def data() -> PublicDataset:
        if not loaded:
            loaded.append(load(name))
        return loaded[0]

    def fingerprint() -> str:
        found = data()
        return f"v{_VERSION} {found.features.columns} by {KEYS.get(name)} of {rows} rows: {_digest(found.table)}"

    return Source(fingerprint, lambda: split_public(data(), rows))


def split_public(data: PublicDataset, rows: int | None = None) -> Frozen:
    """The frozen form of a loaded data set."""
    table, all_rows = data.table, len(data.table)
    keys = KEYS.get(data.name)
    place = hash_rows(table, keys, seed=0) if keys else _by_place(all_rows, "split")
    if rows is not None and rows < all_rows:
        kept = np.sort(np.argsort(_by_place(all_rows, "lab.rows"), kind="stable")[:rows])
        table, place = table.take(kept), place[kept]
    sides = (place < TRAIN_END, (place >= TRAIN_END) & (place < VALID_END), place >= VALID_END)
    pa = need("pyarrow")
    parts = [table.filter(pa.array(side)) for side in sides]
    features = data.features.fit(parts[0])
    encoded = {name: features.to_dataset(part, data.target) for name, part in zip(PARTS, parts, strict=True)}
    unit = "rows with equal " + " and ".join(keys) if keys else "each row"
    notes = f"{unit} on one side, by hash" + (
        f"; {rows:,} of {all_rows:,} rows by hash" if len(place) < all_rows else ""
    )
    return Frozen(data.name, **encoded, ids=features.ids, bags=features.bags, numeric=features.numeric, notes=notes)


def freeze_public(
    cache: Path, names: Iterable[str] = PUBLIC, rows: Mapping[str, int] = MappingProxyType({})
) -> dict[str, str]:
    """Key by name of public data sets, frozen where they were not yet."""
    return {name: freeze(name, public(name, rows.get(name)), cache) for name in names}


def _by_place(rows: int, stream: str) -> np.ndarray:
    return hashing.uniform(torch.arange(rows), 0, stream).numpy()


def _digest(table: Any) -> str:
    """A hash of the values of a table, whatever pieces it is stored in."""
    pa = need("pyarrow")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as stream:
        stream.write_table(table.replace_schema_metadata(None).combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()
