"""The estimators on real data: LightGBM as the base regressor, five folds, the same folds for every method."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transun.estimators import CorrectedRegressor, FitWarning, GTSRegressor, UnbiasedRegressor
from transun.metrics import MRE, NMAE, NRMSE, STRE, TRE, XAUC, Metric
from transun.metrics.paired import leave_out
from transun.schemes import PowerVariance
from transun.support.arrays import Floats
from transun.support.extras import need
from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.compare import Claim, difference
from transun_paper.lab.computation import Computation
from transun_paper.lab.matrix import Matrix, folds, matrix
from transun_paper.lab.measures import values
from transun_paper.lab.pool import carry_out_computations
from transun_paper.lab.progress import WriteLine, to_stderr
from transun_paper.lab.store import Store, rounded

# What is measured of every method; the page shows all but TRE.
BOOSTER_METRICS: tuple[Metric, ...] = (STRE, TRE, MRE, NRMSE, NMAE, XAUC)
# The largest data set is cut, so that a hundred fits of it take minutes.
ROWS = {"globo": 200_000}
QUICK_ROWS = 1_500
FOLDS = 5
# Part of every cache key: a change of what an entry is computed from must change it.
_VERSION = 2
# The name of the automatic choice in the table.
AUTOMATIC = "UnbiasedRegressor"

Build = Callable[[Callable[..., Any]], Any]


def _gts(power: float, **options: Any) -> Build:
    return lambda base: GTSRegressor(base(), slope=PowerVariance(power), emphasis=0.0, random_state=0, **options)


# Each method is built from a function that makes the base regressor and takes the objective.
METHODS: Mapping[str, Build] = {
    "log target": lambda base: CorrectedRegressor(base(), bias_correction=None, random_state=0),
    "smearing": lambda base: CorrectedRegressor(base(), bias_correction="smearing", random_state=0),
    "isotonic": lambda base: CorrectedRegressor(base(), bias_correction="isotonic", random_state=0),
    "MSE": lambda base: base(),
    "Poisson": lambda base: base(objective="poisson"),
    "Gamma": lambda base: base(objective="gamma"),
    "Tweedie": lambda base: base(objective="tweedie"),
    "GTS in-sample, p = 1": _gts(1.0, cv=None),
    "GTS in-sample, p = 2": _gts(2.0, cv=None),
    "GTS, p = 0.5": _gts(0.5),
    "GTS, p = 1": _gts(1.0),
    "GTS, p = 1.5": _gts(1.5),
    "GTS, p = 2": _gts(2.0),
    "GTS, p = 2, Poisson z": lambda base: GTSRegressor(
        base(), base(objective="poisson"), slope=PowerVariance(2.0), emphasis=1.0, random_state=0
    ),
    AUTOMATIC: lambda base: UnbiasedRegressor(base(), random_state=0),
}


def boosters_table(
    store: Store,
    names: Sequence[str] = PUBLIC,
    methods: Sequence[str] = tuple(METHODS),
    quick: bool = False,
    jobs: int = 1,
    write: WriteLine = to_stderr,
) -> list[dict[str, Any]]:
    """One entry per data set and method: metrics of out-of-fold predictions for every row, with standard errors.

    Args:
        store: where finished entries are kept.
        names: which data sets.
        methods: which rows of `METHODS`.
        quick: only some rows of each data set.
        jobs: entries computed at the same time, each by a process.
        write: takes lines of progress.

    """
    pairs = [(name, method) for name in names for method in methods]
    computations = [
        Computation("booster", {"dataset": name, "method": method, "rows": _rows(name, quick), "version": _VERSION})
        for name, method in pairs
    ]
    carry_out_computations(computations, store, jobs, write=write)
    return [
        {"dataset": name, "method": method, **store.read(computation.text)}
        for (name, method), computation in zip(pairs, computations, strict=True)
    ]


def _rows(name: str, quick: bool) -> int | None:
    return QUICK_ROWS if quick else ROWS.get(name)


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """One entry: the method on the data set, out of fold."""
    data = matrix(arguments["dataset"], arguments["rows"])
    began = time.perf_counter()
    try:
        pred = out_of_fold(data, METHODS[arguments["method"]])
    except Exception as error:  # a regressor that refuses these targets; the report quotes its message
        return {"failed": f"{type(error).__name__}: {error}"}
    return entry_of(pred, data.y, time.perf_counter() - began)


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Rows, times eight for the automatic choice, which tries several methods; 100,000 where all rows are used."""
    return (arguments["rows"] or 100_000.0) * (8 if arguments["method"] == AUTOMATIC else 1)


