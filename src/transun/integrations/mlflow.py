"""MLflow: trainings tracked, models logged so that they are served without transun, and metrics for its evaluation."""

import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transun import __version__
from transun.data.logical import AnyType, FractionType, LogicalType
from transun.integrations import served_table
from transun.metrics import NRMSE, PGR, STRE, XAUC, Metric
from transun.models.certificate import FILE, Certificate, certificate_json
from transun.support.extras import need, require
from transun.support.files import write_json
from transun.support.text_form import dumps
from transun.tables.graph_export import export
from transun.tables.model import TableModel

__all__ = ["MLflowTracker", "evaluation_metrics", "log_model", "save_model"]

# What a served model needs; MLflow adds itself.
_REQUIREMENTS = ("numpy", "onnxruntime", "pandas")
# Tests `pyarrow.types.is_…` and the types of MLflow.
_TYPES = {
    "boolean": "boolean",
    "floating": "double",
    "integer": "long",
    "large_string": "string",
    "timestamp": "datetime",
}


class MLflowTracker:
    """Logs the numbers of a training into a run of MLflow: `fit(..., tracker=...)`.

    Args:
        run_id: of the run; None is the run that is active, or a new one. A training that is resumed continues its
            curves by the id of its run, and a step that is trained again has the same numbers.

    """

    def __init__(self, run_id: str | None = None) -> None:
        require("mlflow")
        self.run_id = run_id

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log the numbers."""
        metrics = {metric_name(name): value for name, value in values.items()}
        need("mlflow").log_metrics(metrics, step=step, run_id=self.run_id)


def metric_name(name: str) -> str:
    """A name as MLflow allows it, without brackets and other signs.

    >>> metric_name("valid/TopXAUC(share=0.1)")
    'valid/TopXAUC_share_0.1'
    """
    return re.sub(r"[^\w./ -]+", "_", name, flags=re.ASCII).strip("_")


def log_model(
    trained: TableModel,
    name: str = "model",
    *,
    certificate: Certificate | None = None,
    quantiles: Sequence[float] = (),
    **settings: Any,
) -> Any:
    """Log a trained model into the active run of MLflow, to be served by whoever has never heard of transun.

    It is a `pyfunc` model around one ONNX file from raw columns to predictions, with a small module that reads frames;
    serving it needs mlflow, numpy, onnxruntime and pandas, as its requirements say. The signature has the columns with
    the types of the training rows. The certificate becomes a file of the model, and its numbers become metrics of the
    run: `pgr`, `pgr_low`, `pgr_high` and so on.

    Args:
        trained: the trained model.
        name: of the logged model.
        certificate: what was measured about its totals; `read_certificate(folder)` reads that of a saved model.
        quantiles: levels of quantiles to output too; see `transun.export`.
        **settings: further arguments of `mlflow.pyfunc.log_model`, such as `registered_model_name`.

    Returns:
        The `ModelInfo` of MLflow.

    """
    require("mlflow", "pandas")
    mlflow = need("mlflow")
    with tempfile.TemporaryDirectory() as folder, _no_advice():
        arguments = _pyfunc_arguments(trained, Path(folder), certificate, quantiles)
        logged = need("mlflow.pyfunc").log_model(name=name, **arguments, **settings)
    if certificate is not None:
        metrics = {metric_name(key): value for key, value in certificate.names().items() if value == value}
        mlflow.log_metrics(metrics, model_id=logged.model_id)
    return logged


def save_model(
    trained: TableModel,
    path: str | Path,
    *,
    certificate: Certificate | None = None,
    quantiles: Sequence[float] = (),
    **settings: Any,
) -> None:
    """Write what `log_model` logs into a folder, without a run.

    Args:
        trained: the trained model.
        path: the folder, which must be new or empty.
        certificate: what was measured about its totals.
        quantiles: levels of quantiles to output too.
        **settings: further arguments of `mlflow.pyfunc.save_model`.

    """
    require("mlflow", "pandas")
    with tempfile.TemporaryDirectory() as folder, _no_advice():
        arguments = _pyfunc_arguments(trained, Path(folder), certificate, quantiles)
        need("mlflow.pyfunc").save_model(path=path, **arguments, **settings)


def evaluation_metrics(metrics: Sequence[Metric] = (PGR, STRE, NRMSE, XAUC)) -> list[Any]:
    """Metrics for `mlflow.models.evaluate(..., extra_metrics=...)`, and the sum of the predictions.

    MLflow's own report of a regressor has the sum of the targets and not that of the predictions, so that it cannot
    show a total that is wrong.

    Args:
        metrics: any metrics of `transun.metrics`.

    """
    make_metric = need("mlflow.models").make_metric

    def adapted(metric: Metric) -> Any:
        def eval_fn(predictions: Any, targets: Any) -> float:
            return metric(predictions.to_numpy(), targets.to_numpy())

        return make_metric(
            eval_fn=eval_fn,
            greater_is_better=metric.better == "higher",
            name=metric_name(metric.name),
            long_name=metric.title,
            metric_details=metric.meaning,
        )

    def total(predictions: Any, targets: Any) -> float:
        return float(predictions.sum())

    described = "The sum of the predictions, to be compared with sum_on_target."
    total_metric = make_metric(
        eval_fn=total, greater_is_better=False, name="sum_on_prediction", metric_details=described
    )
    return [*map(adapted, metrics), total_metric]


def _pyfunc_arguments(
    trained: TableModel, folder: Path, certificate: Certificate | None, quantiles: Sequence[float]
) -> dict[str, Any]:
    """Write the files of a model into a folder, and say what MLflow has to know of them."""
    folder = folder / "model"  # the name that they have in MLflow
    folder.mkdir()
    encoded = [column.name for column in trained.features.graphs() if column.encoded]
    if encoded:
        raise ValueError(
            f"column {encoded[0]!r} cannot be encoded inside the ONNX file, so that serving it would need transun: "
            "give it another kind, such as Id() in place of HashedId()"
        )
    export(trained, folder / served_table.GRAPH, quantiles=quantiles, certificate=certificate)
    if certificate is not None:
        write_json(folder / FILE, certificate_json(certificate))
    assert served_table.__file__ is not None
    return {
        "loader_module": served_table.__name__.rpartition(".")[2],
        "code_paths": [served_table.__file__],
        "data_path": str(folder),
        "signature": _signature(trained),
        "pip_requirements": [f"{package}=={version(package)}" for package in _REQUIREMENTS],
        "metadata": {"target": trained.target, "head": dumps(trained.model.head), "transun": __version__},
    }


@contextmanager
def _no_advice() -> Iterator[None]:
    """Inside the `with` block MLflow does not ask for an example of rows, from which to guess a signature."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*input example was not provided", UserWarning)
        yield


