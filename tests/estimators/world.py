"""Data whose conditional mean is known: log-normal noise whose spread depends on x."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class World:
    X: np.ndarray
    y: np.ndarray
    mean: np.ndarray

    def __getitem__(self, rows):
        return World(self.X[rows], self.y[rows], self.mean[rows])


def world(n, seed=0, levels=6):
    """Two features with few values, so that trees can learn the mean; sd of ln y from 0.3 to 1.2, against the mean."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, size=(n, 2))
    spread = 0.3 + 0.9 * x[:, 1] / (levels - 1)
    centre = 2.0 + 0.5 * x[:, 0] - 0.3 * x[:, 1]
    y = np.exp(centre + spread * rng.standard_normal(n))
    return World(x.astype(float), y, np.exp(centre + spread**2 / 2))
