"""A total with its interval, or the reason why it has none."""

import math
from dataclasses import dataclass

from transun.diagnosis.tail import AmountTail

__all__ = ["SegmentTotals", "Total", "Totals"]


@dataclass(frozen=True)
class Total:
    """The estimated total Σwy of rows whose targets are not known yet.

    Args:
        value: the estimate, λΣwŷ of the new rows plus what the labelled rows say is missing.
        low: the lower end of the interval; NaN where there is none.
        high: the upper end.
        level: of the interval, such as 0.95.
        rows: the new rows.
        labelled: the labelled rows.
        units: independent labelled units: rows, or the customers or households that they belong to.
        predicted: Σwŷ of the new rows, as the model has it.
        tuning: λ, the factor of the predictions that the labelled rows found best; near 1 for a good model.
        largest_share: the share of the largest labelled error in the variance.
        units_to_halve: how many labelled units would halve the interval; infinite where none would.
        refusal: why there is no interval; empty where there is one.
        remedy: what would allow one.

    """

    value: float
    low: float
    high: float
    level: float
    rows: int
    labelled: int
    units: int
    predicted: float
    tuning: float
    largest_share: float
    units_to_halve: float
    refusal: str = ""
    remedy: str = ""

    @property
    def answered(self) -> bool:
        """Whether there is an interval."""
        return not self.refusal

    def sentence(self) -> str:
        """The total in a sentence, the same on every page and terminal.

        >>> Total(1000.0, 900.0, 1150.0, 0.95, 10, 50, 50, 980.0, 1.0, 0.1, 200.0).sentence()
        'The total is 1,000; it lies between 900 and 1,150 (95 % interval, −10 % to +15 %).'
        """
        if not self.answered:
            remedy = f" {self.remedy[0].upper()}{self.remedy[1:]}." if self.remedy else ""
            return f"There is no interval of the total, because {self.refusal}.{remedy}"
        ends = f"it lies between {_amount(self.low)} and {_amount(self.high)}"
        return f"The total is {_amount(self.value)}; {ends} ({100 * self.level:g} % interval{self._relative()})."

    def _relative(self) -> str:
        if not self.value > 0.0:
            return ""
        shares = (100.0 * (end / self.value - 1.0) for end in (self.low, self.high))
        ends = (f"{share:+,.{1 if abs(share) < 9.95 else 0}f} %".replace("-", "−") for share in shares)
        return f", {' to '.join(ends)}"


@dataclass(frozen=True)
class SegmentTotals:
    """The totals of the segments of one column, by the name of the segment; `how` says how they were chosen."""

    column: str
    how: str
    totals: dict[str, Total]


@dataclass(frozen=True)
class Totals:
    """The total of all new rows, and those of their segments.

    Each segment is estimated from its own labelled rows, so that the segments need not add up to the whole. Each
    interval holds its level by itself: of twenty 95 % intervals one is expected to miss.

    Args:
        whole: the total of all new rows.
        segments: by column.
        cluster: the column whose values are the units; None where every row is one.
        weight: the column of weights, or None.
        cap: amounts above it count as the cap; infinite where there is none.
        expected: whether it is the total that such rows have on average, and not that of these rows.
        remarks: how the new or the labelled rows differ from those of training, in sentences; where the two do not
            differ alike, the labelled rows say little about the new ones.
        repeated: labelled rows with an amount that repeat another in what the model reads of them, or in their
            prediction, and in the target.
        tail: of the amounts, by the labelled rows and all others that were given.

    """

    whole: Total
    segments: tuple[SegmentTotals, ...] = ()
    cluster: str | None = None
    weight: str | None = None
    cap: float = math.inf
    expected: bool = False
    remarks: tuple[str, ...] = ()
    repeated: int = 0
    tail: AmountTail = AmountTail(math.nan, math.nan, 0)

    @property
    def shown(self) -> bool:
        """Whether the tail shows that the variance of the amounts is finite; an interval without it supposes so."""
        return self.tail.finite_variance

    def warnings(self) -> tuple[str, ...]:
        """What may make the interval wrong, in sentences.

        >>> total = Total(1000.0, 900.0, 1150.0, 0.95, 10, 50, 50, 980.0, 1.0, 0.1, 200.0)
        >>> Totals(total).warnings(), len(Totals(total, repeated=25).warnings())
        ((), 1)
        """
        if self.repeated <= _NOTABLE_SHARE * self.whole.labelled:
            return ()
        return (
            f"{self.repeated:,} of {self.whole.labelled:,} labelled rows repeat another one and its amount. If rows "
            "were given twice, drop the copies: they are no news, and the interval is too narrow. If they belong to "
            "one customer, name the column of customers as the cluster.",
        )


# By chance alone a few amounts are alike.
_NOTABLE_SHARE = 0.05


def _amount(value: float) -> str:
    text = f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.4g}"
    return text.replace("-", "−")
