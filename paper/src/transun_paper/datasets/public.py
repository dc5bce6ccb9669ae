"""Real data sets with skewed targets: their features are declared, and columns that leak the target are left out."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from transun.data.features import Features
from transun.data.kinds import Bag, Buckets, Datetime, Id, Kind, Numbered, Split
from transun.data.table import read_table
from transun.support.extras import need
from transun.support.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PublicDataset:
    """A table with its target and the declaration of its features.

    Args:
        name: the name that `load_public_dataset` takes.
        table: the target and the columns of the features, and nothing else that could leak.
        target: name of the target column.
        features: how to read the other columns; not fitted, as that is for the training rows alone.
        excluded: columns of the file that were left out, because they leak the target or identify the row.
        origin: where the data come from, and how they were prepared.

    """

    name: str
    table: "pa.Table" = field(repr=False)
    target: str
    features: Features = field(repr=False)
    excluded: tuple[str, ...]
    origin: str

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True)
class _Declaration:
    file: str
    target: str
    columns: Mapping[str, Kind]
    origin: str
    excluded: tuple[str, ...] = ()
    most: float | None = None  # rows with a larger target are left out


def _ids(names: str) -> dict[str, Kind]:
    return {name: Id() for name in names.split()}


_CLAIMS = (
    "analysis",
    "dentistry",
    "diagnostics",
    "endoscopy",
    "hospitalizations",
    "mammography",
    "operations",
    "visits",
)
_DECLARATIONS = {
    "kuairand": _Declaration(
        "kuairand_pure.parquet",
        "play_time_s",
        _ids("user_id video_id author_id tab date hourmin user_active_degree is_live_streamer is_video_author")
        | _ids("follow_user_num_range fans_user_num_range friend_user_num_range register_days_range")
        | _ids("video_type upload_type music_type")
        | {"tag": Bag(Split(",")), "duration_s": Buckets(), "freshness_days": Buckets()},
        "KuaiRand-Pure, CC BY-SA 4.0, https://kuairand.com: seconds that a short video was watched; standard log of "
        "25 April to 8 May 2022. Outcomes of the same view (is_click, long_view) are left out.",
        ("is_click", "long_view", "part"),
    ),
    "globo": _Declaration(
        "globo_sessions.parquet",
        "dwell_s",
        _ids("user_id environment device os country region referrer start_day start_hour")
        | {"item": Bag(Numbered(10)), "n_clicks": Buckets()},
        "User interactions with Globo.com news, a public mirror: seconds of a session, without the imputed 30 s at its "
        "end. Sessions beyond 7200 s, up to 28 days, are forgotten tabs and left out.",
        most=7200.0,
    ),
    "online_retail": _Declaration(
        "online_retail_orders.parquet",
        "gmv",
        _ids("CustomerID Country") | {"item": Bag(Numbered(20)), "n_lines": Buckets(), "ts": Datetime()},
        "UCI Online Retail, https://archive.ics.uci.edu/dataset/352: the value of an order. Customer -1 is unknown; of "
        "more than 20 items the first are kept.",
        ("InvoiceNo",),
    ),
    "lastfm": _Declaration(
        "lastfm2k_plays.parquet",
        "weight",
        _ids("userID artistID"),
        "HetRec 2011 Last.fm 2k, https://grouplens.org/datasets/hetrec-2011: how often a user played an artist. The "
        "column is called weight but is the target.",
    ),
    "eu_health": _Declaration(
        "eu_health_insurance.parquet",
        "amt_total",
        _ids("relation gender") | {"policy_years": Buckets(), "age_at_inception": Buckets()},
        "CASdatasets, GPL >= 2, https://dutangc.github.io/CASdatasets: claims of an insured person, mostly none. "
        "Numbers and amounts by type of claim add up to the target and are left out.",
        ("id_anon", "group", *(f"{what}_{claim}" for what in ("num", "amt") for claim in _CLAIMS)),
    ),
    "movietweetings": _Declaration(
        "movietweetings100k.parquet",
        "rating",
        _ids("user_id movie_id") | {"genres": Bag(Split("|")), "year": Buckets()},
        "MovieTweetings 100K, MIT, https://github.com/sidooms/MovieTweetings: ratings 0 to 10, skewed to the left.",
        ("ts",),
    ),
}

#: The names that `load_public_dataset` takes.
PUBLIC: tuple[str, ...] = tuple(_DECLARATIONS)


def load_public_dataset(name: str, folder: str | Path | None = None) -> PublicDataset:
    """A public data set by name: its table without the columns that must not be features, and its features declared.

    Args:
        name: one of `PUBLIC`.
        folder: where the Parquet files are. None: the folder that the environment variable TRANSUN_DATA names, else
            `data` in the working directory.

    >>> load_public_dataset("kuairandom")
    Traceback (most recent call last):
    ValueError: there is no public data set 'kuairandom': did you mean 'kuairand'? There are kuairand, globo, ...

    """
    if name not in _DECLARATIONS:
        hint = f"{did_you_mean(name, PUBLIC)} There are {', '.join(PUBLIC)}".lstrip()
        raise ValueError(f"there is no public data set {name!r}: {hint}")
    declared = _DECLARATIONS[name]
    file = public_file(name) if folder is None else Path(folder) / declared.file
    sources = [source for column, kind in declared.columns.items() for source in kind.sources(column)]
    if not file.is_file():
        raise FileNotFoundError(
            f"{name}: there is no file {file.absolute()}; set TRANSUN_DATA to the folder that holds {declared.file}, "
            f"or make it: one observation per row, with the target {declared.target} and the columns "
            f"{', '.join(sources)}. It was made from: {declared.origin}"
        )
    table = read_table(file, [declared.target, *sources])
    if declared.most is not None:
        table = table.filter(need("pyarrow.compute").field(declared.target) <= declared.most)
    return PublicDataset(name, table, declared.target, Features(declared.columns), declared.excluded, declared.origin)


def public_file(name: str) -> Path:
    """Where the file of a public data set is looked for."""
    return data_folder() / _DECLARATIONS[name].file


def public_target(name: str) -> str:
    """The target column of a public data set.

    >>> public_target("lastfm")
    'weight'
    """
    return _DECLARATIONS[name].target


def data_folder() -> Path:
    """The folder that the environment variable TRANSUN_DATA names, or the folder `data` where the command is run."""
    return Path(os.environ.get("TRANSUN_DATA", "data"))
