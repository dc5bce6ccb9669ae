"""The difference estimator: predictions of the new rows, and what labelled rows say that predictions miss."""

import math
from dataclasses import dataclass

import numpy as np

from transun.diagnosis.error_sums import FEWEST_UNITS, ErrorSums, TotalError
from transun.diagnosis.tail import AmountTail, relative_amounts
from transun.metrics.metric import Interval
from transun.support.arrays import Floats
from transun.totals.result import Total
from transun.totals.rows import Rows

__all__ = ["estimate_total", "labelled_tail"]

# Where the tail of the amounts forbids an interval, caps are tried that these shares of the labelled targets exceed.
_CAPPED_SHARES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
# An error that comes once in n units has to come this often before its size is known.
_OFTEN = 10


@dataclass(frozen=True)
class _Difference:
    """The estimate with the errors of the labelled units that its interval is made of."""

    value: float
    tuning: float
    errors: ErrorSums
    total_error: TotalError


def labelled_tail(labelled: Rows, cap: float = math.inf) -> AmountTail:
    """The tail of the amounts of labelled rows, relative to their predictions; those above the cap count as the cap.

    >>> labelled_tail(Rows.of("labelled", [2.0] * 100, y=[2.0, 4.0] * 50)).index  # the largest are all alike
    0.0
    """
    known = labelled.capped(cap).by_unit()
    return AmountTail.of(relative_amounts(known.y, known.pred), bounded=labelled.exceeds(cap))


def estimate_total(
    new: Rows,
    labelled: Rows,
    level: float,
    tail: AmountTail,
    *,
    expected: bool = False,
    cap: float = math.inf,
    assumed: bool = False,
) -> Total:
    """The total of the new rows, λΣwŷ + W·mean(y - λŷ) over labelled rows, W being the weight of the new ones.

    It is right whatever the predictions are, as long as the labelled rows are like the new ones; the better the
    predictions, the narrower its interval. λ is the slope of the regression of y on ŷ, by which the variance is least
    (power tuning): a model that is too low or too confident costs little. Errors are taken without the unit itself
    (u / (1 - leverage), a jackknife), because λ has seen it.

    Args:
        new: rows without targets.
        labelled: rows with targets, which the model was not trained on.
        level: of the interval.
        tail: how heavy the tail of the amounts is, by these labelled rows and by all others that are known. Rows that
            have no part in the interval are the better judges: where those that make it also decide whether there is
            one, it is given where the largest amounts happen to be missing.
        expected: the total that so many rows like these have on average, instead of that of these rows.
        cap: amounts above it count as the cap; `tail` is then that of capped amounts.
        assumed: the variance of the amounts is taken to be finite unless the tail shows that it is not.

    >>> new = Rows.of("new", [10.0] * 100)
    >>> labelled = Rows.of("labelled", [10.0] * 100, y=[11.0, 13.0] * 50)
    >>> total = estimate_total(new, labelled, 0.95, labelled_tail(labelled), expected=True)
    >>> total.value, round(total.high - total.value)  # 100 rows at 12 ± 2·√(1/100)
    (1200.0, 20)

    """
    difference = _difference(new.capped(cap), labelled.capped(cap), tail, expected=expected)
    errors, total_error = difference.errors, difference.total_error
    refusal = errors.refusal(assumed=assumed)
    remedy = _remedy(new, labelled, errors, expected=expected, cap=cap) if refusal else ""
    ends = Interval(math.nan, math.nan) if refusal else errors.interval(difference.value, total_error, level)
    return Total(
        value=difference.value,
        low=ends.low,
        high=ends.high,
        level=level,
        rows=len(new),
        labelled=len(labelled),
        units=errors.units,
        predicted=float(new.weight @ new.pred),
        tuning=difference.tuning,
        largest_share=errors.largest_share,
        units_to_halve=errors.units_to_halve(total_error) if errors.units else math.inf,
        refusal=refusal,
        remedy=remedy,
    )


def _difference(new: Rows, labelled: Rows, tail: AmountTail, *, expected: bool) -> _Difference:
    known, wanted = labelled.by_unit(), new.by_unit()
    if not len(known.weight):  # no labelled row, or none that counts
        nothing = ErrorSums.of(np.zeros(0), tail)
        return _Difference(math.nan, math.nan, nothing, TotalError(0.0))
    mass = float(known.weight.sum())
    scale = float(wanted.weight.sum()) / mass
    # Deviations of the sums of each unit from what its weight makes one expect: their sums are zero.
    a = known.y - known.weight * (known.y.sum() / mass)
    b = known.pred - known.weight * (known.pred.sum() / mass)
    squares = float(b @ b)
    new_mean = float(wanted.pred.sum() / max(wanted.weight.sum(), np.finfo(float).tiny))
    b_new = wanted.pred - wanted.weight * new_mean if expected else np.zeros(0)
    spread = scale**2 * squares + float(b_new @ b_new)
    tuning = scale**2 * float(a @ b) / spread if squares > 0.0 else 1.0
    # What a unit adds to the estimate, had it not been there itself: its share of the weight and of λ taken out.
    leverage = known.weight / mass + (b**2 / squares if squares > 0.0 else 0.0)
    errors = ErrorSums.of((a - tuning * b) / np.maximum(1.0 - leverage, 1e-3), tail)
    value = tuning * float(wanted.pred.sum()) + scale * float(known.y.sum() - tuning * known.pred.sum())
    if expected:
        total_error = TotalError(scale, others=(tuning**2 * float(b_new @ b_new), tuning**3 * float((b_new**3).sum())))
    else:
        total_error = TotalError(
            scale, new_rows=(_ratio(wanted.weight, known.weight, 2), _ratio(wanted.weight, known.weight, 3))
        )
    return _Difference(value, tuning, errors, total_error)


def _ratio(new: Floats, known: Floats, power: int) -> float:
    return float((new**power).sum() / (known**power).sum())


def _remedy(new: Rows, labelled: Rows, errors: ErrorSums, *, expected: bool, cap: float) -> str:
    """What would allow an interval: more rows, or a cap of the amounts that was tried."""
    if errors.units < FEWEST_UNITS:
        return f"label at least {FEWEST_UNITS - errors.units} more"
    if not errors.squares > 0.0:
        return "label rows whose amounts differ"
    more = ""
    if errors.decided_by_one:
        more = f"label about {_OFTEN * errors.units:,}, or "
    elif not errors.tail.infinite_variance:
        more = "label more rows or certify the model on more, which may show a lighter tail, or "
    targets = labelled.y if labelled.y is not None else np.zeros(0)
    for share in _CAPPED_SHARES:
        lower = _rounded_up(float(np.quantile(targets, 1.0 - share)))
        if 0.0 < lower < min(cap, float(targets.max())):
            tail = labelled_tail(labelled, lower)
            capped = _difference(new.capped(lower), labelled.capped(lower), tail, expected=expected)
            if not capped.errors.refusal(assumed=True):
                above = float((targets > lower).mean())
                return (
                    f"{more}set a cap: with amounts above {lower:,.6g} counted as {lower:,.6g}, which concerns "
                    f"{above:.2%} of the labelled rows, there is an interval of what is below the cap"
                )
    return f"{more}divide the rows: no cap that leaves 95 % of them alone allows an interval"


def _rounded_up(value: float) -> float:
    """The value with two digits, rounded up: a cap that people can remember."""
    if not value > 0.0:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit
