"""What `transun-paper reproduce` can make: tables and figures of the paper, the estimators' tables, the leaderboard."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

import transun
from transun.report.markdown import yes
from transun.support.files import write_json
from transun_paper.lab import bias_by_level as deciles
from transun_paper.lab import boosters as boosted
from transun_paper.lab.boards import BY_SGD, FULL, QUICK, Board
from transun_paper.lab.default_vs_rivals import ahead, small_board, studies_of
from transun_paper.lab.leaderboard import run_board
from transun_paper.lab.pool import carry_out
from transun_paper.lab.reproduce import REPRODUCTIONS as SYNTHETIC
from transun_paper.lab.reproduce import Reproduction as Synthetic
from transun_paper.lab.store import Store
from transun_paper.lab.trees import TREES
from transun_paper.pages.boosters import boosted_page, deciles_page
from transun_paper.pages.chart import save
from transun_paper.pages.default_vs_rivals import ahead_page
from transun_paper.pages.figures import draw, figure_page
from transun_paper.pages.leaderboard import leaderboard_page
from transun_paper.pages.paper import paper_page
from transun_paper.pages.synthetic import synthetic_page
from transun_paper.tables.registry import FIGURES, PAPER, Part, do_all
from transun_paper.tables.sources import freeze_own

Report = dict[str, Any]
Answer = tuple[str, str, str]


@dataclass(frozen=True)
class Desk:
    """Where a reproduction is made, and how much of it.

    Args:
        out: folder of the results; finished runs are in its folder `runs`, encoded data in `runs/data`.
        quick: few rows, seeds and draws, to see that everything works.
        jobs: processes of one thread each.
        progress: show progress bars; None shows them on a terminal.
        own: folders of data sets that a person has and we may not ship: "cikm16", "dtmart".

    """

    out: Path
    quick: bool = False
    jobs: int = 2
    progress: bool | None = None
    own: Mapping[str, Path] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """Where finished runs are kept."""
        return Store(self.out / "runs")

    @property
    def cache(self) -> Path:
        """Where encoded data is kept."""
        return self.out / "runs" / "data"

    @property
    def board(self) -> Board:
        """The leaderboard whose data sets and protocol the tables share."""
        return QUICK if self.quick else FULL

    @cached_property
    def keys(self) -> dict[str, str]:
        """Keys of the data sets by name, encoded where they were not yet."""
        return self.board.freeze(self.cache) | freeze_own(self.cache, dict(self.own))

    def command(self, name: str) -> str:
        """What a person types to make it again."""
        return f"transun-paper reproduce {name}" + (" --quick" if self.quick else "")

    def made_by(self, name: str) -> Report:
        """What every report says of its making."""
        return {"command": self.command(name), "version": transun.__version__, "torch": torch.__version__}


class Reproduction(Protocol):
    """Something that can be made again: its report, its page, and its answers to claims."""

    @property
    def title(self) -> str:
        """For people."""

    def make(self, name: str, desk: Desk) -> Report:
        """Do what is missing and put the report together."""

    def page(self, name: str, report: Report, desk: Desk) -> str:
        """Markdown of the report; pictures that it shows are written to the desk."""

    def answers(self, report: Report) -> list[Answer]:
        """Claims, whether they hold, and the evidence."""


@dataclass(frozen=True)
class SyntheticTable:
    """A table on eight distributions whose means are known."""

    table: Synthetic

    @property
    def title(self) -> str:
        return self.table.title

    def make(self, name: str, desk: Desk) -> Report:
        protocol = self.table.quick if desk.quick else self.table.full
        return self.table.run(protocol, desk.store, desk.command(name), desk.progress)

    def page(self, name: str, report: Report, desk: Desk) -> str:
        return synthetic_page(report)

    def answers(self, report: Report) -> list[Answer]:
        return plain_answers(report["claims"])


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper on real data."""

    part: Part

    @property
    def title(self) -> str:
        return self.part.title

    def make(self, name: str, desk: Desk) -> Report:
        do_all([self.part], desk.store, desk.cache, desk.keys, quick=desk.quick, jobs=desk.jobs)
        return desk.made_by(name) | self.part.report(desk.store, desk.keys, desk.quick)

    def page(self, name: str, report: Report, desk: Desk) -> str:
        return paper_page(report)

    def answers(self, report: Report) -> list[Answer]:
        return [
            (f"{claim['claim']} ({claim['where']})", claim["holds"], claim["evidence"]) for claim in report["claims"]
        ]


@dataclass(frozen=True)
class PaperFigure(PaperTable):
    """A figure of the paper, drawn from runs on real data."""

    def page(self, name: str, report: Report, desk: Desk) -> str:
        save(draw(report), desk.out / f"{name}.svg")
        return figure_page(report, f"{name}.svg")


