"""What the figures have in common: a report, and panels drawn from reports of runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

import transun
from transun_paper.lab.compare import Reports
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.jobs import Job
from transun_paper.tables.judge import Answer, able
from transun_paper.tables.table import OTHERS, Keys, Recipe, Row, board_of, kept


@dataclass(frozen=True)
class RunFigure:
    """Something drawn from reports of runs, one panel a data set."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    recipe: Recipe
    panel: Callable[[Mapping[str, Reports]], Any]
    claims: Callable[[Mapping[str, Reports], str], list[Answer]]
    skipped: tuple[str, ...] = OTHERS

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """A study a row and data set."""
        protocol = board_of(quick).protocol
        return [self.recipe(protocol, keys[name], row) for name in kept(keys, self.skipped) for row in self.rows]

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """Nothing besides runs."""
        return []

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """What is drawn, and the answers."""
        protocol = board_of(quick).protocol
        panels, claims = [], []
        for name in kept(keys, self.skipped):
            found = {row.label: self.recipe(protocol, keys[name], row).reports(store) for row in self.rows}
            usable = {label: reports for label, reports in found.items() if able(reports)}
            panels.append({"dataset": name, **self.panel(usable)})
            claims += self.claims(found, name)
        return framed_figure(self.name, self.title, self.about, panels, claims)


def framed_figure(name: str, title: str, about: str, panels: Any, claims: Sequence[Answer]) -> dict[str, Any]:
    """A report of a figure: what is drawn, one panel a data set, and the answers."""
    report = {
        "name": name,
        "title": title,
        "version": transun.__version__,
        "torch": torch.__version__,
        "about": about,
        "panels": panels,
        "claims": [asdict(claim) for claim in claims],
    }
    plain: dict[str, Any] = rounded(report, 5)
    return plain
