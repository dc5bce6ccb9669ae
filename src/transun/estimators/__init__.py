"""scikit-learn estimators: unbiased predictions around any regressor, or by a network."""

from transun.estimators.auto import UnbiasedRegressor
from transun.estimators.balance import Balance
from transun.estimators.balanced import BalancedRegressor
from transun.estimators.corrected import CorrectedRegressor
from transun.estimators.gts import AmplificationWarning, GTSRegressor
from transun.estimators.network import NetworkRegressor

__all__ = [
    "AmplificationWarning",
    "Balance",
    "BalancedRegressor",
    "CorrectedRegressor",
    "GTSRegressor",
    "NetworkRegressor",
    "UnbiasedRegressor",
]
