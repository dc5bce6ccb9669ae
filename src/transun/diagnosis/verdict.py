"""The verdict: one sentence with numbers."""

import math
from collections.abc import Sequence

from transun.diagnosis.result import Estimate, Segment, SegmentTable, Test, Verdict

__all__ = ["percent", "pronounce", "worst"]


def pronounce(pgr: Estimate, strict: Estimate, tables: Sequence[SegmentTable], test: Test) -> Verdict:
    """What to say of the total, then of the segments.

    Args:
        pgr: predicted / actual total with the interval that is shown.
        strict: the same with the interval of the verdict: the total is biased if that leaves 1 out.
        tables: segments, with what is biased among them.
        test: what the bias comes from.

    """
    biased = not strict.low <= 1.0 <= strict.high
    where = worst(tables, beyond=max(abs(math.log(end)) for end in (pgr.low, pgr.high) if 0.0 < end < math.inf))
    if biased:
        alike = ", much alike in all segments" if tables else ""
        text = f"Totals are {_off(pgr)}" + (f"; worst in {_place(where)}" if where else alike)
        return Verdict("biased", f"{text}. {test.conclusion[0].upper()}{test.conclusion[1:]}.", True)
    close = "" if pgr.low <= 1.0 <= pgr.high else ", too close to chance to be called bias"
    ends = f"{pgr.low:.3f} to {pgr.high:.3f}" if pgr.high < math.inf else f"above {pgr.low:.3f}"
    total = f"predicted / actual is {pgr.value:.3f} (95 % interval {ends}{close})"
    anywhere = worst(tables, beyond=0.0)
    if anywhere:
        text = f"The total is not shown to be biased, but a segment is: {total}; worst in {_place(anywhere)}."
        return Verdict("uneven", text, False)
    room = max(1.0 - strict.low, strict.high - 1.0)
    limit = f" In these rows a bias of less than {percent(room)} cannot be told from chance." if room > 0.1 else ""
    if not room < 10.0:
        limit = " These rows are too few to tell."
    return Verdict("fine", f"No bias of the total found: {total}.{limit}", False)


def worst(tables: Sequence[SegmentTable], beyond: float) -> tuple[str, Segment] | None:
    """The biased segment that is off by most even at the near end of its interval; None if there is none.

    Args:
        tables: the segments.
        beyond: |ln PGR| of the whole at the far end of its interval. A segment nearer than that is no worse than the
            whole: the largest of several equal biases is only the noisiest.

    """
    found = [(table.column, segment) for table in tables for segment in table.segments if segment.biased]
    found = [(column, segment) for column, segment in found if _least(segment.pgr) > beyond]
    return max(found, key=lambda pair: _least(pair[1].pgr), default=None)


def percent(share: float, width: float = 1.0) -> str:
    """A share in per cent, with a decimal where it is small or known to better than two per cent.

    >>> percent(0.312), percent(0.0123), percent(0.312, width=0.01), percent(float("inf"))
    ('31 %', '1.2 %', '31.2 %', 'more than 1000 %')
    """
    if not share < 10.0:
        return "more than 1000 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 and width >= 0.02 else f"{100 * share:.1f} %"


def _least(pgr: Estimate) -> float:
    ends = [abs(math.log(end)) if 0.0 < end < math.inf else 50.0 for end in (pgr.low, pgr.high)]
    return min(ends)


def _off(pgr: Estimate) -> str:
    side = "low" if pgr.value < 1.0 else "high"
    ends = sorted(abs(end - 1.0) for end in (pgr.low, pgr.high))
    width = ends[1] - ends[0]
    shown = [percent(value, width) for value in (abs(pgr.value - 1.0), *ends)]
    return f"{shown[0]} {side} (95 % interval {shown[1]} to {shown[2]})"


def _place(where: tuple[str, Segment]) -> str:
    column, segment = where
    side = "low" if segment.pgr.value < 1.0 else "high"
    return f"{column} = {segment.value} ({percent(abs(segment.pgr.value - 1.0))} {side})"
