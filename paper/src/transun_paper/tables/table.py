"""A table of the paper as rows of methods: its studies, its report, its claims."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from transun.corrections import Correction
from transun.heads import Head
from transun.training.optimisers import SGD, Adam
from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.boards import FULL_BOARD, QUICK_BOARD
from transun_paper.lab.compare import Reports, paired_t
from transun_paper.lab.computation import Computation
from transun_paper.lab.methods import METHODS
from transun_paper.lab.protocol import FIRST, SGDS, Study, TuningProtocol
from transun_paper.lab.published import notes, printed
from transun_paper.lab.references import REFERENCES, reference
from transun_paper.lab.run import Run
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.findings import Answer, Rows, TestRows, able

# Session dwell, order value and watch time, in place of the paper's data. Ablations leave the other data sets out.
_MAIN = ("globo", "online_retail", "kuairand")
OTHERS = tuple(name for name in PUBLIC if name not in _MAIN)
# Ablations of many rows leave globo out as well: with its large tables one row costs as much as ten elsewhere.
COSTLY = (*OTHERS, "globo")
ERRORS = ("TRE", "MRE", "NRMSE", "NMAE")
FIVE = (*ERRORS, "XAUC")
# The learning rate of every ablation: the paper has one for all, and tuning each variant would compare luck.
RATE = 1e-3

# What the paper's names mean on its real data, by our names: D2Q's threshold for WLR, no classifier of zeros in ZILN
# and OptDist, the likeliest bucket for MDME.
PAPER_METHODS = {
    "WLR": "WLR (D2Q)",
    "ZILN": "LogNormal",
    "MDME": "MDME (likeliest bucket)",
    "OptDist": "OptDist of LogNormal",
}
# The same methods as we would use them, which tables show as further rows under names of their own.
OUR_VARIANTS = {
    "WLR": "WLR of zeros",
    "ZILN": "ZILN with its classifier",
    "MDME": "MDME, expected bucket",
    "OptDist": "OptDist of ZILN",
}

Keys = Mapping[str, str]
"""Cache keys of encoded data sets by name."""

RowReports = Mapping[tuple[str, str], Reports]
"""Reports by method and label of a row."""


class Part(Protocol):
    """A table or a figure of the paper: the work it needs, and its report."""

    @property
    def name(self) -> str:
        """The name of its report."""

    @property
    def title(self) -> str:
        """The title of its page."""

    def datasets(self, available: Iterable[str]) -> list[str]:
        """Names of the data sets that it uses, of those available."""

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """The studies it needs on these data sets; tables share them."""

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """The further computations it needs."""

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The report from the store, as plain values; what the store lacks is marked as missing."""


class GpuPart(Part, Protocol):
    """A table or a figure whose work needs a GPU."""

    def obstacle(self, store: Store, quick: bool) -> str | None:
        """Why it cannot be made here: work is left that needs a GPU, and there is none; else None."""


@dataclass(frozen=True)
class PaperRow:
    """A method under the paper's name and label."""

    method: str
    label: str
    head: Head = field(compare=False)
    correction: Correction | None = field(default=None, compare=False)
    fused: bool = field(default=False, compare=False)
    finish: int = field(default=0, compare=False)

    @property
    def id(self) -> tuple[str, str]:
        """Method and label, which identify the row in its table."""
        return self.method, self.label


class Tuning(Protocol):
    """How the rows of a table get their learning rates."""

    def study(self, protocol: TuningProtocol, key: str, row: PaperRow) -> Study:
        """The study of a row on a data set."""

    def statement(self, protocol: TuningProtocol) -> str:
        """The tuning in words."""


@dataclass(frozen=True)
class Tuned:
    """The leaderboard's tuning: a rate chosen on the validation rows, then all seeds. Both share their runs."""

    def study(self, protocol: TuningProtocol, key: str, row: PaperRow) -> Study:
        return protocol.study(key, row.head, row.correction, fused=row.fused, finish=row.finish)

    def statement(self, protocol: TuningProtocol) -> str:
        return protocol.statement


