"""GTS in a Dask cluster against the estimator of one process, on the same folds."""

import numpy as np
import pytest

from cluster_gts import FOLDS, assert_learns_like_one_process, orders

pytestmark = pytest.mark.filterwarnings("ignore")


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

    from transun.engines.dask_boosters import fit_gts

    X, y, _ = orders(0)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        together = fit_gts(booster, da.from_array(X, (2000, 2)), da.from_array(y, 2000), folds=FOLDS)
        by_workers = da.from_array(X, (2000, 2)).map_blocks(together.predict, drop_axis=1, dtype=float).compute()
        with pytest.raises(ValueError, match="from 0 on"):
            fit_gts(booster, da.from_array(X, (2000, 2)), da.from_array(-y, 2000), folds=FOLDS)
        with pytest.raises(ValueError, match="repartition"):
            fit_gts(booster, da.from_array(X, (2000, 2)), da.from_array(y, 4000), folds=FOLDS)
    np.testing.assert_allclose(by_workers, together.predict(X), rtol=1e-6)
    assert_learns_like_one_process(together, single)


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
