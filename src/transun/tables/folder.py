"""Tables larger than memory: Parquet files that are read a few times, of which only a sample is ever in memory."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data import Dataset, Features, HoldOut, HoldOutRows
from transun.data.formats import PARQUET, ParquetPart, find_files
from transun.data.inference import guess
from transun.data.parquet import ParquetFiles, RowRange
from transun.data.row_rules import AllOf, Finite, Not, RowRule
from transun.data.sample import HashSample
from transun.data.schema import require_columns
from transun.data.seen_rows import SeenRows
from transun.data.stream import ParquetStream
from transun.data.vocabulary import IdCounts
from transun.support.extras import need
from transun.support.memory import free_memory
from transun.support.paths import arrow_arguments, as_path, is_path
from transun.support.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamedFolder", "is_larger_than_memory", "survey_folder"]

# Training in memory holds the table, its encoded columns and parts of both, so a table may take this share of it.
_SHARE = 1 / 8
# Bytes and rows of the sample that numbers, head and trees are learned from, and of the buffers that rows wait in.
_SAMPLE_BYTES, _FEWEST, _MOST = 1 << 28, 1 << 16, 1 << 20
_BUFFER_BYTES = 1 << 27
# Rows of the first look at a folder, which tells kinds of columns, and the row groups that they are taken from.
_LOOK_ROWS, _LOOK_GROUPS = 1 << 17, 64


def is_larger_than_memory(source: Any) -> bool:
    """Whether a source is Parquet files that would take too much of the free memory to be trained on there.

    >>> is_larger_than_memory({"gmv": [1.0]})
    False
    """
    if not is_path(source):
        return False
    format, files = find_files(as_path(source))
    free = free_memory()
    if format is not PARQUET or free is None:
        return False
    return _stored_bytes(files) > _SHARE * free


@dataclass(frozen=True)
class StreamedFolder:
    """Parquet files, read once from end to end: their parts, and of each as much as fits in memory.

    Attributes:
        train: the training rows.
        valid: the validation rows, few enough for memory.
        test: the rows held out for the certificate; None if none are.
        features: how to read the columns; numbers are not learned yet unless they were before.
        counts: of the ids of all training rows, by column.
        sample: a sample of the training rows, all of them if they fit.
        test_sample: likewise of the rows held out.
        dropped: rows without a target, which belong to no part.

    """

    train: ParquetPart
    valid: ParquetPart
    test: ParquetPart | None
    features: Features
    counts: Mapping[str, IdCounts]
    sample: "pa.Table"
    test_sample: "pa.Table"
    dropped: int

    @property
    def rows(self) -> int:
        """The rows to train and validate on."""
        return len(self.train) + len(self.valid)

    def fitted(self) -> Features:
        """The features, fitted to the training rows: vocabularies to all of them, numbers to the sample."""
        return self.features.fit_sample(self.sample.select(list(self.features.sources)), self.counts)

    def stream(self, features: Features, target: str, weight: str | None) -> ParquetStream:
        """The training rows in batches."""
        files = self.train.files
        assert files.rule is not None  # a part has one
        stream = ParquetStream(files.files, features, target, weight, shuffle_rows=_buffer_rows(features))
        return stream.where(files.rule, files.rows)

    def sampled(self, features: Features, target: str, weight: str | None) -> Dataset:
        """The sample of the training rows, encoded."""
        return features.to_dataset(self.sample, target, weight)

    def validation(self, features: Features, target: str, weight: str | None) -> Dataset | None:
        """The validation rows, encoded; None if there are none."""
        return features.to_dataset(self.valid, target, weight) if len(self.valid) else None

    def seen(self, data: Dataset) -> SeenRows:
        """What to remember of the training rows, from the sample."""
        return SeenRows.of_sample(data, len(self.train))

    def words(self) -> str:
        """What was learned from a sample, in a sentence; empty if the sample is all rows."""
        if len(self.sample) == len(self.train):
            return ""
        error = 1.5 / math.sqrt(len(self.sample))
        forgotten = "".join(
            f"; ids of {name!r} in {counts.missed:,} rows or fewer are forgotten"
            for name, counts in self.counts.items()
            if counts.missed
        )
        return (
            f"streamed: the network reads all {len(self.train):,} training rows; trees, scales and ranks of numbers "
            f"(to {error:.2%}) are learned from a random {len(self.sample):,} of them{forgotten}"
        )


def survey_folder(
    path: Path,
    target: str,
    *,
    weight: str | None = None,
    features: Features | None = None,
    exclude: Iterable[str] = (),
    keep: Iterable[str] = (),
    hold_out: HoldOut = HoldOutRows(),
    test_share: float = 0.0,
    valid_share: float = 0.1,
    most_valid: int = 1 << 17,
    seed: int = 0,
    progress: bool | None = None,
) -> StreamedFolder:
    """Read the Parquet files of a folder once: guess its columns, split its rows, count its ids and draw a sample.

    Memory is that of the sample, 256 MB, and of the ids that are counted. Rows are split by a hash of their number, or
    of a column's value, so that each row is on the same side whenever it is read.

    Args:
        path: a Parquet file or a folder of them.
        target: the column to predict; rows without a finite number in it are left out.
        weight: the column of sample weights.
        features: how to read the columns; None guesses from a first look at some row groups.
        exclude: columns that a guess must leave out.
        keep: further columns of the rows held out, such as those of segments.
        hold_out: how test and validation rows are chosen.
        test_share: the share of rows held out for the certificate.
        valid_share: the share of the others that are validation rows, `most_valid` at the most.
        most_valid: see there.
        seed: of the hashes.
        progress: show a bar; None shows it on a terminal.

    """
    format, paths = find_files(path)
    if format is not PARQUET:
        raise ValueError(f"{path} holds no Parquet files, which alone can be streamed for training: convert it first")
    everything = ParquetFiles(paths)
    names = list(everything.contents)
    require_columns(names, [target, *([weight] if weight else []), *exclude, *keep, *hold_out.columns])
    look = _look(everything, names, Finite(target))
    if features is None:
        features = guess(look, target, weight=weight, exclude=exclude)
    share = min(valid_share, most_valid / max(sum(everything.rows) * (1.0 - test_share), 1.0))
    is_test, is_valid = hold_out.rules(look, test_share, share, seed)
    known = Finite(target)
    parts: dict[str, RowRule] = {
        "train": AllOf((known, Not(is_test), Not(is_valid))),
        "valid": AllOf((known, Not(is_test), is_valid)),
        "test": AllOf((known, is_test)),
    }
    sources = list(dict.fromkeys([*features.sources, target, *([weight] if weight else [])]))
    columns = list(dict.fromkeys([*sources, *keep, *hold_out.columns]))
    capacity = _sample_rows(look.select(columns))
    rows = {name: np.zeros(len(everything.groups), np.int64) for name in parts}
    samples: dict[str, HashSample] = {}
    counts: dict[str, IdCounts] = {}
    done = 0
    with Progress("surveying", sum(everything.rows), progress) as bar:
        for piece in everything.read(everything.segments(), columns):
            numbers = everything.numbers(piece)
            for name, rule in parts.items():
                chosen = rule.holds(piece.table, numbers)
                rows[name][piece.group] += int(chosen.sum())
                if name == "valid":
                    continue
                table = piece.table.filter(need("pyarrow").array(chosen))
                wanted = sources if name == "train" else columns
                sample = HashSample.of(capacity, numbers[chosen], {each: table[each] for each in wanted})
                samples[name] = samples[name] + sample if name in samples else sample
                if name == "train" and len(table):
                    for owner, some in features.count_ids(features.convert(table)).items():
                        counts[owner] = counts[owner] + some if owner in counts else some
            done += len(numbers)
            bar.advance(done)
    counts = {owner: some.joined() for owner, some in counts.items()}
    of_parts = {name: ParquetPart(everything.where(rule, rows[name].tolist())) for name, rule in parts.items()}
    train, valid, test = (of_parts[name] for name in ("train", "valid", "test"))
    if not len(train):
        raise ValueError(f"no row of {path} with a target {target!r} is left to train on: give more rows")
    if test_share and not len(test):
        raise ValueError(f"{len(train)} rows cannot be split with a test share of {test_share:g}: give more rows")
    dropped = sum(everything.rows) - len(train) - len(valid) - len(test)
    tables = {name: sample.in_order().table.select(sample.columns) for name, sample in samples.items()}
    return StreamedFolder(
        train, valid, test if test_share else None, features, counts, tables["train"], tables["test"], dropped
    )


def _look(files: ParquetFiles, names: list[str], rule: RowRule) -> "pa.Table":
    """Rows from some row groups, spread evenly over all: the whole, where it is small."""
    count = min(len(files.groups), _LOOK_GROUPS)
    chosen = sorted({index * len(files.groups) // count for index in range(count)})
    each = -(-_LOOK_ROWS // count)
    ranges = [RowRange(index, 0, min(files.rows[index], each)) for index in chosen if files.rows[index]]
    if sum(files.rows) <= _LOOK_ROWS:
        ranges = files.segments()
    pieces = list(files.read(ranges, names))
    if not pieces:
        raise ValueError(f"{files.files[0]}: the data is empty, the Parquet files have no rows")
    tables = [
        piece.table.filter(need("pyarrow").array(rule.holds(piece.table, files.numbers(piece)))) for piece in pieces
    ]
    return need("pyarrow").concat_tables(tables, promote_options="permissive")


def _stored_bytes(files: Iterable[Path]) -> int:
    parquet = need("pyarrow.parquet")
    total = 0
    for file in files:
        name, where = arrow_arguments(file)
        with parquet.ParquetFile(name, **where) as opened:
            groups = range(opened.metadata.num_row_groups)
            total += sum(opened.metadata.row_group(group).total_byte_size for group in groups)
    return total


def _sample_rows(look: "pa.Table") -> int:
    a_row = max(look.nbytes / max(len(look), 1), 1.0)
    return int(min(max(_SAMPLE_BYTES / a_row, _FEWEST), _MOST))


def _buffer_rows(features: Features) -> int:
    values = len(features.ids) + len(features.numeric) + len(features.ranks) + 8 * len(features.bags) + 1
    return int(min(max(_BUFFER_BYTES / (8 * values), _FEWEST), _MOST))
