"""Heads: every regression method as raw outputs, their cost and their meaning."""

from transun.heads.gts import GTS, LogSUN, SqrtSUN, TranSUN
from transun.heads.head import Branch, Head, Raw, Scores, Wrapper
from transun.heads.point import MAE, MSE, LogMAE, LogMSE, PointHead
from transun.heads.wrappers import Fused, Ranked, Scaled

__all__ = [
    "GTS",
    "MAE",
    "MSE",
    "Branch",
    "Fused",
    "Head",
    "LogMAE",
    "LogMSE",
    "LogSUN",
    "PointHead",
    "Ranked",
    "Raw",
    "Scaled",
    "Scores",
    "SqrtSUN",
    "TranSUN",
    "Wrapper",
]
