"""How wrong totals are by segment before and after multicalibration, on the tables of numbers, beside MCGrad."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import KFold

from transun.estimators import MulticalibratedRegressor
from transun.support.arrays import Floats, Integers
from transun.support.extras import need, require
from transun_paper.board.frames import Frames
from transun_paper.board.tables import BOARD_TABLES, NUMBERS, BoardTable
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
# How often chance alone may put the worst segment beyond a limit, in its error or in standard errors.
_BY_CHANCE = 0.05
# Simulated amounts of a perfectly calibrated model: how many, how many at a time, and by how many levels of ŷ.
_DRAWS, _TOGETHER, _LEVELS = 400, 50, 20
_LEAST_NOISE = 1e-6
# A prediction below this share of the mean one counts as this share where it is divided by.
_LEAST_SHARE = 1e-3


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
    PLAIN: SegmentMethod(_plain, cost=1.0, version=2),
    MULTICALIBRATED: SegmentMethod(_multicalibrated, cost=15.0, version=3),
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
    train, y, test, y_test = _load(BOARD_TABLES[arguments["table"]])
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

    Even a perfectly calibrated model, E[y|x] = ŷ, has a worst segment: the largest of hundreds of errors, each of which
    is chance. How large that is depends on the number of segments, on how much they overlap and on the tail of the
    amounts, so that it is simulated: test rows are cut into levels of ŷ, the ratios y/ŷ of a level are divided by their
    mean, and every row draws one of its level, which makes amounts y* = ŷ·ratio that have the predictions as their
    means and the noise of the real ones. What is measured of y is then measured of many y*, including the choice of
    the segments that count. No method can have less than `chance`, and a worst segment below `limit` shows nothing.

    Args:
        train: the rows by which columns are cut into ranges.
        test: the rows that are judged.
        y: their targets.
        pred: their predictions.

    Returns:
        `count` segments that count, the `worst` |signed TRE| among them, the worst in standard errors (`worst_errors`),
        and `excess`, the root mean square of all in standard errors, beyond the 1 that chance makes it. Of the first
        two, what a perfectly calibrated model has on average (`chance`, `chance_errors`), and what it exceeds in 1 of
        40 cases (`limit`, `limit_errors`), so that it exceeds one of both in at most 1 of 20.

    """
    members = _members(train, test)
    measured = _measure(members, y[:, None], pred)
    simulated = _Measures.joined([_measure(members, amounts, pred) for amounts in _calibrated_amounts(y, pred)])
    result = {name: float(getattr(measured, name)[0]) for name in ("count", "worst", "worst_errors", "excess")}
    for name, values in (("", simulated.worst), ("_errors", simulated.worst_errors)):
        known = values[np.isfinite(values)]
        result[f"chance{name}"] = float(known.mean()) if len(known) else np.nan
        result[f"limit{name}"] = float(np.quantile(known, 1.0 - _BY_CHANCE / 2.0)) if len(known) else np.nan
    return result


@dataclass(frozen=True)
class _Measures:
    """What is measured of the segments, for each of k columns of amounts, (k,); NaN where no segment counts."""

    count: Floats
    worst: Floats
    worst_errors: Floats
    excess: Floats

    @classmethod
    def joined(cls, parts: "list[_Measures]") -> "_Measures":
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


def _members(train: "pd.DataFrame", test: "pd.DataFrame") -> sparse.csr_array:
    """Which test rows belong to which segment, (segments, n), of segments with enough rows."""
    alone, beside = (
        {name: _codes(train[name], test[name], most) for name in test.columns} for most in (_ALONE, _BESIDE)
    )
    cuts = [*alone.values(), *(beside[a] * 1_000 + beside[b] for a, b in combinations(beside, 2))]
    segment, row, first = [], [], 0
    for codes in cuts:
        group = np.unique(codes, return_inverse=True)[1]
        large = np.bincount(group) >= FEWEST_ROWS
        number = first + np.cumsum(large) - 1
        chosen = np.flatnonzero(large[group])
        segment.append(number[group[chosen]])
        row.append(chosen)
        first += int(large.sum())
    places = np.concatenate(segment), np.concatenate(row)
    return sparse.csr_array((np.ones(len(places[0])), places), shape=(first, len(test)))


