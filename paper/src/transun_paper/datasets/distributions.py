"""The paper's eight synthetic targets, with the population values that estimates are compared with."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from transun_paper.datasets.component import Beta, Component, Gamma, Point, TruncatedNormal, Uniform


@dataclass(frozen=True)
class Distribution:
    """A mixture Σ weight_k · component_k of simple laws, such as 0.9·U(1, 11) + 0.1·U(90, 100).

    What a method should predict for a constant input is a functional of this law, so `expect` gives the reference
    value without sampling error: MSE on T(y) tends to T⁻¹(E[T(Y)]), an unbiased method to E[Y].

    Args:
        name: the paper's short name, which also seeds the samples.
        title: the paper's caption.
        weights: probability of each component; they add up to 1.
        components: the laws that are mixed.

    >>> two = Distribution("two", "Two blocks", (0.5, 0.5), (Uniform(0.0, 2.0), Uniform(4.0, 6.0)))
    >>> round(two.mean, 9), round(two.variance, 9), round(two.quantile(0.75), 9)
    (3.0, 4.333333333, 5.0)
    >>> round(math.sqrt(two.expect(torch.square)), 6)  # what MSE on y² predicts: more than the mean
    3.651484

    """

    name: str
    title: str
    weights: tuple[float, ...]
    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.components):
            raise ValueError(f"{self.name}: {len(self.weights)} weights for {len(self.components)} components")
        if min(self.weights, default=0.0) <= 0 or not math.isclose(sum(self.weights), 1.0):
            raise ValueError(f"{self.name}: weights {self.weights} must be positive and add up to 1")

    @property
    def mean(self) -> float:
        """E[Y]."""
        return self.expect(lambda v: v)

    @property
    def variance(self) -> float:
        """E[(Y - E[Y])²]."""
        mean = self.mean
        return self.expect(lambda v: (v - mean) ** 2)

    @property
    def skewness(self) -> float:
        """E[(Y - E[Y])³] / variance^1.5, which sorts the eight into right, left and not skewed."""
        mean = self.mean
        return self.expect(lambda v: (v - mean) ** 3) / math.pow(self.variance, 1.5)

    def expect(self, g: Callable[[Tensor], Tensor], low: float = -math.inf, high: float = math.inf) -> float:
        """E[g(Y); low < Y ≤ high] by Gauss-Legendre quadrature in float64, to about 1e-10 for smooth g.

        Where g has a kink or a jump, as |v - c| has at c, add the two sides: expect(g, high=c) + expect(g, low=c).

        >>> DISTRIBUTIONS[0].name, round(DISTRIBUTIONS[0].expect(torch.square), 9)  # E[Y²] of Gamma(2, 1) is 6
        ('RS-G', 6.0)
        """
        total = 0.0
        for weight, component in zip(self.weights, self.components, strict=True):
            points, masses = component.rule(low, high)
            total += weight * torch.dot(masses, g(points)).item()
        return total

    def density(self, v: Tensor) -> Tensor:
        """Density at v; a point mass, such as the zeros of RS-ZIG, has none and shows in `cdf` only.

        >>> DISTRIBUTIONS[5].density(torch.tensor([50.0, 101.0], dtype=torch.float64)).tolist()  # U(0, 100)
        [0.01, 0.0]
        """
        densities = [weight * part.density(v) for weight, part in zip(self.weights, self.components, strict=True)]
        return torch.stack(densities).sum(0)

    def cdf(self, v: float) -> float:
        """P(Y ≤ v).

        >>> round(DISTRIBUTIONS[2].cdf(0.0), 9)  # RS-ZIG: 80 % are zero
        0.8
        """
        return self.expect(torch.ones_like, high=v)

    def quantile(self, share: float) -> float:
        """The least v with P(Y ≤ v) ≥ share, by bisection; at share ½ the median, which MAE predicts.

        Where the median is a whole interval, as [11, 90] for SM-BU, this is its lower end.

        >>> round(DISTRIBUTIONS[7].quantile(0.5), 6)
        11.0
        """
        if not 0 < share < 1:
            raise ValueError(f"quantile share {share} must lie strictly between 0 and 1")
        # Slightly less than `share`: rounding must not carry us over a gap where the cdf is flat at `share`.
        wanted = share - 1e-12
        below = min(part.range[0] for part in self.components)
        above = max(part.range[1] for part in self.components)
        if self.cdf(below) >= wanted:
            return below
        while below < (middle := (below + above) / 2) < above:
            if self.cdf(middle) >= wanted:
                above = middle
            else:
                below = middle
        return above

    def sample(self, n: int, seed: int) -> Tensor:
        """Draw n values (n,) in float64, a function of (name, n, seed) alone.

        Each component gets its exact share of the n draws, as in the paper's listing (90 % low, not 90 % on average);
        this holds for the zeros of RS-ZIG too, which the listing draws by coin, with the same limit. The draws are
        shuffled, which the listing omits: unshuffled, one pass of SGD ends on the high block alone.

        >>> draws = DISTRIBUTIONS[1].sample(1000, seed=0)  # RS-BU
        >>> int((draws < 50).sum()), bool((draws[:500] < 50).all())
        (900, False)
        """
        if n < 1:
            raise ValueError(f"sample of {n} draws: ask for at least one")
        rng = np.random.default_rng([crc32(self.name.encode()), seed])
        ends = np.rint(np.cumsum(self.weights) / sum(self.weights) * n).astype(int)
        counts = np.diff(ends, prepend=0)
        parts = [part.sample(int(count), rng) for part, count in zip(self.components, counts, strict=True)]
        draws = np.concatenate(parts)
        rng.shuffle(draws)
        return torch.from_numpy(draws)


_LOW, _HIGH = Uniform(1.0, 11.0), Uniform(90.0, 100.0)

#: The eight targets of the paper's synthetic experiments, in the order of its tables.
DISTRIBUTIONS: tuple[Distribution, ...] = (
    Distribution("RS-G", "Right-Skewed: Gamma", (1.0,), (Gamma(2.0, 1.0),)),
    Distribution("RS-BU", "Right-Skewed: Bi-Uniform", (0.9, 0.1), (_LOW, _HIGH)),
    Distribution("RS-ZIG", "Right-Skewed: Zero-Inflated Gamma", (0.8, 0.2), (Point(0.0), Gamma(2.0, 1.0))),
    Distribution("LS-B", "Left-Skewed: Beta", (1.0,), (Beta(3.0, 1.5),)),
    Distribution("LS-BU", "Left-Skewed: Bi-Uniform", (0.1, 0.9), (_LOW, _HIGH)),
    Distribution("SM-U", "Symmetric: Uniform", (1.0,), (Uniform(0.0, 100.0),)),
    Distribution("SM-TN", "Symmetric: Trunc-Normal", (1.0,), (TruncatedNormal(50.0, 10.0, 0.0, 100.0),)),
    Distribution("SM-BU", "Symmetric: Bi-Uniform", (0.5, 0.5), (_LOW, _HIGH)),
)
