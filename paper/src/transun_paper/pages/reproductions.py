"""Everything that `transun-paper reproduce` can make: each one's work, report, page, pictures and answers to claims."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

import transun
from transun.report.markdown import yes
from transun.support.files import remove_leftovers, write_json
from transun_paper.board import segments
from transun_paper.lab import watching
from transun_paper.lab.bias_by_level import (
    FULL_SIMULATION,
    INTERVAL_ERRORS,
    QUICK_SIMULATION,
    bias_by_level_table,
    level_claims,
)
from transun_paper.lab.boards import FULL_BOARD, QUICK_BOARD, SGD_BOARD, LeaderboardPlan
from transun_paper.lab.boosters import booster_claims, boosters_table
from transun_paper.lab.computation import Computation
from transun_paper.lab.default_vs_rivals import compare_default, small_board, studies_of
from transun_paper.lab.leaderboard import collect
from transun_paper.lab.pool import carry_out
from transun_paper.lab.progress import WriteLine, silent, to_stderr
from transun_paper.lab.protocol import Study
from transun_paper.lab.sources import encode_user_datasets
from transun_paper.lab.store import Store, rounded
from transun_paper.lab.synthetic_tables import SYNTHETIC_TABLES, SyntheticTable
from transun_paper.lab.trees import TREES
from transun_paper.online.validity import (
    FULL_TESTS,
    QUICK_TESTS,
    TestSizes,
    validity_claims,
    validity_computations,
    validity_table,
)
from transun_paper.pages.boosters import bias_by_level_page, boosters_page
from transun_paper.pages.default_vs_rivals import default_vs_rivals_page
from transun_paper.pages.figures import draw, figure_page, save
from transun_paper.pages.leaderboard import leaderboard_page
from transun_paper.pages.online import validity_page
from transun_paper.pages.paper import paper_page
from transun_paper.pages.segments import segments_page
from transun_paper.pages.synthetic import synthetic_page
from transun_paper.pages.watching import watching_page
from transun_paper.tables.registry import FIGURES, GPU_FIGURES, GPU_TABLES, TABLES
from transun_paper.tables.table import GpuPart, Part

Report = dict[str, Any]


@dataclass(frozen=True)
class Workspace:
    """The folder in which reproductions are made, and how much of them.

    Args:
        out: folder of the results; finished runs are in its folder `runs`, encoded data in `runs/data`.
        quick: few rows, seeds and draws, to see that everything works.
        jobs: processes of one thread each.
        progress: whether lines of progress are written to standard error; None writes them.
        user_data: folders of data sets that we may not ship and a user may have: "cikm16", "dtmart".

    """

    out: Path
    quick: bool = False
    jobs: int = 2
    progress: bool | None = None
    user_data: Mapping[str, Path] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _used: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        # Reports and encoded data that a killed command was writing.
        for folder in (self.out, self.cache):
            remove_leftovers(folder)

    @property
    def store(self) -> Store:
        """Where finished runs are kept; it remembers which were asked for."""
        return Store(self.out / "runs", self._used)

    @property
    def cache(self) -> Path:
        """Where encoded data is kept."""
        return self.out / "runs" / "data"

    @property
    def board(self) -> LeaderboardPlan:
        """The leaderboard whose data sets and protocol the tables share."""
        return QUICK_BOARD if self.quick else FULL_BOARD

    @property
    def write(self) -> WriteLine:
        """Takes lines of progress."""
        return silent if self.progress is False else to_stderr

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets that tables can use."""
        return [*self.board.datasets, *self.user_data]

    def keys(self, names: Iterable[str]) -> dict[str, str]:
        """Cache keys of data sets by name; they are encoded where they were not yet."""
        names = list(names)
        for name in names:
            if name not in self._keys:
                self._keys.update(
                    encode_user_datasets(self.cache, {name: self.user_data[name]})
                    if name in self.user_data
                    else self.board.only((), [name]).encode(self.cache)
                )
        return {name: self._keys[name] for name in names}

    def command(self, name: str) -> str:
        """The command that makes a report again."""
        return f"transun-paper reproduce {name}" + (" --quick" if self.quick else "")

    def made_by(self, name: str) -> Report:
        """The part of a report that tells how it was made, after its results were read."""
        versions = self.store.torch_versions() or [torch.__version__]
        return {"command": self.command(name), "version": transun.__version__, "torch": " and ".join(versions)}

    def carry_out(self, work: "Work") -> None:
        """Do the work that the store lacks."""
        carry_out(work.studies, self.store, self.cache, self.jobs, computations=work.computations, write=self.write)


class Work(NamedTuple):
    """Studies and computations, which `transun_paper.lab.worker` can do on another machine."""

    studies: Sequence[Study] = ()
    computations: Sequence[Computation] = ()

    @property
    def lines(self) -> list[str]:
        """The list that the worker reads, each line once."""
        studies, computations = ([item.text for item in items] for items in self)
        return list(dict.fromkeys([*studies, *computations]))


