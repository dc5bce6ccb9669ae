"""Metrics: bias, error, ranking and spread, each a `Metric`, accumulated and merged by a `Meter`."""

from transun.metrics.bias import (
    FLOORED,
    MRE,
    NEGATIVE,
    PGR,
    SMRE,
    SRE,
    STRE,
    TRE,
    FlooredShare,
    MeanRelativeError,
    SignedMeanRelativeError,
    sre,
)
from transun.metrics.binned import BinTable, bin_by_prediction, bin_by_target
from transun.metrics.error import NMAE, NRMSE, PRINTED_NRMSE, RMSE
from transun.metrics.meter import Meter
from transun.metrics.metric import AdditiveMetric, Interval, Metric, SampleMetric, bootstrap
from transun.metrics.ndcg import NDCG, TopNDCG
from transun.metrics.ranking import XAUC, XAUC_EGMN, XAUC_TPM, SampledXAUC, TopXAUC
from transun.metrics.sketch import XAUCSketch
from transun.metrics.spread import (
    OUTLIER_SHARE,
    RELATIVE_VARIANCE,
    SKEWNESS,
    VARIANCE,
    OutlierShare,
    outlier_share,
    relative_variance,
    skewness,
    variance,
)

__all__ = [
    "FLOORED",
    "MRE",
    "NDCG",
    "NEGATIVE",
    "NMAE",
    "NRMSE",
    "OUTLIER_SHARE",
    "PGR",
    "PRINTED_NRMSE",
    "RELATIVE_VARIANCE",
    "RMSE",
    "SKEWNESS",
    "SMRE",
    "SRE",
    "STANDARD",
    "STRE",
    "TRE",
    "VARIANCE",
    "XAUC",
    "XAUC_EGMN",
    "XAUC_TPM",
    "AdditiveMetric",
    "BinTable",
    "FlooredShare",
    "Interval",
    "MeanRelativeError",
    "Meter",
    "Metric",
    "OutlierShare",
    "SampleMetric",
    "SampledXAUC",
    "SignedMeanRelativeError",
    "TopNDCG",
    "TopXAUC",
    "XAUCSketch",
    "bin_by_prediction",
    "bin_by_target",
    "bootstrap",
    "outlier_share",
    "relative_variance",
    "skewness",
    "sre",
    "variance",
]

# What an evaluation reports unless told otherwise: bias of the total and of the average row, error, ranking.
STANDARD: tuple[Metric, ...] = (TRE, STRE, MRE, FLOORED, PGR, NRMSE, NMAE, XAUC)
