"""How wrong totals are by segment before and after multicalibration, on the tables of numbers, beside MCGrad."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import KFold

from transun.estimators import MulticalibratedRegressor
from transun.support.arrays import Floats, Integers
from transun.support.extras import need, require
from transun_paper.board.frames import Frames
from transun_paper.board.tables import BOARD_TABLES, NUMBERS
from transun_paper.lab.boosters import quiet
from transun_paper.lab.computation import Computation
from transun_paper.lab.store import Store

if TYPE_CHECKING:
    import pandas as pd


# Columns are cut into at most so many segments alone, and so many beside another column.
_ALONE, _BESIDE = 20, 8
# A segment counts if it has so many test rows, and if chance moves its total by less than this share.
FEWEST_ROWS, MOST_NOISE = 100, 0.1
_FOLDS = 5
# How often chance alone may put the worst segment beyond the limit.
_BY_CHANCE = 0.05


def _trees(objective: str) -> Any:
    lightgbm = need("lightgbm")
    return lightgbm.LGBMRegressor(objective=objective, n_estimators=150, learning_rate=0.05, n_jobs=1, verbose=-1)


def _log_trees() -> Any:
    return TransformedTargetRegressor(_trees("regression"), func=np.log1p, inverse_func=np.expm1)


#: The models whose predictions are corrected.
BASES: Mapping[str, Callable[[], Any]] = {"ln(1 + y)": _log_trees, "Poisson": lambda: _trees("poisson")}
#: What nothing is done to, our correction, and the rival's.
PLAIN, MULTICALIBRATED, MCGRAD = "as it is", "multicalibrated", "MCGrad"


@dataclass(frozen=True)
class SegmentMethod:
    """A way to predict test rows by a regressor.

    Args:
        predict: the predictions of the last rows by a regressor that learns from the first ones, and what it reports.
        cost: about how much longer it takes than one fit of the regressor.
        version: part of the key of its results: a change of how they are computed must change it.
        library: a module that it imports; None where it needs no further one.

    """

    predict: Callable[[Any, "pd.DataFrame", Floats, "pd.DataFrame"], tuple[Floats, str]]
    cost: float
    version: int
    library: str | None = None

    def runs_here(self) -> bool:
        """Whether its library is installed."""
        try:
            require(*([self.library] if self.library else []))
        except ModuleNotFoundError:
            return False
        return True


def _plain(regressor: Any, train: "pd.DataFrame", y: Floats, test: "pd.DataFrame") -> tuple[Floats, str]:
    return regressor.fit(train, y).predict(test), ""


def _multicalibrated(regressor: Any, train: "pd.DataFrame", y: Floats, test: "pd.DataFrame") -> tuple[Floats, str]:
    model = MulticalibratedRegressor(regressor, random_state=0).fit(train, y)
    return model.predict(test), str(model.ratio_)


def _mcgrad(regressor: Any, train: "pd.DataFrame", y: Floats, test: "pd.DataFrame") -> tuple[Floats, str]:
    """MCGrad with its defaults, learned from out-of-fold predictions as ours is."""
    logging.getLogger("mcgrad").setLevel(logging.ERROR)
    out_of_fold = np.empty(len(y))
    for rows, left_out in KFold(_FOLDS, shuffle=True, random_state=0).split(train):
        out_of_fold[left_out] = regressor.fit(train.iloc[rows], y[rows]).predict(train.iloc[left_out])
    categories = [name for name in train.columns if str(train[name].dtype) == "category"]
    columns = {
        "categorical_feature_column_names": categories,
        "numerical_feature_column_names": [name for name in train.columns if name not in categories],
    }
    text = {name: str for name in categories}
    frame = train.astype(text).assign(prediction_=out_of_fold, label_=y)
    model = need("mcgrad.methods").RegressionMCGrad().fit(frame, "prediction_", "label_", **columns)
    frame = test.astype(text).assign(prediction_=regressor.fit(train, y).predict(test))
    return np.asarray(model.predict(frame, "prediction_", **columns), np.float64), ""


METHODS: Mapping[str, SegmentMethod] = {
    PLAIN: SegmentMethod(_plain, cost=1.0, version=1),
    MULTICALIBRATED: SegmentMethod(_multicalibrated, cost=15.0, version=2),
    MCGRAD: SegmentMethod(_mcgrad, cost=20.0, version=1, library="mcgrad.methods"),
}


def computations(tables: Iterable[str]) -> list[Computation]:
    """Every base with every method that can run here, on these tables."""
    here = {name for name, method in METHODS.items() if method.runs_here()}
    return [each for each in _everything(tables) if each.arguments["method"] in here]


def tables_here() -> list[str]:
    """The tables of numbers whose files are there."""
    return [table.name for table in BOARD_TABLES.values() if table.group == NUMBERS and not table.missing()]


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """The errors by segment of one method around one base on one table; training and validation rows teach both."""
    train, y, test, y_test = _load(arguments["table"])
    with quiet():
        pred, details = METHODS[arguments["method"]].predict(BASES[arguments["base"]](), train, y, test)
    error = float(np.sqrt(np.mean(np.square(pred - y_test))) / y_test.mean())
    return {
        "NRMSE": error,
        "PGR": float(pred.sum() / y_test.sum()),
        "details": details,
        "segments": segment_errors(train, test, y_test, pred),
    }


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Rows, times about how much longer the method takes than one fit."""
    return BOARD_TABLES[arguments["table"]].row_count() * METHODS[arguments["method"]].cost


