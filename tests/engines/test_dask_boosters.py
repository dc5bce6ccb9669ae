"""GTS in a Dask cluster against the estimator of one process, on the same folds."""

import numpy as np
import pytest

from transun import GTSRegressor
from transun.metrics import PGR

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, FOLDS = 8000, 3


def orders(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (ROWS, 2)).astype(float)
    mean = np.exp(0.5 * X[:, 0])
    sigma = 0.3 + 0.18 * X[:, 1]
    return X, mean * np.exp(sigma * rng.standard_normal(ROWS)), mean * np.exp(0.5 * sigma**2)


def lightgbm():
    module = pytest.importorskip("lightgbm", reason="the extra `lightgbm` is not installed")
    settings = {"n_estimators": 40, "num_leaves": 15, "verbose": -1, "n_jobs": 1}
    return module.LGBMRegressor(**settings), module.DaskLGBMRegressor(**settings)


def xgboost():
    module = pytest.importorskip("xgboost", reason="xgboost is not installed")
    from xgboost.dask import DaskXGBRegressor

    settings = {"n_estimators": 40, "max_depth": 4, "n_jobs": 1}
    return module.XGBRegressor(**settings), DaskXGBRegressor(**settings)


@pytest.mark.parametrize("library", [lightgbm, xgboost])
def test_the_cluster_learns_what_one_process_learns(library):
    pytest.importorskip("dask.array", reason="the extra `dask` is not installed")
    single, booster = library()
    import dask.array as da
    from distributed import Client, LocalCluster

    from transun.engines.boosters import fold_of_rows
    from transun.engines.dask_boosters import fit_gts

    X, y, _ = orders(0)
    new, y_new, mean = orders(1)
    fold = fold_of_rows(np.arange(ROWS), FOLDS, 0)
    splits = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(FOLDS)]
    alone = GTSRegressor(single, cv=splits).fit(X, y)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        together = fit_gts(booster, da.from_array(X, (2000, 2)), da.from_array(y, 2000), folds=FOLDS)
        with pytest.raises(ValueError, match="from 0 on"):
            fit_gts(booster, da.from_array(X, (2000, 2)), da.from_array(-y, 2000), folds=FOLDS)
        with pytest.raises(ValueError, match="repartition"):
            fit_gts(booster, da.from_array(X, (2000, 2)), da.from_array(y, 4000), folds=FOLDS)
    assert together.shares_.tolist() == pytest.approx(alone.shares_.tolist())
    pred, expected = together.predict(new), alone.predict(new)
    error = y_new.std() / y_new.mean() / ROWS**0.5
    assert PGR(pred, y_new) == pytest.approx(1.0, abs=0.02 + 3 * error)
    # Workers find other bins than one process does: both err alike, and far less from each other than from the truth.
    distance = np.sqrt(np.mean((pred - expected) ** 2))
    assert distance < 0.5 * np.sqrt(np.mean((expected - mean) ** 2)) + 0.02 * mean.mean()


def test_a_regressor_of_one_process_and_one_with_a_client_are_refused():
    sklearn = pytest.importorskip("sklearn.linear_model")
    from transun.engines.dask_boosters import fit_gts

    with pytest.raises(ValueError, match="DaskLGBMRegressor"):
        fit_gts(sklearn.LinearRegression(), None, None)

    class OfAClient(sklearn.LinearRegression):
        def get_params(self, deep=True):
            return {"client": object()}

    with pytest.raises(ValueError, match="leave out `client`"):
        fit_gts(OfAClient(), None, None)
