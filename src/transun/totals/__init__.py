"""Totals of rows whose targets are not known yet, with intervals."""

from transun.diagnosis.tail import AmountTail, relative_amounts
from transun.totals.certified import certified_tail
from transun.totals.result import SegmentTotals, Total, Totals
from transun.totals.run import total, total_of

__all__ = ["AmountTail", "SegmentTotals", "Total", "Totals", "certified_tail", "relative_amounts", "total", "total_of"]