def segment_errors(train: "pd.DataFrame", test: "pd.DataFrame", y: Floats, pred: Floats) -> dict[str, float]:
    """How wrong the totals of segments are: of the values or ranges of each column, and of each pair of columns.

    Args:
        train: the rows by which columns are cut into ranges.
        test: the rows that are judged.
        y: their targets.
        pred: their predictions.

    Returns:
        `count` segments that count, the `worst` |signed TRE| among them, the worst in standard errors (`worst_errors`),
        and `excess`, the root mean square of all in standard errors, beyond the 1 that chance makes it.

    """
    alone, beside = (
        {name: _codes(train[name], test[name], most) for name in test.columns} for most in (_ALONE, _BESIDE)
    )
    cuts = [*alone.values(), *(beside[a] * 1_000 + beside[b] for a, b in combinations(beside, 2))]
    errors, noises = [], []
    for codes in cuts:
        group = np.unique(codes, return_inverse=True)[1]
        rows, actual, predicted = (np.bincount(group, values) for values in (np.ones(len(y)), y, pred))
        usable = (rows >= FEWEST_ROWS) & (predicted > 0.0) & (actual > 0.0)
        ratio = np.where(usable, actual, 1.0) / np.where(usable, predicted, 1.0)
        noise = np.sqrt(np.bincount(group, np.square(y - ratio[group] * pred))) / np.where(usable, actual, 1.0)
        usable &= (noise > 0.0) & (noise < MOST_NOISE)
        errors.append((1.0 - ratio)[usable])
        noises.append((noise * ratio)[usable])
    error, noise = np.concatenate(errors), np.concatenate(noises)
    if not len(error):
        return {"count": 0.0, "worst": np.nan, "worst_errors": np.nan, "excess": np.nan}
    z = np.abs(error) / noise
    return {
        "count": float(len(error)),
        "worst": float(np.abs(error).max()),
        "worst_errors": float(z.max()),
        "excess": float(np.sqrt(max(float(np.mean(np.square(z))) - 1.0, 0.0))),
    }


