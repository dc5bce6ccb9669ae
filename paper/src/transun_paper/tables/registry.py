"""Every real-data table and every figure of the paper, by the name of its report."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from transun_paper.lab.pool import Say, carry_out, to_stderr
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store
from transun_paper.tables import (
    binned,
    comparison,
    curves,
    debiasing,
    densities,
    epsilon,
    extension,
    industrial,
    instances,
    posthoc,
    schemes,
    sharing,
    variance,
)
from transun_paper.tables.jobs import Job, carry_out_jobs
from transun_paper.tables.table import Keys


class Part(Protocol):
    """A table or a figure: what it needs and what it shows."""

    @property
    def name(self) -> str:
        """Of its report."""

    @property
    def title(self) -> str:
        """For people."""

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """The runs it needs on data sets, given by name and key; tables share them."""

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """What else is computed for it."""

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """What it shows, from the store; what is missing there is said to be missing."""


_TABLES: tuple[Part, ...] = (
    debiasing.DEBIASING,
    posthoc.POSTHOC,
    schemes.TABLE,
    extension.TABLE,
    comparison.COMPARISON,
    comparison.RANKING,
    instances.TABLE,
    sharing.TABLE,
    variance.TABLE,
    industrial.TABLE,
)
_FIGURES: tuple[Part, ...] = (
    curves.TRAINING,
    curves.SCHEME_CURVES,
    binned.BINS,
    epsilon.EPSILON,
    densities.DENSITIES,
)
PAPER: dict[str, Part] = {part.name: part for part in _TABLES}
FIGURES: dict[str, Part] = {part.name: part for part in _FIGURES}


def do_all(
    parts: Iterable[Part], store: Store, cache: Path, keys: Keys, *, quick: bool, jobs: int = 2, say: Say = to_stderr
) -> None:
    """Carry out all that these parts need and the store lacks; what they share is done once."""
    chosen = list(parts)
    carry_out([study for part in chosen for study in part.studies(keys, quick)], store, cache, jobs, say)
    carry_out_jobs([job for part in chosen for job in part.jobs(keys, quick)], store, cache, jobs, say)


def plan(parts: Iterable[Part], keys: Keys, *, quick: bool) -> tuple[list[str], list[str]]:
    """Lines for `transun_paper.lab.worker`, studies and jobs, each once."""
    chosen = list(parts)
    studies = dict.fromkeys(study.text for part in chosen for study in part.studies(keys, quick))
    jobs = dict.fromkeys(job.text for part in chosen for job in part.jobs(keys, quick))
    return list(studies), list(jobs)
