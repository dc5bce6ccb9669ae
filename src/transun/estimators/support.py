"""What the data support: the targets seen at a slope, and what to predict where a ratio leaves them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Enough rows that a bin's mean and extremes say something, enough bins to follow the level.
_ROWS, _BINS = 50, 20


@dataclass(frozen=True)
class Support:
    """The smallest and largest target, and the mean of y·κ, among training rows of similar slope.

    ŷ = z / κ divides: where κ is small, a small error of z becomes a large one of ŷ. A mean of targets lies between
    the smallest and the largest of them, so a ratio outside those of the training rows in the same bin of κ cannot be
    a mean that the data support. There z is replaced by its own mean over the bin's rows — which is smearing, by
    level — and the result is kept within the bin's targets.

    Args:
        edges: of the bins of κ, equal in frequency.
        smallest: target in each bin.
        largest: target in each bin.
        ratio: mean of y·κ in each bin.

    """

    edges: Array
    smallest: Array
    largest: Array
    ratio: Array

    @classmethod
    def of(cls, slope: Array, y: Array, weight: Array | None = None) -> "Support":
        """Learned from the slopes and targets of training rows.

        >>> Support.of(np.array([0.5, 0.5]), np.array([2.0, 6.0])).ratio.tolist()
        [2.0]
        """
        bins = int(np.clip(len(y) // _ROWS, 1, _BINS))
        # Edges are slopes of rows, and none is the smallest: every bin then begins with a row of its own.
        edges = np.unique(np.quantile(slope, np.arange(1, bins) / bins, method="lower"))
        edges = edges[edges > slope.min()]
        place = np.searchsorted(edges, slope, side="right")
        groups = [place == bin_ for bin_ in range(len(edges) + 1)]
        weight = np.ones_like(y) if weight is None else weight
        return cls(
            edges,
            np.array([y[own].min() for own in groups]),
            np.array([y[own].max() for own in groups]),
            np.array([np.average((y * slope)[own], weights=weight[own] + np.finfo(float).tiny) for own in groups]),
        )

    def __call__(self, z: Array, slope: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Predictions z / κ by the rule above, and in which rows it was needed.

        >>> support = Support.of(np.array([0.5, 0.5]), np.array([2.0, 6.0]))
        >>> support(np.array([2.5, 3.5]), np.array([0.5, 0.5]))  # 3.5 / 0.5 is above 6; the mean ratio is 2
        (array([5., 4.]), array([False,  True]))
        """
        place = np.searchsorted(self.edges, slope, side="right")
        low, high = self.smallest[place], self.largest[place]
        pred = z / slope
        # Rounding must not count as leaving the range.
        margin = 1e-9 * (1.0 + np.abs(high) + np.abs(low))
        outside = (pred < low - margin) | (pred > high + margin)
        return np.where(outside, np.clip(self.ratio[place] / slope, low, high), pred), outside
