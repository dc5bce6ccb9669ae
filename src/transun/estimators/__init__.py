"""scikit-learn estimators: unbiased predictions around any regressor, or by a network."""

# ruff: noqa: E402
from transun.support.extras import require

require("sklearn")

from transun.estimators.balance import Balance
from transun.estimators.balanced import BalancedRegressor
from transun.estimators.compact import CompactRegressor
from transun.estimators.corrected import CorrectedRegressor, TotalWarning
from transun.estimators.explanation import explain
from transun.estimators.gts import AmplificationWarning, GTSRegressor
from transun.estimators.meta_regressor import FitWarning
from transun.estimators.multicalibrated import MulticalibratedRegressor
from transun.estimators.network import NetworkRegressor
from transun.estimators.onnx_converters import register_converters, to_onnx
from transun.estimators.unbiased import UnbiasedRegressor

__all__ = [
    "AmplificationWarning",
    "Balance",
    "BalancedRegressor",
    "CompactRegressor",
    "CorrectedRegressor",
    "FitWarning",
    "GTSRegressor",
    "MulticalibratedRegressor",
    "NetworkRegressor",
    "TotalWarning",
    "UnbiasedRegressor",
    "explain",
    "register_converters",
    "to_onnx",
]
