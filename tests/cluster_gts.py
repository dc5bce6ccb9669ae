"""GTS by boosters of a cluster against the estimator of one process, for tests of the engines."""

import numpy as np
import pytest

from transun import GTSRegressor
from transun.engines.boosters import fold_of_rows
from transun.metrics import PGR

ROWS, FOLDS = 8000, 3


def orders(seed):
    """Features, amounts and their means, which are known."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (ROWS, 2)).astype(float)
    mean = np.exp(0.5 * X[:, 0])
    sigma = 0.3 + 0.18 * X[:, 1]
    return X, mean * np.exp(sigma * rng.standard_normal(ROWS)), mean * np.exp(0.5 * sigma**2)


def assert_learns_like_one_process(together, booster):
    """The estimator of a cluster has learned what that of one process learns from `orders(0)` in the same folds."""
    X, y, _ = orders(0)
    new, y_new, mean = orders(1)
    fold = fold_of_rows(np.arange(ROWS), FOLDS, 0)
    splits = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(FOLDS)]
    alone = GTSRegressor(booster, cv=splits).fit(X, y)
    assert together.shares_.tolist() == pytest.approx(alone.shares_.tolist())
    pred, expected = together.predict(new), alone.predict(new)
    error = y_new.std() / y_new.mean() / ROWS**0.5
    assert PGR(pred, y_new) == pytest.approx(1.0, abs=0.02 + 3 * error)
    # Workers find other bins than one process does: both err alike, and far less from each other than from the truth.
    distance = np.sqrt(np.mean((pred - expected) ** 2))
    assert distance < 0.5 * np.sqrt(np.mean((expected - mean) ** 2)) + 0.02 * mean.mean()
