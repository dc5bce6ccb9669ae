"""How each exported estimator is fitted, for tests that hold for all of them."""

from functools import partial

from sklearn.tree import DecisionTreeRegressor

from transun import Features, LogSUN, Number, Recipe, estimators
from transun.estimators.meta_regressor import MetaRegressor

TREE = DecisionTreeRegressor(min_samples_leaf=20, random_state=0)
KINDS = Features({name: Number() for name in ("price", "age", "items")})

AROUND = [
    kind
    for kind in map(vars(estimators).get, estimators.__all__)
    if isinstance(kind, type) and issubclass(kind, MetaRegressor)
]
"""Every exported estimator around a regressor."""


def around_a_tree(kind, X, y):
    return kind(TREE, cv=2, random_state=0).fit(X, y)


def compact(X, y):
    return around_a_tree(estimators.GTSRegressor, X, y).compact(X, y)


def network(X, y):
    return estimators.NetworkRegressor(LogSUN(), features=KINDS, recipe=Recipe(epochs=1)).fit(X, y)


FITS = {kind.__name__: partial(around_a_tree, kind) for kind in AROUND}
FITS |= {"CompactRegressor": compact, "NetworkRegressor": network}
