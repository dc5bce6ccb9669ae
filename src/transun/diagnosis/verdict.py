"""The verdict: one sentence with numbers, the same on every page and terminal."""

import math
from collections.abc import Sequence

from transun.diagnosis.result import Segment, SegmentTable, Verdict
from transun.metrics import Estimate
from transun.metrics.metric import LEVEL

__all__ = ["INTERVAL", "percent", "worst", "write_verdict"]

INTERVAL = f"{100 * LEVEL:g} % interval"
# A total whose interval reaches further from 1 than this is not called right.
_NARROW = 0.1


def write_verdict(
    pgr: Estimate,
    actual: float,
    predicted: float,
    biased: bool,
    tables: Sequence[SegmentTable],
    ranking: Estimate | None = None,
    cause: str = "",
) -> Verdict:
    """The verdict on the total, then on the segments, then on the order of the predictions.

    A total is called right only if its interval is narrow enough to say so: within 10 % of 1.

    Args:
        pgr: predicted / actual total with its interval.
        actual: the actual total.
        predicted: the predicted total.
        biased: whether the total is biased.
        tables: the segments.
        ranking: XAUC, if it is known. A right total alone does not make a model, so the verdict mentions an order
            that may be chance.
        cause: where the bias comes from, if the total is biased and the cause was tested.

    """
    unranked = _unranked(ranking)
    if math.isnan(pgr.value):
        name, total = ("predicted", predicted) if not predicted > 0.0 else ("actual", actual)
        text = f"The {name} total is {total:,.6g} and not above 0, so that a ratio of totals means nothing here."
        return Verdict("undefined", text + unranked, False)
    if biased:
        far_end = max((abs(math.log(end)) for end in (pgr.low, pgr.high) if 0.0 < end < math.inf), default=math.inf)
        where = worst(tables, beyond=far_end)
        alike = ", much alike in all segments" if tables else ""
        text = f"Totals are {_off(pgr)}" + (f"; worst in {_place(where)}" if where else alike) + "."
        if cause:
            text += f" {cause[0].upper()}{cause[1:]}."
        return Verdict("biased", text + unranked, True)
    ends = f"{pgr.low:.3f} to {pgr.high:.3f}" if pgr.high < math.inf else f"above {pgr.low:.3f}"
    total_text = f"predicted / actual is {pgr.value:.3f} ({INTERVAL} {ends})"
    anywhere = worst(tables, beyond=0.0)
    if anywhere:
        text = f"The total is not shown to be biased, but a segment is: {total_text}; worst in {_place(anywhere)}."
        return Verdict("uneven", text + unranked, False)
    room = max(1.0 - pgr.low, pgr.high - 1.0)
    if room <= _NARROW:
        text = f"No bias of the total found: {total_text}, so that it is right to within {percent(room)}."
        return Verdict("fine", text + unranked, False)
    limit = f"a bias of less than {percent(room)} would look like chance" if room < 10.0 else "the rows are too few"
    text = f"These rows cannot tell whether the total is right: {total_text}; {limit}."
    return Verdict("unclear", text + unranked, False)


def worst(tables: Sequence[SegmentTable], beyond: float) -> tuple[str, Segment] | None:
    """The biased segment that is off by most even at the near end of its interval; None if there is none.

    Args:
        tables: the segments.
        beyond: |ln PGR| of the whole at the far end of its interval. A segment nearer than that is no worse than the
            whole: the largest of several equal biases is only the noisiest.

    """
    biased = [(table.column, segment) for table in tables for segment in table.segments if segment.biased]
    worse = [(column, segment) for column, segment in biased if _near_end(segment) > beyond]
    return max(worse, key=lambda pair: _near_end(pair[1]), default=None)


def percent(share: float, width: float = 1.0) -> str:
    """A share in per cent, with a decimal where it is small or known to better than two per cent.

    >>> percent(0.312), percent(0.0123), percent(0.312, width=0.01), percent(float("inf"))
    ('31 %', '1.2 %', '31.2 %', 'more than 1000 %')
    """
    if not share < 10.0:
        return "more than 1000 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 and width >= 0.02 else f"{100 * share:.1f} %"


def _unranked(ranking: Estimate | None) -> str:
    """A sentence where the order of the predictions may be chance."""
    if ranking is None or not ranking.low <= 0.5:
        return ""
    ends = f"XAUC is {ranking.value:.3f}, {INTERVAL} {ranking.low:.3f} to {ranking.high:.3f}, and chance has 0.5"
    return f" Nothing shows that predictions order the rows: {ends}."


def _near_end(segment: Segment) -> float:
    """|ln PGR| at the end of the interval that is nearer to 1."""
    pgr = segment.metric("PGR")
    return min(abs(math.log(end)) if 0.0 < end < math.inf else 50.0 for end in (pgr.low, pgr.high))


def _off(pgr: Estimate) -> str:
    side = "low" if pgr.value < 1.0 else "high"
    ends = sorted(abs(end - 1.0) for end in (pgr.low, pgr.high))
    width = ends[1] - ends[0]
    shown = [percent(value, width) for value in (abs(pgr.value - 1.0), *ends)]
    return f"{shown[0]} {side} ({INTERVAL} {shown[1]} to {shown[2]})"


def _place(where: tuple[str, Segment]) -> str:
    column, segment = where
    pgr = segment.metric("PGR")
    side = "low" if pgr.value < 1.0 else "high"
    return f"{column} = {segment.value} ({percent(abs(pgr.value - 1.0))} {side})"
