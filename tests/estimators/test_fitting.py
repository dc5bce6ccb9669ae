import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transun.estimators import GTSRegressor
from transun.estimators.fitting import evaluation_pairs, weight_parameter, with_deviance


class TestDeviances:
    @pytest.mark.parametrize(
        ("base", "able"),
        [
            (LGBMRegressor(), {"poisson", "gamma", "tweedie"}),
            (HistGradientBoostingRegressor(), {"poisson", "gamma"}),
            (RandomForestRegressor(), {"poisson"}),
            (ExtraTreesRegressor(), {"poisson"}),
            (GradientBoostingRegressor(), set()),
            (LinearRegression(), set()),
            (GTSRegressor(), set()),
        ],
    )
    def test_who_can_minimise_what(self, base, able):
        assert {name for name in ("poisson", "gamma", "tweedie") if with_deviance(base, name) is not None} == able

    def test_a_pipeline_asks_its_last_step(self):
        piped = make_pipeline(StandardScaler(), HistGradientBoostingRegressor())
        assert with_deviance(piped, "poisson")[-1].loss == "poisson"
        assert piped[-1].loss == "squared_error"


def test_a_regressor_without_weights_is_named():
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        weight_parameter(KNeighborsRegressor())


@pytest.mark.parametrize("eval_set", [[1.0, 2.0], [([[1.0]], [2.0], [3.0])]])
def test_evaluation_sets_are_pairs(eval_set):
    with pytest.raises(ValueError, match=r"one pair \(X, y\) or a list of such pairs"):
        evaluation_pairs(eval_set)