def _signature(trained: TableModel) -> Any:
    """The columns with their types, and the names of outputs as a parameter."""
    schema = need("mlflow.types.schema")
    types: dict[str, LogicalType] = {
        name: trained.features.types.get(name, AnyType()) for name in trained.features.sources
    }
    if trained.exposure is not None:
        types[trained.exposure] = FractionType()
    missing = {
        source: trained.features.missing.get(name, 0.0)
        for name, kind in trained.features.columns.items()
        for source in kind.sources(name)
    }
    columns = [_column(name, type_, missing.get(name, 0.0) > 0.0) for name, type_ in types.items()]
    output = schema.ParamSpec("output", "string", "prediction")
    return need("mlflow.models").ModelSignature(
        schema.Schema(columns),
        schema.Schema([schema.TensorSpec(need("numpy").dtype("float64"), (-1,))]),
        schema.ParamSchema([output]),
    )


def _column(name: str, type_: LogicalType, missing: bool) -> Any:
    """A column of the signature."""
    schema, types = need("mlflow.types.schema"), need("pyarrow.types")
    arrow = type_.to_arrow([]).type
    several = types.is_large_list(arrow)
    value = arrow.value_type if several else arrow
    known = next((mapped for test, mapped in _TYPES.items() if getattr(types, f"is_{test}")(value)), None)
    # pandas turns whole numbers into fractions where one is missing, and MLflow would take them for another type.
    if known is None or (known == "long" and missing and not several):
        return schema.ColSpec(schema.AnyType(), name)
    # Where lists are not required, MLflow allows None and empty ones.
    return schema.ColSpec(schema.Array(known) if several else known, name, required=not several)
