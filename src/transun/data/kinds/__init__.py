"""Kinds of columns: what each reads from a table, learns there, and hands to a network."""

from transun.data.kinds.bag import Bag
from transun.data.kinds.datetime import Datetime
from transun.data.kinds.ids import HashedId, Id, IdEncoder
from transun.data.kinds.kind import Inputs, Kind
from transun.data.kinds.layout import Layout, Lists, Numbered, Split
from transun.data.kinds.number import Buckets, Number, Standardised

__all__ = [
    "Bag",
    "Buckets",
    "Datetime",
    "HashedId",
    "Id",
    "IdEncoder",
    "Inputs",
    "Kind",
    "Layout",
    "Lists",
    "Number",
    "Numbered",
    "Split",
    "Standardised",
]