def _codes(train: "pd.Series[Any]", test: "pd.Series[Any]", most: int) -> Integers:
    """The segment of each test row: a common value, one of the others, a range of numbers, or missing."""
    if str(train.dtype) == "category":
        common = {value: index for index, value in enumerate(train.value_counts().index[:most])}
        return np.array([common.get(value, most) for value in test.astype(object)], np.int64)
    values, numbers = train.to_numpy(float), test.to_numpy(float)
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    # Few different numbers are values, many are cut at their quantiles.
    edges = distinct if len(distinct) <= most else np.unique(np.quantile(known, np.arange(1, most // 2) / (most // 2)))
    return np.where(np.isnan(numbers), most + 1, np.searchsorted(edges, numbers, side="right"))


@lru_cache(maxsize=1)
def _load(name: str) -> tuple["pd.DataFrame", Floats, "pd.DataFrame", Floats]:
    data = BOARD_TABLES[name].load()
    frames = Frames.of(data)
    both = need("pandas").concat([frames.train, frames.valid], ignore_index=True)
    return both, np.concatenate([data.y_train, data.y_valid]), frames.test, data.y_test


def entries(store: Store, tables: Iterable[str]) -> list[dict[str, Any]]:
    """The stored results, each with its table, base and method."""
    return [
        {key: each.arguments[key] for key in ("table", "base", "method")} | store.read(each.text)
        for each in _everything(tables)
        if each.text in store
    ]


def missing(store: Store, tables: Iterable[str]) -> list[str]:
    """What has not been computed, in words."""
    lacking = [each.arguments for each in _everything(tables) if each.text not in store]
    by_method = {
        method: list(dict.fromkeys(each["table"] for each in lacking if each["method"] == method)) for method in METHODS
    }
    return [f"{method} on {', '.join(names)}" for method, names in by_method.items() if names]


def _everything(tables: Iterable[str]) -> list[Computation]:
    return [
        Computation("segments", {"table": table, "base": base, "method": name, "version": method.version})
        for table in tables
        for base in BASES
        for name, method in METHODS.items()
    ]


def claims(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whether the worst segments are halved, no worse than MCGrad's, and at no cost in accuracy.

    A worst segment that chance explains cannot be halved by any method, so that it is not asked for.
    """
    by = {(each["table"], each["base"], each["method"]): each for each in results}
    ours = {(table, base): each for (table, base, method), each in by.items() if method == MULTICALIBRATED}
    pairs = [(by[*where, PLAIN], each) for where, each in ours.items()]
    rivals = [(by[*where, MCGRAD], each) for where, each in ours.items() if (*where, MCGRAD) in by]
    wrong = [(before, after) for before, after in pairs if beyond_chance(before["segments"])]
    halved = [after for before, after in wrong if after["segments"]["worst"] <= 0.5 * before["segments"]["worst"]]
    as_chance = [after for _, after in wrong if after not in halved and not beyond_chance(after["segments"])]
    still_wrong = [after for _, after in wrong if after not in halved and after not in as_chance]
    behind = [
        after
        for rival, after in rivals
        if after["segments"]["worst_errors"] > rival["segments"]["worst_errors"] + 1.0
        and after["segments"]["worst"] > rival["segments"]["worst"]
    ]
    worse = [after for before, after in pairs if after["NRMSE"] > 1.001 * before["NRMSE"]]
    return [
        {
            "text": "where the worst segment is beyond chance, its |signed TRE| is at most half of before, or what "
            "chance makes it",
            "holds": not still_wrong,
            "evidence": f"halved on {len(halved)} of {len(wrong)} and what chance makes it on {len(as_chance)} more"
            f"{_named(still_wrong)}; on the {len(pairs) - len(wrong)} others chance explains the worst from the start",
        },
        {
            "text": "the worst segment is no worse than MCGrad's, or by less than one standard error",
            "holds": not behind,
            "evidence": f"on {len(rivals) - len(behind)} of {len(rivals)}{_named(behind)}",
        },
        {
            "text": "NRMSE is at most 0.1 % above that without it",
            "holds": not worse,
            "evidence": f"on {len(pairs) - len(worse)} of {len(pairs)}{_named(worse)}",
        },
    ]


def beyond_chance(segments: Mapping[str, float]) -> bool:
    """Whether the worst segment is further off, in standard errors, than the largest of so many is in 1 of 20 cases.

    Segments overlap, so that it is less than 1 in 20; amounts with a heavy tail make it more.

    >>> beyond_chance({"count": 100, "worst_errors": 3.4}), beyond_chance({"count": 100, "worst_errors": 3.6})
    (False, True)
    """
    return bool(segments["count"] and segments["worst_errors"] > stats.norm.isf(_BY_CHANCE / 2 / segments["count"]))


def _named(results: list[dict[str, Any]]) -> str:
    names = ", ".join(f"{each['table']} ({each['base']})" for each in results)
    return f", not on {names}" if names else ""