def _measure(members: sparse.csr_array, y: Floats, pred: Floats) -> _Measures:
    """The errors by segment (segments,) of each column of amounts y (n, k), summed up in k measures."""
    actual, squares, cross = (members @ values for values in (y, y * y, y * pred[:, None]))
    predicted, predicted_squares = ((members @ values)[:, None] for values in (pred, pred * pred))
    usable = (predicted > 0.0) & (actual > 0.0)
    ratio = np.where(usable, actual, 1.0) / np.where(usable, predicted, 1.0)
    variance = np.maximum(squares - 2.0 * ratio * cross + ratio**2 * predicted_squares, 0.0)
    noise = np.sqrt(variance) / np.where(usable, actual, 1.0)
    # Where the noise is rounding, all amounts are the same multiple of their predictions.
    usable &= (noise > _LEAST_NOISE) & (noise < MOST_NOISE)
    error = np.where(usable, np.abs(1.0 - ratio), 0.0)
    z = error / np.where(usable, noise * ratio, 1.0)
    count = usable.sum(0).astype(np.float64)
    some = np.where(count > 0.0, 1.0, np.nan)
    excess = np.sqrt(np.maximum((z**2).sum(0) / np.maximum(count, 1.0) - 1.0, 0.0))
    return _Measures(count, *(some * each for each in (error.max(0, initial=0.0), z.max(0, initial=0.0), excess)))


def _calibrated_amounts(y: Floats, pred: Floats) -> Iterator[Floats]:
    """Amounts (n, k) whose means are the predictions and whose noise is that of y at the same level of ŷ."""
    rng = np.random.default_rng(0)
    pred = np.maximum(pred, _LEAST_SHARE * np.mean(np.abs(pred)))
    ratio = y / pred
    levels = np.array_split(np.argsort(pred, kind="stable"), _LEVELS)
    for rows in levels:
        mean = ratio[rows].mean()
        ratio[rows] = ratio[rows] / mean if mean > 0.0 else 1.0
    for _ in range(0, _DRAWS, _TOGETHER):
        amounts = np.empty((len(y), _TOGETHER))
        for rows in levels:
            drawn = rng.integers(0, len(rows), (len(rows), _TOGETHER))
            amounts[rows] = pred[rows, None] * ratio[rows][drawn]
        yield amounts


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
def _load(table: BoardTable) -> tuple["pd.DataFrame", Floats, "pd.DataFrame", Floats]:
    data = table.load()
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


def power_trial() -> dict[str, Any]:
    """The trial by which the powers that multicalibration learns were chosen, kept as data.

    `how` says how it was measured. Of each of `entries`, `worst` is the worst segment's |signed TRE| on validation rows
    before and with each power, and `NRMSE` its relative change with each power.
    """
    text = files("transun_paper.board").joinpath("power_trial.json").read_text(encoding="utf-8")
    trial: dict[str, Any] = json.loads(text)
    return trial


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
            f"{_named(still_wrong)}; on the {len(pairs) - len(wrong)} others chance explains the worst from the start"
            f"{_by_rival(by, wrong)}",
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


def _by_rival(
    by: Mapping[tuple[str, str, str], dict[str, Any]], wrong: list[tuple[dict[str, Any], dict[str, Any]]]
) -> str:
    """On how many of the wrong ones MCGrad did the same, by the limits of chance of our own predictions."""
    done, tried = 0, 0
    for before, after in wrong:
        rival = by.get((before["table"], before["base"], MCGRAD))
        if rival is not None:
            tried += 1
            measured = after["segments"] | {name: rival["segments"][name] for name in ("worst", "worst_errors")}
            done += measured["worst"] <= 0.5 * before["segments"]["worst"] or not beyond_chance(measured)
    return f"; MCGrad does one or the other on {done} of {tried}" if tried else ""


def beyond_chance(segments: Mapping[str, float]) -> bool:
    """Whether the worst segment is further off than that of a perfectly calibrated model is in 1 of 20 cases.

    >>> beyond_chance({"count": 9.0, "worst": 0.2, "limit": 0.3, "worst_errors": 3.4, "limit_errors": 3.5})
    False
    >>> beyond_chance({"count": 9.0, "worst": 0.2, "limit": 0.3, "worst_errors": 3.6, "limit_errors": 3.5})
    True
    """
    return bool(segments["worst"] > segments["limit"] or segments["worst_errors"] > segments["limit_errors"])


def _named(results: list[dict[str, Any]]) -> str:
    names = ", ".join(f"{each['table']} ({each['base']})" for each in results)
    return f", not on {names}" if names else ""