@dataclass(frozen=True)
class FixedRate:
    """One learning rate for all rows; otherwise the leaderboard's training."""

    def study(self, protocol: TuningProtocol, key: str, row: PaperRow) -> Study:
        training = replace(protocol.training_for(key, Adam(RATE)), finish=row.finish)
        run = Run(key, row.head, training, correction=row.correction)
        return Study((run,), tuple(range(protocol.seeds)))

    def statement(self, protocol: TuningProtocol) -> str:
        return (
            f"One recipe for all rows, as in the paper: Adam {RATE:g}, {protocol.seeds} seeds; everything else as on "
            "the leaderboard (weights averaged, the weights of the best validation check kept). No rate is tuned."
        )


@dataclass(frozen=True)
class BySGD:
    """SGD, the paper's optimiser, in place of Adam; otherwise the leaderboard's tuning."""

    def study(self, protocol: TuningProtocol, key: str, row: PaperRow) -> Study:
        return self._protocol(protocol).study(key, row.head, row.correction)

    def statement(self, protocol: TuningProtocol) -> str:
        return self._protocol(protocol).statement

    def _protocol(self, protocol: TuningProtocol) -> TuningProtocol:
        # A quick protocol has one rate.
        if len(protocol.optimisers) == 1:
            return replace(protocol, optimisers=(SGD(1e-2),))
        return replace(protocol, optimisers=SGDS, first=FIRST)


@dataclass(frozen=True)
class Witness:
    """A row that is not shown, whose runs show why claims about the rows that are shown fail: another protocol."""

    row: PaperRow
    tuning: Tuning


def protocol_of(quick: bool) -> TuningProtocol:
    """The leaderboard's protocol, so that tables share its runs."""
    return (QUICK_BOARD if quick else FULL_BOARD).protocol


def kept(names: Iterable[str], skipped: Sequence[str]) -> list[str]:
    """Names of the data sets that are not skipped; all of them if none is left."""
    names = list(names)
    return [name for name in names if name not in skipped] or names


def paper_row(name: str) -> PaperRow:
    """A method of the paper, as the paper uses it on real data."""
    return leaderboard_row(name, "-", PAPER_METHODS.get(name, name))


def variant_rows() -> tuple[PaperRow, ...]:
    """The methods of the paper that we would use otherwise, as we would."""
    return tuple(leaderboard_row(label, "-", name) for name, label in OUR_VARIANTS.items())


def leaderboard_row(method: str, label: str, name: str) -> PaperRow:
    """A method of the leaderboard, under the paper's name."""
    listed = next(listed for listed in METHODS if listed.name == name)
    return PaperRow(method, label, listed.head, listed.correction, listed.fused, listed.finish)


class StudiedRows:
    """What a table and a figure have in common: every row is studied on every data set that is not skipped."""

    rows: tuple[PaperRow, ...]
    tuning: Tuning
    skipped: tuple[str, ...]
    witnesses: tuple[Witness, ...] = ()

    def datasets(self, available: Iterable[str]) -> list[str]:
        """All but the skipped ones."""
        return kept(available, self.skipped)

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """One study per row and data set, those of witnesses after them."""
        protocol = protocol_of(quick)
        studied = [(row, self.tuning) for row in self.rows]
        studied += [(witness.row, witness.tuning) for witness in self.witnesses]
        return [tuning.study(protocol, keys[name], row) for name in kept(keys, self.skipped) for row, tuning in studied]

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """None: studies are enough."""
        return []


