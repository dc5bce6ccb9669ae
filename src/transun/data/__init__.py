"""Data: tables from any source, their columns as tensors, rows in memory or streamed, and a simulated order log."""

from transun.data.dataset import Batch, Dataset
from transun.data.features import Features
from transun.data.holdout import HoldOut, HoldOutGroups, HoldOutRows, HoldOutTime
from transun.data.inference import infer
from transun.data.kinds import Bag, Buckets, Datetime, HashedId, Id, Kind, Lists, Number, Numbered, Split, Standardised
from transun.data.simulated import OrderLog, OrderStream
from transun.data.split import by_hash, by_row, by_time, cutoff_of
from transun.data.stream import ParquetStream
from transun.data.table import drop_missing, read_table

__all__ = [
    "Bag",
    "Batch",
    "Buckets",
    "Dataset",
    "Datetime",
    "Features",
    "HashedId",
    "HoldOut",
    "HoldOutGroups",
    "HoldOutRows",
    "HoldOutTime",
    "Id",
    "Kind",
    "Lists",
    "Number",
    "Numbered",
    "OrderLog",
    "OrderStream",
    "ParquetStream",
    "Split",
    "Standardised",
    "by_hash",
    "by_row",
    "by_time",
    "cutoff_of",
    "drop_missing",
    "infer",
    "read_table",
]
