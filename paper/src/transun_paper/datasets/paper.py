"""The paper's own public data sets, for people who have the files: CIKM16 and DTMart."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transun.data.features import Features
from transun.data.kinds import Bag, Buckets, HashedId, Id, Kind
from transun.support.extras import need
from transun_paper.datasets.public import PublicDataset

_CIKM16 = (
    "CIKM Cup 2016 Track 2 (DIGINETICA), https://competitions.codalab.org/competitions/11161, files "
    "train-item-views.csv and train-queries.csv"
)
_DTMART = "Kaggle, 'DT Mart: Market Mix Modeling', file Sales.csv"
_SLOTS = 10  # query tokens, and items, that the paper's listing reads of a session


def cikm16(folder: str | Path, *, mean: float | None = 200.0) -> PublicDataset:
    """Search sessions of CIKM16: how long their queries took, from the words searched and the items seen.

    A row is a session of train-item-views.csv that also occurs in train-queries.csv (310,302 of them). The target is
    the mean `duration` of its queries: the paper does not define its target, and this one agrees with its statistics.
    Features are the first 10 query tokens and the first 10 items viewed, in the order of time. The paper hashes both
    into one table of 5,000,000 rows, of which a session touches twenty; here each has a table of the ids that occur,
    about 300,000 rows together, which an optimiser that moves whole tables can afford.

    Args:
        folder: holds the two files, separated by semicolons; headers may be spelled `sessionId` or `session_id`.
        mean: durations are rescaled to this mean, the paper's; None keeps milliseconds.

    """
    pl = need("polars")
    views = _read(Path(folder) / "train-item-views.csv", ";", ("sessionid", "itemid", "timeframe"), _CIKM16)
    queries = _read(
        Path(folder) / "train-queries.csv", ";", ("sessionid", "timeframe", "duration", "searchstringtokens"), _CIKM16
    )
    session, number = pl.col("sessionid"), {"strict": False}
    items = (
        views.sort(pl.col("timeframe").cast(pl.Int64, **number), maintain_order=True)
        .group_by(session)
        .agg(items=pl.col("itemid").head(_SLOTS))
    )
    timed = queries.with_columns(pl.col("duration").cast(pl.Float64, **number)).sort(
        pl.col("timeframe").cast(pl.Int64, **number), maintain_order=True
    )
    words = pl.col("searchstringtokens").drop_nulls().str.split(",").explode()
    searched = timed.group_by(session).agg(
        duration=pl.col("duration").mean(), tokens=words.filter(words.str.len_chars() > 0).head(_SLOTS)
    )
    # In the order of the sessions' numbers: joins and groups promise none.
    joined = searched.join(items, on="sessionid").filter(pl.col("duration").is_not_null())
    joined = joined.sort(session.cast(pl.Int64, **number), session)
    if not joined.height:
        raise ValueError(f"{folder}: no session of train-item-views.csv occurs in train-queries.csv with a duration")
    kinds: dict[str, Kind] = {
        "tokens": Bag(of=Id(), length=_SLOTS),
        "items": Bag(of=Id(), length=_SLOTS),
    }
    return _dataset("cikm16", joined, "duration", kinds, mean, ("sessionid", "timeframe"), _CIKM16)


def dtmart(folder: str | Path, *, mean: float | None = 90.0) -> PublicDataset:
    """Order lines of DTMart: their value GMV, from the item, its categories, and the days of procurement and delivery.

    These are the paper's features. The file has units sold and list price too, whose product nearly is the GMV: a model
    of them would be a calculator. Rows without a GMV above 0 are left out; the paper keeps 985,033 of 1,048,575 and
    does not say by which rule. An id column with a new value in nearly every row is left out as well, as nothing can be
    learned from it.

    Args:
        folder: holds Sales.csv, separated by tabs.
        mean: GMV is rescaled to this mean, the paper's; None keeps the file's unit.

    """
    pl = need("polars")
    numbers = ("sla", "procurementsla")
    sales = _read(Path(folder) / "Sales.csv", "\t", ("gmv", *numbers), _DTMART, others=r"id.*|.*(category|vertical).*")
    sales = sales.with_columns(pl.col("gmv", *numbers).str.strip_chars().cast(pl.Float64, strict=False))
    sales = sales.filter(pl.col("gmv").is_finite() & (pl.col("gmv") > 0))
    if not sales.height:
        raise ValueError(f"{folder}: no row of Sales.csv has a GMV above 0")
    others = [name for name in sales.columns if name not in ("gmv", *numbers)]
    once = [name for name in others if sales[name].n_unique() > sales.height / 2 and name.startswith("id")]
    kinds: dict[str, Kind] = {name: Buckets() for name in numbers}
    kinds |= {name: HashedId() if name.startswith("id") else Id() for name in others if name not in once}
    return _dataset("dtmart", sales, "gmv", kinds, mean, tuple(once), _DTMART)


def _dataset(
    name: str,
    frame: Any,
    target: str,
    kinds: Mapping[str, Kind],
    mean: float | None,
    excluded: tuple[str, ...],
    origin: str,
) -> PublicDataset:
    pl = need("polars")
    if mean is not None:
        frame = frame.with_columns(pl.col(target) * (mean / frame[target].mean()))
    table = frame.select(target, *kinds).to_arrow()
    return PublicDataset(name, table, target, Features(kinds), excluded, origin)


def _read(file: Path, separator: str, needed: Sequence[str], origin: str, others: str = r"(?!)") -> Any:
    """The needed columns, and those whose name matches `others`, as text under plain names: letters and digits only."""
    pl = need("polars")
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file.absolute()}; it comes from {origin}")
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        header = lines.readline().rstrip("\r\n").split(separator)
    plain = {name: re.sub(r"[^a-z0-9]", "", name.strip().lower()) for name in header}
    lacking = [name for name in needed if name not in plain.values()]
    if lacking:
        raise ValueError(
            f"{file}: no column {lacking[0]!r} in its first line cut at {separator!r}, {header!r}; expected {origin}"
        )
    chosen = [name for name in header if plain[name] in needed or re.fullmatch(others, plain[name])]
    frame = pl.read_csv(
        file,
        separator=separator,
        columns=chosen,
        infer_schema=False,
        null_values=["", "NA"],
        encoding="utf8-lossy",
        quote_char=None,
    )
    return frame.rename({name: plain[name] for name in chosen})
