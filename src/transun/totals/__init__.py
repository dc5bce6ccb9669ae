"""Totals of rows whose targets are not known yet, with intervals."""

from transun.totals.result import SegmentTotals, Total, Totals
from transun.totals.run import total, total_of

__all__ = ["SegmentTotals", "Total", "Totals", "total", "total_of"]
