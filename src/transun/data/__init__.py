"""Data: rows in memory or in Parquet files, synthetic targets, an order log with a known truth, public data sets."""

from transun.data.dataset import Batch, Dataset
from transun.data.features import Features
from transun.data.inference import infer
from transun.data.kinds import Bag, Buckets, Datetime, HashedId, Id, Kind, Lists, Numbered, Split, Standardised
from transun.data.orderstream import OrderStream
from transun.data.paper import cikm16, dtmart
from transun.data.public import PUBLIC, PublicDataset, load
from transun.data.simulated import OrderLog
from transun.data.split import by_group, by_hash, by_row, by_time, cutoff_of
from transun.data.stream import ParquetStream
from transun.data.synthetic import DISTRIBUTIONS, Distribution
from transun.data.table import read_table
from transun.data.values import drop_missing

__all__ = [
    "DISTRIBUTIONS",
    "PUBLIC",
    "Bag",
    "Batch",
    "Buckets",
    "Dataset",
    "Datetime",
    "Distribution",
    "Features",
    "HashedId",
    "Id",
    "Kind",
    "Lists",
    "Numbered",
    "OrderLog",
    "OrderStream",
    "ParquetStream",
    "PublicDataset",
    "Split",
    "Standardised",
    "by_group",
    "by_hash",
    "by_row",
    "by_time",
    "cikm16",
    "cutoff_of",
    "drop_missing",
    "dtmart",
    "infer",
    "load",
    "read_table",
]