class ClaimAnswer(NamedTuple):
    """A claim, whether it holds, and the evidence, as a page shows them."""

    claim: str
    holds: str
    evidence: str


class Reproduction(ABC):
    """Something that can be made again. Its page and its pictures are functions of its report alone."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, in a line."""

    def work(self, workspace: Workspace) -> Work:
        """The work that can be done on another machine; none unless a subclass has some."""
        return Work()

    def obstacle(self, workspace: Workspace) -> str | None:
        """Why it cannot be made on this machine, in a sentence; None where it can."""
        return None

    @abstractmethod
    def report(self, name: str, workspace: Workspace) -> Report:
        """The report, after the work has been done; whatever else is missing is computed here."""

    @abstractmethod
    def page(self, name: str, report: Report) -> str:
        """The report as Markdown."""

    def pictures(self, name: str, report: Report) -> dict[str, Any]:
        """The charts that the page shows, by file name."""
        return {}

    def answers(self, report: Report) -> list[ClaimAnswer]:
        """The claims that the report answers."""
        return [ClaimAnswer(claim["text"], yes(claim["holds"]), claim["evidence"]) for claim in report["claims"]]


@dataclass(frozen=True)
class SyntheticReproduction(Reproduction):
    """A table on eight distributions whose means are known."""

    table: SyntheticTable

    @property
    def title(self) -> str:
        return self.table.title

    def report(self, name: str, workspace: Workspace) -> Report:
        protocol = self.table.quick if workspace.quick else self.table.full
        return self.table.run(protocol, workspace.store, workspace.command(name), workspace.write)

    def page(self, name: str, report: Report) -> str:
        return synthetic_page(report)


@dataclass(frozen=True)
class TableReproduction(Reproduction):
    """A table of the paper on real data."""

    part: Part

    @property
    def title(self) -> str:
        return self.part.title

    def work(self, workspace: Workspace) -> Work:
        keys, quick = self._keys(workspace), workspace.quick
        return Work(self.part.studies(keys, quick), self.part.computations(keys, quick))

    def report(self, name: str, workspace: Workspace) -> Report:
        report = self.part.report(workspace.store, self._keys(workspace), workspace.quick)
        return workspace.made_by(name) | report

    def page(self, name: str, report: Report) -> str:
        return paper_page(report)

    def answers(self, report: Report) -> list[ClaimAnswer]:
        return [
            ClaimAnswer(f"{claim['claim']} ({claim['where']})", claim["holds"], claim["evidence"])
            for claim in report["claims"]
        ]

    def _keys(self, workspace: Workspace) -> dict[str, str]:
        return workspace.keys(self.part.datasets(workspace.datasets))


@dataclass(frozen=True)
class FigureReproduction(TableReproduction):
    """A figure of the paper."""

    def page(self, name: str, report: Report) -> str:
        return figure_page(report, f"{name}.svg")

    def pictures(self, name: str, report: Report) -> dict[str, Any]:
        return {f"{name}.svg": draw(report)}


@dataclass(frozen=True)
class GpuTable(TableReproduction):
    """A table whose trainings need a GPU; elsewhere its page is made from results that were brought back."""

    part: GpuPart

    def obstacle(self, workspace: Workspace) -> str | None:
        return self.part.obstacle(workspace.store, workspace.quick)


@dataclass(frozen=True)
class GpuFigure(FigureReproduction):
    """A figure whose trainings need a GPU."""

    part: GpuPart

    def obstacle(self, workspace: Workspace) -> str | None:
        return self.part.obstacle(workspace.store, workspace.quick)


@dataclass(frozen=True)
class BoosterReproduction(Reproduction):
    """The estimators around LightGBM on the public data sets."""

    title: str = "Ways to use one booster on skewed targets: UnbiasedRegressor and its rivals"

    def report(self, name: str, workspace: Workspace) -> Report:
        entries = boosters_table(workspace.store, quick=workspace.quick, jobs=workspace.jobs, write=workspace.write)
        claims = [asdict(claim) for claim in booster_claims(entries)]
        return workspace.made_by(name) | {"claims": claims, "entries": entries}

    def page(self, name: str, report: Report) -> str:
        return boosters_page(report)


@dataclass(frozen=True)
class BiasByLevel(Reproduction):
    """Bias by level of the true mean, where it is known."""

    title: str = "Bias by level where the truth is known: cross-fitted GTS against smearing"

    def report(self, name: str, workspace: Workspace) -> Report:
        simulation = QUICK_SIMULATION if workspace.quick else FULL_SIMULATION
        entries = bias_by_level_table(workspace.store, simulation, workspace.write)
        about = {"repeats": simulation.repeats, "rows": simulation.rows, "wide": INTERVAL_ERRORS}
        claims = [asdict(claim) for claim in level_claims(entries)]
        return workspace.made_by(name) | about | {"claims": claims, "entries": entries}

    def page(self, name: str, report: Report) -> str:
        return bias_by_level_page(report)


