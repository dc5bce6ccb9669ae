"""Heads: every regression method as raw outputs, their cost and their meaning."""

from transun.heads.autosun import AutoSUN, PoissonSUN
from transun.heads.bins import EAD, Binning, EqualFrequency, EqualWidth
from transun.heads.blend import Blend
from transun.heads.corrected import Corrected
from transun.heads.cread import CREAD, LeftSum, RightSum, Trapezoid
from transun.heads.ctm import CLTM, CTM
from transun.heads.density import LinearAxis, LogAxis
from transun.heads.deviance import Gamma, Poisson, Tweedie
from transun.heads.flow import SplineFlow
from transun.heads.gts import GTS, LogSUN, SqrtSUN, TranSUN
from transun.heads.head import Branch, Head, RankingPairs, Raw, Wrapper
from transun.heads.mdme import MDME, ExpectedBucket, MostLikelyBucket
from transun.heads.mixture import GaussianMixture, LogNormalMixture
from transun.heads.optdist import Gate, HardGate, OptDist, SoftGate
from transun.heads.point import MAE, MSE, LogMAE, LogMSE, PointHead
from transun.heads.probabilistic import ProbabilisticGTS
from transun.heads.quantiles import QuantileMean
from transun.heads.rank_preserving import RankPreserving
from transun.heads.tpm import TPM, Means, Midpoints
from transun.heads.transformation import GridScore, Likelihood
from transun.heads.wlr import WLR, PriorWLR, SoftWLR
from transun.heads.wrappers import Ranked, Scaled, ThresholdFusion
from transun.heads.ziln import ZILN, LogNormal

__all__ = [
    "CLTM",
    "CREAD",
    "CTM",
    "EAD",
    "GTS",
    "MAE",
    "MDME",
    "MSE",
    "TPM",
    "WLR",
    "ZILN",
    "AutoSUN",
    "Binning",
    "Blend",
    "Branch",
    "Corrected",
    "EqualFrequency",
    "EqualWidth",
    "ExpectedBucket",
    "Gamma",
    "Gate",
    "GaussianMixture",
    "GridScore",
    "HardGate",
    "Head",
    "LeftSum",
    "Likelihood",
    "LinearAxis",
    "LogAxis",
    "LogMAE",
    "LogMSE",
    "LogNormal",
    "LogNormalMixture",
    "LogSUN",
    "Means",
    "Midpoints",
    "MostLikelyBucket",
    "OptDist",
    "PointHead",
    "Poisson",
    "PoissonSUN",
    "PriorWLR",
    "ProbabilisticGTS",
    "QuantileMean",
    "RankPreserving",
    "Ranked",
    "RankingPairs",
    "Raw",
    "RightSum",
    "Scaled",
    "SoftGate",
    "SoftWLR",
    "SplineFlow",
    "SqrtSUN",
    "ThresholdFusion",
    "TranSUN",
    "Trapezoid",
    "Tweedie",
    "Wrapper",
]
