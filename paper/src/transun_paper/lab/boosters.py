"""The estimators on real data: LightGBM as the base, five folds, the same folds for every method."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transun.estimators import AmplificationWarning, CorrectedRegressor, GTSRegressor, UnbiasedRegressor
from transun.metrics import MRE, NMAE, NRMSE, STRE, TRE, XAUC, Metric
from transun.metrics.paired import leave_out
from transun.schemes import PowerVariance
from transun.support.extras import need
from transun.support.progress import Progress
from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.compare import difference
from transun_paper.lab.matrix import Matrix, folds, matrix
from transun_paper.lab.measures import values
from transun_paper.lab.pool import processes
from transun_paper.lab.store import Store, rounded

METRICS: tuple[Metric, ...] = (STRE, TRE, MRE, NRMSE, NMAE, XAUC)
# The largest set is cut, so that a hundred fits of it take minutes.
ROWS = {"globo": 200_000}
QUICK_ROWS = 1_500
FOLDS = 5
# What the automatic choice is called in the table.
AUTOMATIC = "UnbiasedRegressor"

Build = Callable[[Callable[..., Any]], Any]


def _gts(power: float, **other: Any) -> Build:
    return lambda base: GTSRegressor(base(), slope=PowerVariance(power), random_state=0, **other)


# Each method is built from a function that makes the base regressor, with the objective as its argument.
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


def boosted_table(
    store: Store,
    names: Sequence[str] = PUBLIC,
    methods: Sequence[str] = tuple(METHODS),
    quick: bool = False,
    jobs: int = 1,
    show: bool | None = None,
) -> list[dict[str, Any]]:
    """One entry per data set and method: metrics of out-of-fold predictions for every row, with standard errors.

    Args:
        store: where finished entries are kept.
        names: which data sets.
        methods: which rows of `METHODS`.
        quick: only some rows of each data set.
        jobs: entries computed at the same time, a process each.
        show: a progress bar.

    """
    wanted = [(name, method, QUICK_ROWS if quick else ROWS.get(name)) for name in names for method in methods]
    # The automatic choice takes longest: it begins first.
    missing = sorted((job for job in wanted if entry_text(*job) not in store), key=lambda job: job[1] != AUTOMATIC)
    with Progress("boosted trees", len(wanted), show) as bar, processes(jobs) as pool:
        running = {pool.submit(_entry, *job): job for job in missing}
        for done, future in enumerate(as_completed(running), len(wanted) - len(missing) + 1):
            store.keep(entry_text(*running[future]), future.result())
            bar.advance(done, ", ".join(running[future][:2]))
    return [{"dataset": job[0], "method": job[1], **store.read(entry_text(*job))} for job in wanted]


def entry_text(name: str, method: str, rows: int | None) -> str:
    """What an entry is stored under."""
    return f"LightGBM, {method} on {name}, {rows or 'all'} rows, {FOLDS} folds, version 2"


def claims(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per data set, whether the automatic choice is unbiased, and whether anything is better than it beyond noise."""
    found = []
    for name in dict.fromkeys(entry["dataset"] for entry in entries):
        rows = {entry["method"]: entry for entry in entries if entry["dataset"] == name and "failed" not in entry}
        own, best = rows[AUTOMATIC], min(rows.values(), key=lambda row: row["metrics"]["NRMSE"])
        stre, error = own["metrics"]["STRE"], own["errors"]["STRE"]
        found.append(
            {
                "text": f"{name}: the signed TRE of {AUTOMATIC} is within two standard errors of 0",
                "holds": abs(stre) <= 2.0 * error,
                "evidence": f"{stre:+.4f} ± {error:.4f}",
            }
        )
        gap = difference([own], [best], "NRMSE")
        ahead = (
            "it is the best row" if own is best else f"{gap.value:+.4f} ± {gap.error:.4f} (paired) to {best['method']}"
        )
        found.append(
            {
                "text": f"{name}: the NRMSE of {AUTOMATIC} is within one standard error of the best row",
                "holds": own["metrics"]["NRMSE"] <= best["metrics"]["NRMSE"] + best["errors"]["NRMSE"],
                "evidence": f"{own['metrics']['NRMSE']:.4f}; {ahead}",
            }
        )
    return found


def _entry(name: str, method: str, rows: int | None) -> dict[str, Any]:
    data = matrix(name, rows)
    began = time.perf_counter()
    try:
        pred = _held_out(data, METHODS[method])
    except Exception as error:  # a base regressor that refuses these targets, in its own words
        return {"failed": f"{type(error).__name__}: {error}"}
    return entry_of(pred, data.y, time.perf_counter() - began)


def entry_of(pred: NDArray[np.float64], y: NDArray[np.float64], seconds: float) -> dict[str, Any]:
    """What an entry says of out-of-fold predictions."""
    shown, truth = torch.from_numpy(pred), torch.from_numpy(y)
    entry: dict[str, Any] = rounded(
        {
            "rows": len(y),
            "metrics": values(METRICS, shown, truth),
            "errors": {metric.name: metric.standard_error(shown, truth) for metric in METRICS},
            "left_out": leave_out(METRICS, shown, truth),
            "seconds": seconds,
        }
    )
    return entry


def _held_out(data: Matrix, build: Build) -> NDArray[np.float64]:
    """Predictions of every row by a model of the other folds."""
    fold, pred = folds(len(data.y)), np.empty_like(data.y)
    for number in range(FOLDS):
        pred[fold == number] = predict_fold(data, build, number)
    return pred


def predict_fold(data: Matrix, build: Build, number: int) -> NDArray[np.float64]:
    """Predictions of the rows of one fold by a model of the others."""
    held = folds(len(data.y)) == number
    with quiet():
        model = build(lambda **given: base(data.ids, **given)).fit(data.X[~held], data.y[~held])
        return np.asarray(model.predict(data.X[held]))


@contextmanager
def quiet() -> Iterator[None]:
    """Without what a reader of a table cannot act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmplificationWarning)
        # scikit-learn 1.9 wants a splitter where earlier versions take a seed.
        warnings.filterwarnings("ignore", "`TargetEncoder", FutureWarning)
        yield


def base(ids: Sequence[int], **given: Any) -> Any:
    """LightGBM behind a target encoding of ids, which is learned from whatever target the regressor is given."""
    compose, preprocessing = need("sklearn.compose"), need("sklearn.preprocessing")
    encode = preprocessing.TargetEncoder(target_type="continuous", random_state=0)
    trees = need("lightgbm").LGBMRegressor(n_jobs=1, verbose=-1, random_state=0, **given)
    columns = compose.ColumnTransformer([("ids", encode, list(ids))], remainder="passthrough")
    return need("sklearn.pipeline").make_pipeline(columns, trees)