@dataclass(frozen=True)
class TestValidity(Reproduction):
    """Simulated A/B tests whose truth is known."""

    __test__ = False  # pytest would take the class for a test
    title: str = "Do A/B tests keep their word on heavy tails? Equal arms, coverage, many looks, planned power"

    def work(self, workspace: Workspace) -> Work:
        by_world = validity_computations(self._sizes(workspace))
        return Work(computations=[chunk for chunks in by_world.values() for chunk in chunks])

    def report(self, name: str, workspace: Workspace) -> Report:
        sizes = self._sizes(workspace)
        entries = validity_table(workspace.store, sizes)
        return workspace.made_by(name) | asdict(sizes) | {"claims": validity_claims(entries), "entries": entries}

    def page(self, name: str, report: Report) -> str:
        return validity_page(report)

    @staticmethod
    def _sizes(workspace: Workspace) -> TestSizes:
        return QUICK_TESTS if workspace.quick else FULL_TESTS


@dataclass(frozen=True)
class Leaderboard(Reproduction):
    """Every method on every public data set, or some methods on some data sets where they are named."""

    only: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    title: str = "Every method on six public data sets, by one protocol"

    def work(self, workspace: Workspace) -> Work:
        boards = [self._board(workspace), *self._sgd_board(workspace)]
        return Work([study for board in boards for study in board.studies(board.encode(workspace.cache)).values()])

    def report(self, name: str, workspace: Workspace) -> Report:
        trees = [row for row in TREES if not self.only or row.name in self.only]
        report = self._collect(self._board(workspace), workspace, trees)
        for board in self._sgd_board(workspace):
            report["sgd"] = self._collect(board, workspace)
        # This command makes single rows, too.
        command = "transun-paper leaderboard" + (" --quick" if workspace.quick else "")
        return workspace.made_by(name) | report | {"command": command}

    def page(self, name: str, report: Report) -> str:
        return leaderboard_page(report)

    def answers(self, report: Report) -> list[ClaimAnswer]:
        return []

    def _board(self, workspace: Workspace) -> LeaderboardPlan:
        trees = {row.name for row in TREES}
        networks = [method for method in self.only if method not in trees]
        board = workspace.board.only(networks, self.data)
        # No network is named, so that `only` would keep all.
        return board.without_methods() if self.only and not networks else board

    def _sgd_board(self, workspace: Workspace) -> list[LeaderboardPlan]:
        """The same data by SGD, for the whole leaderboard only."""
        return [] if workspace.quick or self.only else [SGD_BOARD.only((), self.data)]

    @staticmethod
    def _collect(board: LeaderboardPlan, workspace: Workspace, trees: Sequence[Any] = ()) -> Report:
        return collect(board, board.encode(workspace.cache), workspace.store, workspace.cache, trees)


@dataclass(frozen=True)
class DefaultVsRivals(Reproduction):
    """The default against every rival, and without each of its pieces."""

    title: str = "Is the default ahead? AutoSUN against every rival, and without each of its pieces"

    def work(self, workspace: Workspace) -> Work:
        few = small_board(workspace.board)
        small = few.studies(few.encode(workspace.cache)).values()
        return Work([*studies_of(workspace.board, workspace.keys(workspace.board.datasets), workspace.quick), *small])

    def report(self, name: str, workspace: Workspace) -> Report:
        small = small_board(workspace.board).encode(workspace.cache)
        keys = workspace.keys(workspace.board.datasets)
        report = compare_default(workspace.board, keys, small, workspace.store, workspace.quick)
        return workspace.made_by(name) | report

    def page(self, name: str, report: Report) -> str:
        return default_vs_rivals_page(report)


@dataclass(frozen=True)
class SegmentErrors(Reproduction):
    """Totals by segment before and after multicalibration."""

    title: str = "Right in every segment at once: multicalibration on the tables of numbers, beside MCGrad"

    def work(self, workspace: Workspace) -> Work:
        return Work((), segments.computations(self._tables(workspace)))

    def report(self, name: str, workspace: Workspace) -> Report:
        tables = self._tables(workspace)
        results, lacking = segments.entries(workspace.store, tables), segments.missing(workspace.store, tables)
        made_by = workspace.made_by(name) | {"claims": segments.claims(results), "missing": lacking}
        return made_by | {"trial": segments.power_trial(), "entries": results}

    def page(self, name: str, report: Report) -> str:
        return segments_page(report)

    @staticmethod
    def _tables(workspace: Workspace) -> list[str]:
        tables = segments.tables_here()
        return [table for table in tables if table == "charity_gifts"] if workspace.quick else tables