@dataclass(frozen=True)
class Boosters:
    """The estimators around LightGBM on the public data sets."""

    title: str = "Ways to use one booster on skewed targets: UnbiasedRegressor and its rivals"

    def make(self, name: str, desk: Desk) -> Report:
        entries = boosted.boosted_table(desk.store, quick=desk.quick, jobs=desk.jobs, show=desk.progress)
        return desk.made_by(name) | {"claims": boosted.claims(entries), "entries": entries}

    def page(self, name: str, report: Report, desk: Desk) -> str:
        return boosted_page(report)

    def answers(self, report: Report) -> list[Answer]:
        return plain_answers(report["claims"])


@dataclass(frozen=True)
class Levels:
    """Bias by level of the true mean, where it is known."""

    title: str = "Bias by level where the truth is known: cross-fitted GTS against smearing"

    def make(self, name: str, desk: Desk) -> Report:
        simulation = deciles.QUICK if desk.quick else deciles.FULL
        entries = deciles.decile_table(desk.store, simulation, desk.progress)
        about = {"repeats": simulation.repeats, "rows": simulation.rows, "wide": deciles.WIDE}
        return desk.made_by(name) | about | {"claims": deciles.claims(entries), "entries": entries}

    def page(self, name: str, report: Report, desk: Desk) -> str:
        return deciles_page(report)

    def answers(self, report: Report) -> list[Answer]:
        return plain_answers(report["claims"])


@dataclass(frozen=True)
class Leaderboard:
    """Every method on every public data set; some methods or data sets of it where they are named."""

    only: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    title: str = "Every method on six public data sets, by one protocol"

    def make(self, name: str, desk: Desk) -> Report:
        trees = [row for row in TREES if not self.only or row.name in self.only]
        networks = [method for method in self.only if method not in {row.name for row in TREES}]
        board = desk.board.only(networks, self.data)
        if self.only and not networks:
            board = Board(board.protocol, (), board.datasets, board.rows)
        report = desk.made_by(name) | run_board(board, desk.store, desk.cache, desk.jobs, trees)
        # The command that also makes single rows.
        report["command"] = "transun-paper leaderboard" + (" --quick" if desk.quick else "")
        if not desk.quick and not self.only:
            report["sgd"] = run_board(BY_SGD.only((), self.data), desk.store, desk.cache, desk.jobs)
        return report

    def page(self, name: str, report: Report, desk: Desk) -> str:
        return leaderboard_page(report)

    def answers(self, report: Report) -> list[Answer]:
        return []


@dataclass(frozen=True)
class Ahead:
    """The default against every rival, and what its pieces are worth."""

    title: str = "Is the default ahead? AutoSUN against every rival, and without each of its pieces"

    def make(self, name: str, desk: Desk) -> Report:
        board, keys = desk.board, desk.keys
        few = small_board(board)
        small = few.freeze(desk.cache)
        studies = [*studies_of(board, keys, desk.quick), *few.studies(small).values()]
        carry_out(studies, desk.store, desk.cache, desk.jobs)
        return desk.made_by(name) | ahead(board, keys, small, desk.store, desk.quick)

    def page(self, name: str, report: Report, desk: Desk) -> str:
        return ahead_page(report)

    def answers(self, report: Report) -> list[Answer]:
        return plain_answers(report["claims"])


REPRODUCTIONS: dict[str, Reproduction] = {
    **{name: SyntheticTable(table) for name, table in SYNTHETIC.items()},
    **{name: PaperTable(part) for name, part in PAPER.items()},
    **{name: PaperFigure(part) for name, part in FIGURES.items()},
    "levels": Levels(),
    "boosters": Boosters(),
    "leaderboard": Leaderboard(),
    "ahead": Ahead(),
}
# What `all` stands for. `ahead` is about our default alone and takes an hour of its own.
ALL = tuple(name for name in REPRODUCTIONS if name != "ahead")


def prepare(names: Sequence[str], desk: Desk) -> None:
    """Do the runs that the named tables and figures of the paper share, all of them together."""
    parts = [part for name, part in (PAPER | FIGURES).items() if name in names]
    do_all(parts, desk.store, desk.cache, desk.keys if parts else {}, quick=desk.quick, jobs=desk.jobs)


def put_down(name: str, made: Reproduction, desk: Desk) -> Report:
    """Make it, and write its report and its page into the desk's folder."""
    report = made.make(name, desk)
    write_json(desk.out / f"{name}.json", report)
    (desk.out / f"{name}.md").write_text(made.page(name, report, desk), encoding="utf-8")
    return report


def plain_answers(claims: Iterable[Mapping[str, Any]]) -> list[Answer]:
    """The answers to claims that hold or not."""
    return [(claim["text"], yes(claim["holds"]), claim["evidence"]) for claim in claims]