def booster_claims(entries: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Per data set, whether the automatic choice is unbiased, and whether anything is better than it beyond noise."""
    claims = []
    for name in dict.fromkeys(entry["dataset"] for entry in entries):
        rows = {entry["method"]: entry for entry in entries if entry["dataset"] == name and "failed" not in entry}
        automatic, best = rows[AUTOMATIC], min(rows.values(), key=lambda row: row["metrics"]["NRMSE"])
        stre, error = automatic["metrics"]["STRE"], automatic["errors"]["STRE"]
        nrmse, least = automatic["metrics"]["NRMSE"], best["metrics"]["NRMSE"]
        gap = difference([automatic], [best], "NRMSE")
        distance = f"{gap.value:+.4f} ± {gap.error:.4f} (paired) to {best['method']}"
        claims += [
            Claim(
                f"{name}: the signed TRE of {AUTOMATIC} is within two standard errors of 0",
                abs(stre) <= 2.0 * error,
                f"{stre:+.4f} ± {error:.4f}",
            ),
            Claim(
                f"{name}: the NRMSE of {AUTOMATIC} is within one standard error of the best row",
                nrmse <= least + best["errors"]["NRMSE"],
                f"{nrmse:.4f}; {'it is the best row' if automatic is best else distance}",
            ),
        ]
    return claims


def entry_of(pred: Floats, y: Floats, seconds: float) -> dict[str, Any]:
    """An entry of the table: metrics of out-of-fold predictions, and how long they took."""
    predicted, truth = torch.from_numpy(pred), torch.from_numpy(y)
    entry: dict[str, Any] = rounded(
        {
            "rows": len(y),
            "metrics": values(BOOSTER_METRICS, predicted, truth),
            "errors": {metric.name: metric.standard_error(predicted, truth) for metric in BOOSTER_METRICS},
            "left_out": leave_out(BOOSTER_METRICS, predicted, truth),
            "seconds": seconds,
        }
    )
    return entry


def out_of_fold(data: Matrix, build: Build) -> Floats:
    """Predictions for every row by a model of the other folds."""
    fold, pred = folds(len(data.y), FOLDS), np.empty_like(data.y)
    for number in range(FOLDS):
        test = fold == number
        with quiet():
            model = build(lambda **options: base(data.ids, **options)).fit(data.X[~test], data.y[~test])
            pred[test] = model.predict(data.X[test])
    return pred


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings that a reader of a table cannot act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        # scikit-learn 1.9 wants a splitter where earlier versions take a seed.
        warnings.filterwarnings("ignore", "`TargetEncoder", FutureWarning)
        yield


def base(ids: Sequence[int], **options: Any) -> Any:
    """LightGBM behind a target encoding of ids, which is learned from the target that the regressor is fitted to."""
    compose, preprocessing = need("sklearn.compose"), need("sklearn.preprocessing")
    encode = preprocessing.TargetEncoder(target_type="continuous", random_state=0)
    trees = need("lightgbm").LGBMRegressor(n_jobs=1, verbose=-1, random_state=0, **options)
    columns = compose.ColumnTransformer([("ids", encode, list(ids))], remainder="passthrough")
    return need("sklearn.pipeline").make_pipeline(columns, trees)
