"""Watching a model at work: what was predicted against what came, with labels that arrive late."""

from transun.watching.delay import DelayCurve
from transun.watching.evidence import ChangeWatch, Evidence
from transun.watching.watch import PredictedRows, WatchedSeries, WatchResult, watch

__all__ = ["ChangeWatch", "DelayCurve", "Evidence", "PredictedRows", "WatchResult", "WatchedSeries", "watch"]
