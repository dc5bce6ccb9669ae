"""The figure of the eight distributions of the synthetic tables."""

from dataclasses import dataclass
from typing import Any

import torch

from transun_paper.datasets.distributions import DISTRIBUTIONS, Distribution
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store
from transun_paper.tables.figure import framed_figure
from transun_paper.tables.jobs import Job
from transun_paper.tables.table import Keys


@dataclass(frozen=True)
class DensityFigure:
    """The eight distributions of the synthetic tables."""

    name: str = "fig_densities"
    title: str = "Densities of the eight distributions"
    points: int = 241

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """No runs."""
        return []

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """Nothing: it is a formula."""
        return []

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Density on a grid, mean, variance and skewness of each."""
        about = (
            "The laws themselves, not samples. The zeros of RS-ZIG are a point of mass 0.8, drawn as a bar. The paper "
            "prints the variance of the uniform for SM-TN (errata E13); here it is SM-TN's own."
        )
        panels = [_density(distribution, self.points) for distribution in DISTRIBUTIONS]
        return framed_figure(self.name, self.title, about, panels, [])


def _density(distribution: Distribution, points: int) -> dict[str, Any]:
    low, high = distribution.quantile(1e-4), distribution.quantile(1.0 - 1e-3)
    room = 0.06 * (high - low)
    v = torch.linspace(max(0.0, low - room), high + room, points, dtype=torch.float64)
    return {
        "dataset": distribution.name,
        "title": distribution.title,
        "v": v.tolist(),
        "density": distribution.density(v).tolist(),
        "at_zero": distribution.cdf(0.0),
        "mean": distribution.mean,
        "variance": distribution.variance,
        "skewness": distribution.skewness,
    }


DENSITIES = DensityFigure()
