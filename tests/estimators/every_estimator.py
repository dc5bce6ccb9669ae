"""How each exported estimator is fitted, for tests that hold for all of them."""

from sklearn.tree import DecisionTreeRegressor

from transun import Features, LogSUN, Number, Recipe
from transun.estimators import (
    BalancedRegressor,
    CorrectedRegressor,
    GTSRegressor,
    MulticalibratedRegressor,
    NetworkRegressor,
    UnbiasedRegressor,
)

TREE = DecisionTreeRegressor(min_samples_leaf=20, random_state=0)
KINDS = Features({name: Number() for name in ("price", "age", "items")})


def compact(X, y):
    return UnbiasedRegressor(TREE, cv=2, random_state=0).fit(X, y).compact(X, y)


FITS = {
    "BalancedRegressor": lambda X, y: BalancedRegressor(TREE, cv=2, random_state=0).fit(X, y),
    "CompactRegressor": compact,
    "CorrectedRegressor": lambda X, y: CorrectedRegressor(TREE, cv=2, random_state=0).fit(X, y),
    "GTSRegressor": lambda X, y: GTSRegressor(TREE, cv=2, random_state=0).fit(X, y),
    "MulticalibratedRegressor": lambda X, y: MulticalibratedRegressor(TREE, cv=2, random_state=0).fit(X, y),
    "NetworkRegressor": lambda X, y: NetworkRegressor(LogSUN(), features=KINDS, recipe=Recipe(epochs=1)).fit(X, y),
    "UnbiasedRegressor": lambda X, y: UnbiasedRegressor(TREE, cv=2, random_state=0).fit(X, y),
}