@dataclass(frozen=True)
class SimulatedYears(Reproduction):
    """Simulated years of watching."""

    title: str = "Watching over simulated years: false alarms, days until a change is found, what it is called"

    def work(self, workspace: Workspace) -> Work:
        return Work((), [each for part in self._simulation(workspace).parts.values() for each in part])

    def report(self, name: str, workspace: Workspace) -> Report:
        return workspace.made_by(name) | watching.summarise(self._simulation(workspace), workspace.store)

    def page(self, name: str, report: Report) -> str:
        return watching_page(report)

    @staticmethod
    def _simulation(workspace: Workspace) -> watching.Simulation:
        return watching.Simulation(4, 4, 2) if workspace.quick else watching.Simulation()


REPRODUCTIONS: dict[str, Reproduction] = {
    **{name: SyntheticReproduction(table) for name, table in SYNTHETIC_TABLES.items()},
    **{name: TableReproduction(part) for name, part in TABLES.items()},
    **{name: FigureReproduction(part) for name, part in FIGURES.items()},
    **{part.name: GpuTable(part) for part in GPU_TABLES},
    **{part.name: GpuFigure(part) for part in GPU_FIGURES},
    "levels": BiasByLevel(),
    "ab_validity": TestValidity(),
    "boosters": BoosterReproduction(),
    "leaderboard": Leaderboard(),
    "ahead": DefaultVsRivals(),
    "segments": SegmentErrors(),
    "watching": SimulatedYears(),
}
# The reproductions that `all` means: those of the paper. The others are about transun alone and take another hour.
ALL = tuple(name for name in REPRODUCTIONS if name not in ("ahead", "segments", "watching"))


def gather_work(reproductions: Iterable[Reproduction], workspace: Workspace) -> Work:
    """The work of several reproductions together, which share much of it."""
    parts = [reproduction.work(workspace) for reproduction in reproductions]
    return Work(
        [study for part in parts for study in part.studies],
        [computation for part in parts for computation in part.computations],
    )


def write_plan(reproductions: Iterable[Reproduction], workspace: Workspace) -> tuple[Path, int]:
    """Write the list of work for `transun_paper.lab.worker` and the encoded data; the list's path and length."""
    lines = gather_work(reproductions, workspace).lines
    path = workspace.out / "runs" / "work.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path, len(lines)


def write_report(name: str, reproduction: Reproduction, workspace: Workspace) -> Report:
    """Do the work of a reproduction, and write its report, page and pictures into the workspace."""
    workspace.carry_out(reproduction.work(workspace))
    report = reproduction.report(name, workspace)
    write_json(workspace.out / f"{name}.json", report)
    write_page(name, reproduction, workspace.out)
    return report


_COSTS = "costs.json"


def write_costs(used: Mapping[str, set[str]], workspace: Workspace) -> Report:
    """Note what the results behind reports took, and return all that is known: by name, and those of now together.

    Seconds of a GPU are kept apart.

    Args:
        used: the texts of the results that each report was made from. Reports share results, so that they cost less
            together than one by one.
        workspace: where the reports are.

    """
    known, store = read_costs(workspace.out), workspace.store
    on_gpu = {part.name for part in (*GPU_TABLES, *GPU_FIGURES)}
    for device in ("pages", "gpu"):
        costs = {name: store.cost(texts) for name, texts in used.items() if (name in on_gpu) == (device == "gpu")}
        known[device] |= {name: cost._asdict() for name, cost in costs.items() if cost.results}
    names = sorted(name for name, texts in used.items() if texts and name not in on_gpu)
    if len(names) >= len(known["together"]["names"]):
        together = store.cost({text for name in names for text in used[name]})
        known["together"] = {"names": names, **together._asdict()}
    write_json(workspace.out / _COSTS, rounded(known))
    return known


def read_costs(folder: Path) -> Report:
    """What is known about the costs of the reports in a folder."""
    path = folder / _COSTS
    costs: Report = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {"pages": {}, "gpu": {}, "together": {"names": []}} | costs


def core_minutes(costs: Report, name: str) -> str:
    """What a report costs, in minutes of one core; at least so many where the time of some results is not known."""
    cost = costs["pages"].get(name)
    if cost is None or not cost["timed"]:
        return ""
    least = "" if cost["timed"] == cost["results"] else "at least "
    return f"{least}{cost['seconds'] / 60.0:.0f}"


def write_page(name: str, reproduction: Reproduction, folder: Path) -> None:
    """Write the page and the pictures of a report that lies in a folder; nothing is computed."""
    report = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    for file, chart in reproduction.pictures(name, report).items():
        save(chart, folder / file)
    (folder / f"{name}.md").write_text(reproduction.page(name, report), encoding="utf-8")
