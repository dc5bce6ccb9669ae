"""The list of all methods of the board, in three groups: rivals, our own, and the default with a change."""

from typing import Any

from transun_paper.board.external import External
from transun_paper.board.method import BoardMethod
from transun_paper.board.networks import Train
from transun_paper.board.trees import (
    CatBoost,
    ConstantRate,
    DefaultLightGBM,
    HistGradientBoosting,
    LightGBM,
    TunedCatBoost,
    TunedLightGBM,
    TunedXGBoost,
    WrappedLightGBM,
    XGBoost,
)

# The method that the claims are about, and the one that others are measured against.
DEFAULT, REFERENCE = "default", "lightgbm_poisson"
# The estimate that uses exposure alone, AutoGluon, and the default before this board existed.
CONSTANT, AUTOGLUON, PREVIOUS = "constant_rate", "autogluon_medium", "autosun_mlp"


def _network(name: str, head: str) -> Train:
    """TabM with one head, trained by the default recipe at the best of three rates."""
    return Train(name, {"head": head, "backbone": "tabm"}, rates=(3e-4, 1e-3, 3e-3))


#: Methods that people use without transun, and heads of others on our network.
RIVALS: tuple[BoardMethod, ...] = (
    ConstantRate(CONSTANT),
    DefaultLightGBM("lightgbm_defaults"),
    LightGBM(REFERENCE, "poisson"),
    LightGBM("lightgbm_poisson_refit", "poisson", refit=True),
    LightGBM("lightgbm_tweedie", "tweedie"),
    LightGBM("lightgbm_mse", "regression"),
    TunedLightGBM("lightgbm_tuned"),
    TunedLightGBM("lightgbm_tuned_refit", refit=True),
    XGBoost("xgboost_poisson", "count:poisson"),
    XGBoost("xgboost_tweedie", "reg:tweedie"),
    CatBoost("catboost_poisson", "Poisson"),
    CatBoost("catboost_tweedie", "Tweedie:variance_power=1.5"),
    TunedXGBoost("xgboost_tuned", seconds=60.0),
    TunedCatBoost("catboost_tuned", seconds=60.0),
    HistGradientBoosting("sklearn_poisson"),
    _network("tabm_mse", "Scaled(MSE())"),
    _network("tabm_poisson", "Scaled(Poisson())"),
    _network("egmn", "EGMN()"),
    External("realmlp", "realmlp.py", "TRANSUN_PYTABKIT_PYTHON"),
    External(AUTOGLUON, "autogluon_medium.py", "TRANSUN_AUTOGLUON_PYTHON", in_the_time_of=DEFAULT),
)

#: Ways to use transun. `autosun_mlp` was the default until this board was made.
OURS: tuple[BoardMethod, ...] = (
    Train(DEFAULT),
    Train(PREVIOUS, {"head": "AutoSUN()", "backbone": "embedding_mlp", "recipe": {"balance": True}}),
    WrappedLightGBM("unbiased_lightgbm", "UnbiasedRegressor"),
    WrappedLightGBM("gts_lightgbm", "GTSRegressor"),
)

#: What is changed about the default, as arguments of `train`. A line here is a row of the page of ablations; an
#: argument that `train` does not take is reported as such.
CHANGES: dict[str, dict[str, Any]] = {
    "network_alone": {"only": "network"},
    "trees_alone": {"only": "trees"},
    "10_seconds": {"recipe": {"budget": 10.0}},
    "30_seconds": {"recipe": {"budget": 30.0}},
    "tabm": {"backbone": "tabm"},
    "embedding_mlp": {"backbone": "embedding_mlp"},
    "no_periods": {"features": "without_periods"},
    "poisson_head": {"head": "Scaled(Poisson())"},
    "logsun_head": {"head": "Scaled(LogSUN())"},
    "no_likelihood": {"head": "Blend((Scaled(Poisson()), Scaled(LogSUN(shared='all'))), shared='all')"},
    "not_refitted": {"recipe": {"refit": False}},
    "not_balanced": {"recipe": {"balance": False}},
    "not_averaged": {"recipe": {"averaging": None}},
}
ABLATIONS: tuple[BoardMethod, ...] = tuple(Train(f"{DEFAULT}:{name}", change) for name, change in CHANGES.items())

#: Every method by its name.
METHODS: dict[str, BoardMethod] = {method.name: method for method in (*RIVALS, *OURS, *ABLATIONS)}
