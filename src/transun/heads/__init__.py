"""Heads: every regression method as raw outputs, their cost and their meaning."""

from transun.heads.adjusted import Adjusted
from transun.heads.autosun import AutoSUN, PoissonSUN
from transun.heads.bins import EAD, equal_frequency, equal_width, leaf_means, leaf_midpoints
from transun.heads.blend import Blend
from transun.heads.corrected import Corrected
from transun.heads.cread import CREAD, RightSum, left_sum, trapezoid
from transun.heads.ctm import CLTM, CTM
from transun.heads.density import LinearAxis, LogAxis
from transun.heads.deviance import Gamma, Poisson, Tweedie
from transun.heads.egmn import EGMN
from transun.heads.flow import SplineFlow
from transun.heads.gts import GTS, LogSUN, SqrtSUN, TranSUN
from transun.heads.head import Branch, Head, RankingPairs, Raw, Wrapper
from transun.heads.mdme import MDME, expected_bucket, most_likely_bucket
from transun.heads.mixture import GaussianMixture, LogNormalMixture
from transun.heads.multicalibrated import Credible, Multicalibrated
from transun.heads.optdist import OptDist, hard_gate, soft_gate
from transun.heads.point import MAE, MSE, LogMAE, LogMSE, PointHead
from transun.heads.probabilistic import ProbabilisticGTS
from transun.heads.quantiles import QuantileMean
from transun.heads.rank_preserving import RankPreserving
from transun.heads.tpm import TPM
from transun.heads.transformation import GridScore, Likelihood
from transun.heads.wlr import WLR, PriorWLR, SoftWLR
from transun.heads.wrappers import Ranked, Scaled, ThresholdFusion
from transun.heads.ziln import ZILN, LogNormal

__all__ = [
    "CLTM",
    "CREAD",
    "CTM",
    "EGMN",
    "GTS",
    "MAE",
    "MDME",
    "MSE",
    "TPM",
    "WLR",
    "ZILN",
    "Adjusted",
    "AutoSUN",
    "Blend",
    "Branch",
    "Corrected",
    "Credible",
    "Gamma",
    "GaussianMixture",
    "Head",
    "LogMAE",
    "LogMSE",
    "LogNormal",
    "LogNormalMixture",
    "LogSUN",
    "Multicalibrated",
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
    "Scaled",
    "SoftWLR",
    "SplineFlow",
    "SqrtSUN",
    "ThresholdFusion",
    "TranSUN",
    "Tweedie",
    "Wrapper",
]

STRATEGIES = (
    EAD,
    GridScore,
    Likelihood,
    LinearAxis,
    LogAxis,
    RightSum,
    equal_frequency,
    equal_width,
    expected_bucket,
    hard_gate,
    leaf_means,
    leaf_midpoints,
    left_sum,
    most_likely_bucket,
    soft_gate,
    trapezoid,
)
"""Arguments of single heads: the text form of a head can name them, and they are imported from the head's module."""
