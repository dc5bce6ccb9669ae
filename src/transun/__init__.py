"""Unbiased regression for skewed targets: TranSUN and GTS around any model of amounts.

These are the names that most people need; docs/reference.md explains each in a sentence. Everything else is in the
rooms, such as `transun.schemes` or `transun.corrections`. A name is imported on first use, so that importing the
package does not import torch.
"""

from typing import TYPE_CHECKING

from transun.support.lazy import lazy_names
from transun.support.processors import limit_busy_waiting

if TYPE_CHECKING:
    from transun.backbones import *
    from transun.corrections import *
    from transun.data import *
    from transun.diagnosis import *
    from transun.estimators import *
    from transun.heads import *
    from transun.metrics import *
    from transun.models import *
    from transun.schemes import *
    from transun.tables import *
    from transun.totals import *
    from transun.training import *
    from transun.transforms import *

__version__ = "0.2.0"

__all__ = [
    "CREAD",
    "CTM",
    "DIN",
    "EMA",
    "GTS",
    "MAE",
    "MDME",
    "MRE",
    "MSE",
    "NMAE",
    "NRMSE",
    "PGR",
    "RMSE",
    "SGD",
    "STRE",
    "TPM",
    "TRE",
    "WLR",
    "XAUC",
    "ZILN",
    "Adam",
    "AdamW",
    "Asinh",
    "AutoSUN",
    "Bag",
    "BalancedRegressor",
    "Blend",
    "BoxCox",
    "Buckets",
    "Compiled",
    "Constant",
    "CorrectedRegressor",
    "Custom",
    "Dataset",
    "Datetime",
    "EmbeddingMLP",
    "Features",
    "GTSRegressor",
    "Gamma",
    "Head",
    "History",
    "Id",
    "Identity",
    "Log1p",
    "LogMAE",
    "LogMSE",
    "LogNormal",
    "LogNormalMixture",
    "LogSUN",
    "Meter",
    "Metric",
    "Model",
    "NetworkRegressor",
    "NormalTheory",
    "Number",
    "OptDist",
    "OrderLog",
    "ParquetStream",
    "PointHead",
    "Poisson",
    "PoissonSUN",
    "Power",
    "PowerVariance",
    "QuantileMean",
    "RankPreserving",
    "Ranked",
    "Recipe",
    "ReciprocalTarget",
    "RowWise",
    "Scaled",
    "Smearing",
    "SmoothIsotonic",
    "SplineFlow",
    "SqrtSUN",
    "Standardised",
    "TabM",
    "TableModel",
    "TranSUN",
    "Tweedie",
    "UnbiasedRegressor",
    "balance",
    "calibrate",
    "debias",
    "diagnose",
    "drop_missing",
    "embedding_mlp",
    "evaluate",
    "export",
    "fit",
    "hold_out",
    "infer",
    "load",
    "load_model",
    "predict",
    "read_table",
    "save_model",
    "tabm",
    "total",
    "total_of",
    "train",
]

# Before torch is imported, which reads this setting once.
limit_busy_waiting()

# Rooms are searched in this order, those with heavy libraries last.
__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    (
        "transun.backbones",
        "transun.corrections",
        "transun.data",
        "transun.heads",
        "transun.metrics",
        "transun.models",
        "transun.schemes",
        "transun.tables",
        "transun.training",
        "transun.transforms",
        "transun.diagnosis",
        "transun.totals",
        "transun.estimators",
    ),
)
