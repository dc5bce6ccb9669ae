"""GTS by XGBoost in a Spark cluster: the fits are those of `xgboost.spark`, and between them is arithmetic on rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.schema import require_columns
from transun.engines.boosters import assembled_gts, fold_of_rows, require_amounts, sampled_rows, slopes_of_rows
from transun.engines.spark import with_row_numbers
from transun.estimators import GTSRegressor
from transun.estimators.gts import RatioGuard
from transun.estimators.target import apply_transform, prepare_transform
from transun.schemes import PowerVariance, Slope
from transun.support.extras import need, require
from transun.transforms import Log1p, Transform

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["fit_gts"]

# Columns beside the features, which have other names while the boosters are fitted.
_NUMBER, _TARGET, _FOLD, _POINT, _SLOPE, _ENCODED, _WEIGHT = (
    f"transun_{name}" for name in ("number", "target", "fold", "point", "slope", "encoded", "weight")
)


def fit_gts(
    regressor: Any,
    frame: Any,
    target: str,
    features: Sequence[str],
    *,
    target_transform: Transform = Log1p(),
    slope: Slope = PowerVariance(1.0),
    folds: int = 5,
    seed: int = 0,
) -> GTSRegressor:
    """`GTSRegressor` fitted to a Spark frame, by its workers; the result is of one process and predicts alone.

    As `transun.engines.dask_boosters.fit_gts`: a booster of T(y) for each fold, which is trained on the rows of the
    others and predicts κ(u) for its own; one booster of y·κ by Poisson deviance with the weights 1/κ; the ratio
    estimates E[y|x]. Rows are in folds by a hash of their number, in the order of the partitions. Only `folds` + 1
    boosters and a sample of 131,072 rows come to this process. The columns that are needed are kept in the memory and
    on the disks of the workers meanwhile.

    Args:
        regressor: `xgboost.spark.SparkXGBRegressor`; its `features_col` and `label_col` are set here.
        frame: a Spark frame; it must give the same rows each time that it is computed.
        target: the column of targets, none below 0.
        features: the columns of features, all of them numbers, in the order in which `predict` will get them.
        target_transform: T.
        slope: κ.
        folds: models of T(y), each of which costs a fit.
        seed: of the folds.

    """
    require("pyspark", "xgboost")
    if not isinstance(regressor, need("xgboost.spark").SparkXGBRegressor):
        raise ValueError(f"{type(regressor).__name__} does not train in a Spark cluster: give SparkXGBRegressor()")
    functions, levels = need("pyspark.sql.functions"), need("pyspark")
    require_columns(frame.columns, [target, *features])
    columns = [f"x{number}" for number in range(len(features))]  # names that no part of Spark reads as an expression
    doubles = [functions.col(f"`{name}`").cast("double") for name in (*features, target)]
    renamed = frame.select(*(column.alias(name) for column, name in zip(doubles, [*columns, _TARGET], strict=True)))
    numbered = with_row_numbers(renamed, _NUMBER).persist(levels.StorageLevel.MEMORY_AND_DISK)
    try:
        y = functions.col(_TARGET)
        rows, known, lowest, highest = numbered.select(
            functions.count("*"), functions.count(y), functions.min(y), functions.max(y)
        ).first()
        if not rows:
            raise ValueError("the frame has no rows: there is nothing to fit")
        if known < rows:
            raise ValueError(f"column {target!r} lacks {rows - known} of {rows} values: leave these rows out")
        require_amounts(lowest, highest)
        sample = _collected(numbered, rows, seed, [_TARGET])[_TARGET]
        transform = prepare_transform(target_transform, np.append(sample, [lowest, highest]))

        def folded(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {
                _FOLD: fold_of_rows(values[_NUMBER], folds, seed).astype(np.float64),
                _POINT: apply_transform(values[_TARGET], transform),
            }

        parts = _with_columns(numbered, [_FOLD, _POINT], folded)
        models = [
            _local(_booster(regressor, columns, _POINT).fit(parts.where(functions.col(_FOLD) != number)))
            for number in range(folds)
        ]

        def encoded(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            X = np.column_stack([values[name] for name in columns])
            fold = fold_of_rows(values[_NUMBER], folds, seed)
            slopes = np.zeros(len(X))
            for number in np.unique(fold):
                own = fold == number
                slopes[own] = slopes_of_rows(X[own], models[number], slope, transform)
            return {_SLOPE: slopes, _ENCODED: values[_TARGET] * slopes, _WEIGHT: 1.0 / slopes}

        biased = _with_columns(numbered, [_SLOPE, _ENCODED, _WEIGHT], encoded)
        bias = _booster(regressor, columns, _ENCODED, weight_col=_WEIGHT, objective="count:poisson")
        bias_model = _local(bias.fit(biased))
        chosen = _collected(biased, rows, seed, [_SLOPE, _TARGET, _WEIGHT])
        guard = RatioGuard.learn(chosen[_SLOPE], chosen[_TARGET], chosen[_WEIGHT])
        counts = {row[0]: row[1] for row in parts.groupBy(_FOLD).count().collect()}
    finally:
        numbered.unpersist()
    shares = np.array([counts.get(float(number), 0) for number in range(folds)]) / rows
    return assembled_gts(models, bias_model, shares, transform, slope, guard, len(columns))


def _booster(regressor: Any, features: list[str], label: str, **settings: Any) -> Any:
    booster = regressor.copy()
    booster.setParams(features_col=features, label_col=label, **settings)
    return booster


def _local(model: Any) -> Any:
    """The regressor of one process with the trees of one of a cluster."""
    local = need("xgboost").XGBRegressor()
    local.load_model(model.get_booster().save_raw())
    return local


def _with_columns(
    frame: Any, names: list[str], compute: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
) -> Any:
    """The frame with further columns of numbers, computed from all columns of some rows at a time."""
    types = need("pyspark.sql.types")
    schema = types.StructType([*frame.schema.fields, *(types.StructField(name, types.DoubleType()) for name in names)])

    def work(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        pa = need("pyarrow")
        for batch in batches:
            values = _arrays(batch)
            more = compute(values) if batch.num_rows else {}
            arrays = [pa.array(more.get(name, np.zeros(0)), pa.float64()) for name in names]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], [*batch.schema.names, *names])

    return frame.mapInArrow(work, schema)


def _collected(frame: Any, rows: int, seed: int, columns: list[str]) -> dict[str, np.ndarray]:
    """Some columns of the sample, brought to this process."""

    def work(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        pa = need("pyarrow")
        for batch in batches:
            numbers = batch.column(_NUMBER).to_numpy(zero_copy_only=False)
            yield batch.filter(pa.array(sampled_rows(numbers, rows, seed)))

    kept = frame.select(_NUMBER, *columns)
    table = kept.mapInArrow(work, kept.schema).toArrow()
    return {name: table.column(name).to_numpy() for name in columns}


def _arrays(batch: "pa.RecordBatch") -> dict[str, np.ndarray]:
    return {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}