@dataclass(frozen=True)
class PaperTable(StudiedRows):
    """A table on real data.

    Args:
        name: the name of its report.
        title: the title of its page.
        printed: LaTeX labels of the tables that the paper prints.
        rows: the methods.
        columns: names of metrics.
        claims: answers from the reports of one data set, by row; the second argument is the data set's name.
        tuning: how learning rates are chosen.
        measured: whether metrics are of test or of training rows.
        against: the row that a row is tested against, seed by seed.
        skipped: data sets left out because of what they cost, unless there are no others.
        remarks: what a reader should know besides, in sentences.
        witnesses: rows of other protocols, which show why claims fail; their reports are among those of the rows.

    """

    name: str
    title: str
    printed: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    columns: tuple[str, ...]
    claims: Callable[[RowReports, str], list[Answer]]
    tuning: Tuning = Tuned()
    measured: Rows = TestRows()
    against: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    witnesses: tuple[Witness, ...] = ()

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """The constants, by which claims about NMAE are judged."""
        return [reference(keys[name], constant) for name in kept(keys, self.skipped) for constant in REFERENCES]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Our numbers, the paper's, and the answers; plain values."""
        protocol = protocol_of(quick)
        tables, claims = [], []
        for name in kept(keys, self.skipped):
            studies = {row.id: self.tuning.study(protocol, keys[name], row) for row in self.rows}
            reports = {row: study.reports(store) for row, study in studies.items()}
            entries = [
                table_row(row, reports, self.columns, self.measured, self.against.get(row))
                | {"diverged_rates": study.diverged(store)}
                for row, study in studies.items()
            ]
            tables.append({"dataset": name, "rows": entries})
            claims += self.claims(reports | self._behind(store, protocol, keys[name]), name)
        statement = self.tuning.statement(protocol)
        absent = [name for name in keys if name not in kept(keys, self.skipped)]
        remarks = list(self.remarks)
        if absent:
            remarks.append(f"Left out because of what they cost: {', '.join(absent)}.")
        noise = self.measured.noise
        return table_report(
            self.name, self.title, statement, self.columns, tables, claims, self.printed, noise, remarks
        )

    def _behind(self, store: Store, protocol: TuningProtocol, key: str) -> dict[tuple[str, str], Reports]:
        """The reports of one data set that the table does not show: of witnesses and of constants."""
        reports: dict[tuple[str, str], Reports] = {
            witness.row.id: witness.tuning.study(protocol, key, witness.row).reports(store)
            for witness in self.witnesses
        }
        for constant in REFERENCES:
            text = reference(key, constant).text
            reports[constant_row(constant)] = [store.read(text)] * protocol.seeds if text in store else []
        return reports


def constant_row(constant: str) -> tuple[str, str]:
    """The name under which claims find the report of a constant, which is the same for every seed."""
    return "constant", constant


def table_row(
    name: tuple[str, str],
    reports: RowReports,
    columns: Sequence[str],
    rows: Rows,
    against: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """One row of a table: per column the mean over seeds, its standard error, every seed and the paired test."""
    seeds = reports[name]
    row: dict[str, Any] = {"method": name[0], "label": name[1]}
    failed = [report["failed"] for report in seeds if "failed" in report]
    if not seeds or len(failed) == len(seeds):
        return row | {"failed": failed[0] if failed else "not run yet"}
    if failed:
        row["failed"] = f"{len(failed)} of {len(seeds)} seeds: {failed[0]}; the row shows the others"
        seeds = [report for report in seeds if "failed" not in report]
    values = {column: rows.values(seeds, column) for column in columns}
    complete = [column for column in columns if None not in values[column]]
    row["cells"] = {column: rows.mean_with_error(seeds, column) for column in complete}
    row["seeds"] = values
    row["data"] = seeds[0].get("data")
    row["floored"] = max(rows.floored(seeds))
    if against is not None and able(reports[against]) and len(seeds) == len(reports[against]) > 1:
        row["against"] = list(against)
        row["p"] = {column: _paired(rows, seeds, reports[against], column) for column in complete}
    return row


def table_report(
    name: str,
    title: str,
    statement: str,
    columns: Sequence[str],
    tables: Sequence[Mapping[str, Any]],
    claims: Sequence[Answer],
    labels: Sequence[str],
    noise: str,
    remarks: Sequence[str] = (),
) -> dict[str, Any]:
    """The report of a table, with what the paper prints under these LaTeX labels, and remarks of our own."""
    report = {
        "name": name,
        "title": title,
        "protocol": statement,
        "columns": list(columns),
        "noise": noise,
        "tables": tables,
        "claims": [asdict(claim) for claim in claims],
        "paper": [printed(label) for label in labels],
        "notes": [*remarks, *(note for label in labels for note in notes(label))],
    }
    plain: dict[str, Any] = rounded(report, 5)
    return plain


def _paired(rows: Rows, first: Reports, second: Reports, column: str) -> float | None:
    a, b = rows.values(first, column), rows.values(second, column)
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return paired_t([x for x, _ in pairs], [y for _, y in pairs]) if len(pairs) == len(a) else None
