"""How well a total can be known at all: by the rows that a model was trained on, and by those it was proved on."""

import math
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Noise"]

_LEVEL = 0.99


@dataclass(frozen=True)
class Noise:
    """What the errors e = w(y - Rŷ) of held-out rows, R being actual / predicted total, say about the noise of a total.

    A mean of n rows is known to √(V/E² / n), relative to itself, where V is the variance that is left and E the mean.
    This is so for the held-out rows, which measure the total, and for the training rows, from which the model knows it:
    another model, from other rows of the same kind, would differ by as much, and nobody can promise more. V is what the
    features leave unexplained; without features it is the variance of the target.

    Args:
        training_rows: rows that the model has learned from.
        rows: rows held out.
        units: independent units among the rows held out: rows, or the values of `cluster`.
        cluster: the column whose values are independent of each other; None where every row is.
        actual: Σwy of the rows held out.
        predicted: Σwŷ.
        squares: Σe² over the units.
        cubes: Σe³.
        fourths: Σe⁴.
        largest: the error of the largest absolute value.
        tail_index: of the amounts relative to their predictions; see `transun.diagnosis.tail`.
        tail_error: its standard error.
        tail_count: the number of amounts it was estimated from.

    """

    training_rows: int
    rows: int
    units: int
    cluster: str | None
    actual: float
    predicted: float
    squares: float
    cubes: float
    fourths: float
    largest: float
    tail_index: float
    tail_error: float
    tail_count: int

    @property
    def variation(self) -> float:
        """V/E² of a unit; NaN where it cannot be known."""
        if self._reason:
            return math.nan
        return self.squares * self.units**2 / ((self.units - 1) * self.actual**2)

    @property
    def _unit(self) -> str:
        return "row" if self.cluster is None else f"value of {self.cluster!r}"

    @property
    def _reason(self) -> str:
        """Why nothing is known of the noise; empty if something is."""
        if self.units < 2:
            return f"a single {self._unit} shows no scatter"
        return "" if self.actual > 0.0 and self.actual**2 > 0.0 else "the actual total is not above 0 or has no square"

    @property
    def held_out(self) -> float:
        """The half-width of the 99 % interval of the total, relative to it, that the rows held out allow."""
        return _quantile() * math.sqrt(self.variation / self.units)

    @property
    def training(self) -> float:
        """The same of the training rows; their units are taken to have as many rows as those held out."""
        if not self.training_rows:
            return math.nan
        return _quantile() * math.sqrt(self.variation * self.rows / (self.units * self.training_rows))

    @property
    def together(self) -> float:
        """Both: how far a model from other rows, proved on other rows, may show another total."""
        return math.hypot(self.held_out, 0.0 if math.isnan(self.training) else self.training)

    def sentence(self) -> str:
        """What the noise is and what would halve it, the same on every page and terminal.

        >>> noise = Noise(8000, 2000, 2000, None, 1e4, 1e4, 1e5, 0.0, 0.0, 1.0, 0.1, 0.1, 40)
        >>> noise.sentence()[:93]
        'The 2,000 rows held out know the total to ± 8.1 % (99 %), because V/E², the variance that the'
        >>> round(noise.held_out, 3), round(noise.training, 3)  # 2.58·√(2/2000); half with 4 times the rows
        (0.081, 0.041)
        """
        if self._reason:
            return f"How well the total is known cannot be said, as {self._reason}."
        counted = "rows" if self.cluster is None else f"values of {self.cluster!r}"
        text = (
            f"The {self.units:,} {counted} held out know the total to ± {_percent(self.held_out)} (99 %), because "
            f"V/E², the variance that the model leaves over the squared mean, is {self.variation:.3g} a {self._unit}. "
        )
        if math.isnan(self.training):
            return f"{text}Half of this takes four times as many, {4 * self.units:,}."
        total = self.training_rows + self.rows
        return (
            f"{text}The {self.training_rows:,} training rows cannot tell a model the total better than "
            f"± {_percent(self.training)}: trained on others like them, it would differ by as much. Together this is "
            f"± {_percent(self.together)}, and half of it takes four times as many rows in all, {4 * total:,}."
        )


def _quantile() -> float:
    return NormalDist().inv_cdf(0.5 * (1.0 + _LEVEL))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
