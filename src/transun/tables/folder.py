"""Tables larger than memory: Parquet files that are read a few times, of which only a sample is ever in memory."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data import Dataset, Features
from transun.data.encodings import concatenate
from transun.data.exposure import read_exposure
from transun.data.formats import PARQUET, ParquetPart, find_files
from transun.data.holdout import Split
from transun.data.inference import guess
from transun.data.parquet import ParquetFiles, Piece, RowRange
from transun.data.row_rules import AllOf, Finite, Not, RowRule
from transun.data.sample import HashSample
from transun.data.schema import require_columns
from transun.data.seen_rows import SeenRows
from transun.data.stream import ParquetStream
from transun.data.vocabulary import IdCounts
from transun.support.arguments import listed
from transun.support.arrays import Integers
from transun.support.counting import counted
from transun.support.extras import need
from transun.support.group import current_group
from transun.support.memory import free_memory, return_freed_memory
from transun.support.paths import arrow_arguments, as_path, is_path
from transun.support.progress import Progress
from transun.training.recipe import MOST_VALID

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamedFolder", "is_larger_than_memory", "is_streamed", "survey_folder"]

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


def is_streamed(source: Any, stream: bool | None) -> bool:
    """Whether training reads the rows anew in every epoch: as `stream` says, or by default if they are too many.

    Rank 0 decides for all ranks, because each may have another amount of free memory.
    """
    if stream and not is_path(source):
        raise ValueError("only files are streamed, and this table is in memory already: leave out `stream`")
    return current_group().from_leader(lambda: is_larger_than_memory(source)) if stream is None else stream


@dataclass(frozen=True)
class StreamedFolder:
    """Parquet files, read once from end to end: their parts, and of each as much as fits in memory.

    Attributes:
        train: the training rows.
        valid: the validation rows, in memory.
        test: the rows held out for the certificate; None if none are.
        calibration: the rows from which totals of segments are put right, in memory; None if none are.
        features: how to read the columns; numbers are not learned yet unless they were before.
        counts: of the ids of all training rows, by column.
        sample: a sample of the training rows, all of them if they fit.
        test_sample: likewise of the rows held out.
        dropped: rows without a target, which belong to no part.

    """

    train: ParquetPart
    valid: "pa.Table"
    test: ParquetPart | None
    calibration: "pa.Table | None"
    features: Features
    counts: Mapping[str, IdCounts]
    sample: "pa.Table"
    test_sample: "pa.Table"
    dropped: int

    @property
    def rows(self) -> int:
        """The rows to train, validate and calibrate on."""
        return len(self.train) + len(self.valid) + (0 if self.calibration is None else len(self.calibration))

    def fitted(self) -> Features:
        """The features, fitted to the training rows: vocabularies to all of them, numbers to the sample."""
        return self.features.fit_sample(self.sample.select(list(self.features.sources)), self.counts)

    def stream(self, features: Features, target: str, weight: str | None, exposure: str | None) -> ParquetStream:
        """The training rows in batches."""
        files = self.train.files
        assert files.rule is not None  # a part has one
        stream = ParquetStream(files.files, features, target, weight, exposure, shuffle_rows=_buffer_rows(features))
        return stream.where(files.rule, files.rows)

    def sampled(self, features: Features, target: str, weight: str | None, exposure: str | None) -> Dataset:
        """The sample of the training rows, encoded."""
        return features.to_dataset(self.sample, target, weight, exposure)

    def validation(self, features: Features, target: str, weight: str | None, exposure: str | None) -> Dataset | None:
        """The validation rows, encoded; None if there are none."""
        return features.to_dataset(self.valid, target, weight, exposure) if len(self.valid) else None

    def calibration_rows(
        self, features: Features, target: str, weight: str | None, exposure: str | None
    ) -> Dataset | None:
        """The calibration rows, encoded; None if there are none."""
        return None if self.calibration is None else features.to_dataset(self.calibration, target, weight, exposure)

    def seen(self, data: Dataset) -> SeenRows:
        """What to remember of the training rows, from the sample."""
        return SeenRows.of_sample(data, len(self.train))

    def description(self) -> str:
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
    split: Split = Split(),
    *,
    weight: str | None = None,
    exposure: str | None = None,
    features: Features | None = None,
    exclude: Iterable[str] = (),
    keep: Iterable[str] = (),
    progress: bool | None = None,
) -> StreamedFolder:
    """Read the Parquet files of a folder once: guess its columns, split its rows, count its ids and draw a sample.

    Memory is that of the sample, 256 MB, and of the ids that are counted. Rows are split by a hash of their number, or
    of a column's value, so that each row is on the same side whenever it is read.

    Args:
        path: a Parquet file or a folder of them.
        target: the column to predict; rows without a finite number in it are left out.
        split: which rows are for training, validation and the certificate. There are 50,000 validation rows at most,
            because they are held in memory.
        weight: the column of sample weights.
        exposure: the column that amounts were collected over, which a guess leaves out of the features.
        features: how to read the columns; None guesses from a first look at some row groups.
        exclude: columns that a guess must leave out.
        keep: further columns of the rows held out, such as those of segments.
        progress: show a progress bar; None shows it on a terminal.

    """
    split.rule.refuse_target(target)
    excluded, kept_columns = listed("exclude", exclude), listed("keep", keep)
    format, paths = find_files(path)
    if format is not PARQUET:
        raise ValueError(f"{path} holds no Parquet files, which alone can be streamed for training: convert it first")
    files = ParquetFiles(paths)
    weights = [name for name in (weight, exposure) if name]
    names = list(files.contents)
    require_columns(names, [target, *weights, *excluded, *kept_columns, *split.rule.columns])
    known = Finite(target)
    spread = _spread_rows(files, names, known)
    if features is None:
        features = guess(spread, target, weight=weight, exclude=[*excluded, *([exposure] if exposure else [])])
    sources = list(dict.fromkeys([*features.sources, target, *weights]))
    columns = list(dict.fromkeys([*sources, *kept_columns, *split.rule.columns]))
    capacity = _sample_rows(spread.select(columns))
    learned = max(sum(files.rows) * (1.0 - split.test_share), 1.0)
    calibrating = min(split.calibration_share, capacity / learned)
    validating = min(split.valid_share, MOST_VALID / (learned * (1.0 - calibrating)))
    is_test, is_calibration, is_valid = split.rule.rules(spread, split.test_share, calibrating, validating, split.seed)
    kept = (known, Not(is_test), Not(is_calibration))
    every_row = sum(files.rows)
    # Validation and calibration rows are few, and kept as they come, which saves a pass over all rows for each.
    parts = {
        "train": _PartSurvey(AllOf((*kept, Not(is_valid))), files, capacity, sources, features),
        "valid": _PartSurvey(AllOf((*kept, is_valid)), files, every_row, columns),
        "calibration": _PartSurvey(AllOf((known, Not(is_test), is_calibration)), files, every_row, columns),
        "test": _PartSurvey(AllOf((known, is_test)), files, min(capacity, _LOOK_ROWS), columns),
    }
    sums = _survey(files, parts, columns, progress, known, exposure)
    train, test = (ParquetPart(files.where(parts[name].rule, sums[name].rows.tolist())) for name in ("train", "test"))
    valid, calibration = (sums[name].table() for name in ("valid", "calibration"))
    if not len(train):
        raise ValueError(f"no row of {path} with a target {target!r} is left to train on: give more rows")
    for name, share, part in (("test", split.test_share, test), ("calibration", split.calibration_share, calibration)):
        if share and not len(part):
            raise ValueError(
                f"{counted(len(train), 'row')} cannot be split with a {name} share of {share:g}: give more rows"
            )
    return_freed_memory()  # the training that follows needs memory of its own
    return StreamedFolder(
        train,
        valid,
        test if split.test_share else None,
        calibration if split.calibration_share else None,
        features,
        {owner: counts.joined() for owner, counts in sums["train"].counts.items()},
        sums["train"].table(),
        sums["test"].table(),
        dropped=every_row - sum(map(len, (train, valid, calibration, test))),
    )


@dataclass(frozen=True)
class _PartSums:
    """What is kept of the rows of a part: how many each row group has, a sample, and counts of ids."""

    rows: Integers
    sample: HashSample
    counts: Mapping[str, IdCounts]

    def __add__(self, other: "_PartSums") -> "_PartSums":
        owners = dict.fromkeys((*self.counts, *other.counts))
        both = ([of.counts[owner] for of in (self, other) if owner in of.counts] for owner in owners)
        counts = {owner: reduce(add, of_owner) for owner, of_owner in zip(owners, both, strict=True)}
        return _PartSums(self.rows + other.rows, self.sample + other.sample, counts)

    def table(self) -> "pa.Table":
        """The sample, in the order of the rows."""
        return self.sample.in_order().table


@dataclass(frozen=True)
class _PartSurvey:
    """How the rows of a part are summarised.

    Args:
        rule: which rows belong to the part.
        files: of all rows.
        capacity: the most rows of the sample.
        columns: of the sample.
        features: whose ids are counted; None counts none.

    """

    rule: RowRule
    files: ParquetFiles
    capacity: int
    columns: list[str]
    features: Features | None = None

    def summarise(self, piece: Piece) -> _PartSums:
        """The sums of a few rows."""
        numbers = self.files.numbers(piece)
        chosen = self.rule.holds(piece.table, numbers)
        table = piece.table.filter(need("pyarrow").array(chosen))
        rows = np.bincount([piece.group], [len(table)], len(self.files.groups)).astype(np.int64)
        sample = HashSample.of(self.capacity, numbers[chosen], {name: table[name] for name in self.columns})
        features = self.features if len(table) else None
        return _PartSums(rows, sample, {} if features is None else features.count_ids(features.convert(table)))


def _survey(
    files: ParquetFiles,
    parts: Mapping[str, _PartSurvey],
    columns: list[str],
    progress: bool | None,
    known: RowRule,
    exposure: str | None,
) -> dict[str, _PartSums]:
    """The sums of every part, in one pass over all rows; rows with a target must have an exposure, if there is one."""
    sums: dict[str, _PartSums] = {}
    done = 0
    with Progress("surveying", sum(files.rows), progress) as bar:
        for piece in files.read(files.segments(), columns):
            if exposure is not None:
                used = known.holds(piece.table, files.numbers(piece))
                read_exposure(piece.table.filter(need("pyarrow").array(used)), exposure, piece.file, piece.rows[used])
            for name, part in parts.items():
                some = part.summarise(piece)
                sums[name] = sums[name] + some if name in sums else some
            done += len(piece.rows)
            bar.advance(done)
    return sums


def _spread_rows(files: ParquetFiles, names: list[str], rule: RowRule) -> "pa.Table":
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
    return concatenate(tables)


def _stored_bytes(files: Iterable[Path]) -> int:
    parquet = need("pyarrow.parquet")
    total = 0
    for file in files:
        name, where = arrow_arguments(file)
        with parquet.ParquetFile(name, **where) as opened:
            groups = range(opened.metadata.num_row_groups)
            total += sum(opened.metadata.row_group(group).total_byte_size for group in groups)
    return total


def _sample_rows(spread: "pa.Table") -> int:
    a_row = max(spread.nbytes / max(len(spread), 1), 1.0)
    return int(min(max(_SAMPLE_BYTES / a_row, _FEWEST), _MOST))


def _buffer_rows(features: Features) -> int:
    single = (features.ids, features.numeric, features.ranks, features.periods)
    values = sum(map(len, single)) + 8 * len(features.bags) + 1
    return int(min(max(_BUFFER_BYTES / (8 * values), _FEWEST), _MOST))
