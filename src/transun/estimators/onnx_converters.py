"""Estimators as ONNX: converters for skl2onnx, so that a pipeline with one of them becomes one file.

The models inside are converted by skl2onnx and onnxmltools. What the estimator computes from their predictions - κ, the
ratio and its guard, corrections, mixtures, balance - is a torch module (`Composition`), whose graph is put behind them.
"""

import copy
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from torch import Tensor, nn

from transun import __version__
from transun.estimators.balanced import BalancedRegressor
from transun.estimators.compact import CompactRegressor
from transun.estimators.corrected import CorrectedRegressor
from transun.estimators.gts import GTSRegressor
from transun.estimators.multicalibrated import MulticalibratedRegressor
from transun.estimators.pipelines import final_estimator
from transun.estimators.unbiased import UnbiasedRegressor
from transun.support.extras import need, require
from transun.tables.onnx_graph import torch_to_onnx

__all__ = ["register_converters", "to_onnx"]

# What the graphs of formulas are written in, and what onnxmltools can write.
_OPSETS = {"": 20, "ai.onnx.ml": 3}
_ESTIMATORS = (
    BalancedRegressor,
    CompactRegressor,
    CorrectedRegressor,
    GTSRegressor,
    MulticalibratedRegressor,
    UnbiasedRegressor,
)


def to_onnx(model: Any, X: Any, **options: Any) -> Any:
    """The ONNX model of a fitted estimator or pipeline: `onnx.save(to_onnx(model, X), "model.onnx")`.

    The file has one output, the prediction (n, 1), and is opened by onnxruntime alone. Its input has the type of X.
    For trees that should be float32, in which skl2onnx keeps their thresholds: train with such X, or a number may be
    rounded across one. For linear models it should be float64: where their terms cancel, single precision has few
    digits left, of which a steep correction behind them makes an error of some 1e-5.
    After a fit with exposures the output is the amount per unit of exposure. The metadata of the file say so, in
    the entry `transun`: what the output means, and by what it was made.

    Args:
        model: a fitted estimator of this package, or a pipeline with one in it.
        X: some rows, which show the types of the inputs.
        options: further arguments of `skl2onnx.to_onnx`.

    `skl2onnx.to_onnx` itself works too after `register_converters()`, with target_opset={"": 20, "ai.onnx.ml": 3}.

    """
    register_converters()
    converted = need("skl2onnx").to_onnx(model, X, **{"target_opset": _OPSETS, **options})
    last = final_estimator(model)
    document = {
        "model": type(last).__name__,
        "outputs": [{"name": each.name, "meaning": _meaning(last)} for each in converted.graph.output],
        "versions": {"transun": __version__},
    }
    need("onnx").helper.set_model_props(converted, {"transun": json.dumps(document)})
    return converted


def _meaning(estimator: Any) -> str:
    # Around an estimator of this package there may be one of scikit-learn, such as a vote, which knows no exposure.
    if hasattr(estimator, "composition") and estimator.composition().per_exposure:
        return "an estimate of the mean amount per unit of exposure: multiply it by the exposure of the row"
    return "an estimate of the mean of the target"


def register_converters() -> None:
    """Make `skl2onnx.to_onnx` know the estimators of this package, and the boosters that are imported."""
    require("onnx", "onnxscript", "skl2onnx", "onnxmltools")
    register = need("skl2onnx").update_registered_converter
    for estimator in _ESTIMATORS:
        register(estimator, f"Transun{estimator.__name__}", _declare_output, _convert, overwrite=True)
    _register(HistGradientBoostingRegressor, "Sklearn", _convert_histogram_boosting)
    for library, (name, add) in _BOOSTERS.items():
        # A model of a library cannot be fitted without importing it.
        if library in sys.modules:
            add(getattr(sys.modules[library], name))


def _declare_output(operator: Any) -> None:
    operator.outputs[0].type = need("skl2onnx.common.data_types").FloatTensorType([None, 1])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    composition = operator.raw_operator.composition()
    columns = [_predict(scope, operator, model) for model in composition.models]
    columns += [_pick(scope, operator, container, column) for column in composition.columns]
    matrix, rows = (scope.get_unique_variable_name(name) for name in ("predictions", "rows"))
    _add(container, "Concat", columns, [matrix], scope, axis=1)
    _add(container, "Transpose", [matrix], [rows], scope, perm=[1, 0])
    _insert(scope, container, composition.formula, len(columns), rows, operator.outputs[0].full_name)


def _predict(scope: Any, operator: Any, model: Any) -> str:
    """The predictions (n, 1) of a model inside, by its own converter."""
    supported, types = need("skl2onnx._supported_operators"), need("skl2onnx.common.data_types")
    inner = scope.declare_local_operator(supported._get_sklearn_operator_name(type(model)), model)
    inner.inputs = operator.inputs
    output = scope.declare_local_variable("inner", types.FloatTensorType([None, 1]))
    inner.outputs.append(output)
    return str(output.full_name)


def _pick(scope: Any, operator: Any, container: Any, column: str | int) -> str:
    """A column (n, 1) of X, by its position."""
    if isinstance(column, str) or len(operator.inputs) > 1:
        raise ValueError(f"Balance(by={column!r}) needs a column by its position, and X as one array, to become ONNX")
    onnx = need("onnx")
    names = ("segment_column", "picked", "segment")
    index, picked, output = (str(scope.get_unique_variable_name(name)) for name in names)
    container.add_initializer(index, onnx.TensorProto.INT64, [1], [column])
    _add(container, "Gather", [operator.inputs[0].full_name, index], [picked], scope, axis=1)
    _add(container, "Cast", [picked], [output], scope, to=onnx.TensorProto.FLOAT)  # X may be double
    return output


def _add(container: Any, operation: str, inputs: list[str], outputs: list[str], scope: Any, **attributes: Any) -> None:
    name = scope.get_unique_operator_name(operation)
    container.add_node(operation, inputs, outputs, op_version=13, name=name, **attributes)


class _Single(nn.Module):
    """A formula in single precision, as predictions are in a graph; gives (n, 1)."""

    def __init__(self, formula: nn.Module) -> None:
        super().__init__()
        self.formula = copy.deepcopy(formula).float()

    def forward(self, predictions: Tensor) -> Tensor:
        return self.formula(predictions).unsqueeze(-1)  # type: ignore[no-any-return]


def _insert(scope: Any, container: Any, formula: nn.Module, models: int, source: str, target: str) -> None:
    """Put the graph of a formula between two values of the container."""
    rows = torch.export.Dim("rows")
    program = torch.export.export(_Single(formula).eval(), (torch.ones(models, 8),), dynamic_shapes=({1: rows},))
    model = torch_to_onnx(program, 1, ["prediction"])
    prefix = scope.get_unique_variable_name("formula")
    model = need("onnx.compose").add_prefix(model, f"{prefix}/")
    names = {model.graph.input[0].name: source, model.graph.output[0].name: target}
    _rename(model, names)
    container.initializers.extend(model.graph.initializer)
    container.nodes.extend(model.graph.node)
    for opset in model.opset_import:
        if not opset.domain and opset.version > container.target_opset:
            raise ValueError(f"the formula needs opset {opset.version}: pass target_opset={opset.version} to to_onnx")
        container.node_domain_version_pair_sets.add((opset.domain, opset.version))


def _rename(model: Any, names: Mapping[str, str]) -> None:
    for node in model.graph.node:
        for values in (node.input, node.output):
            for number, name in enumerate(values):
                values[number] = names.get(name, name)


def _add_lightgbm(regressor: type) -> None:
    convert = need("onnxmltools.convert.lightgbm.operator_converters.LightGbm").convert_lightgbm
    _register(regressor, "LightGbm", convert, {"split": None})


def _add_xgboost(regressor: type) -> None:
    convert = need("onnxmltools.convert.xgboost.operator_converters.XGBoost").convert_xgboost
    _register(regressor, "XGBoost", convert)


def _add_catboost(regressor: type) -> None:
    _register(regressor, "CatBoost", _convert_catboost)


def _register(regressor: type, name: str, convert: Any, options: dict[str, Any] | None = None) -> None:
    register = need("skl2onnx").update_registered_converter
    register(regressor, f"{name}{regressor.__name__}", _declare_output, convert, overwrite=True, options=options)


class _PlainNumbers:
    """A container that takes numbers of numpy in the lists of a node, which ONNX refuses."""

    def __init__(self, container: Any) -> None:
        self.container = container

    def __getattr__(self, name: str) -> Any:
        return getattr(self.container, name)

    def add_node(self, *arguments: Any, **attributes: Any) -> None:
        plain = {
            name: np.asarray(value).tolist() if isinstance(value, list) else value for name, value in attributes.items()
        }
        self.container.add_node(*arguments, **plain)


def _convert_histogram_boosting(scope: Any, operator: Any, container: Any) -> None:
    """skl2onnx's own conversion, and the exponential function where the loss has a logarithmic link."""
    convert = need("skl2onnx.operator_converters.random_forest").convert_sklearn_random_forest_regressor_converter
    with _log_link(scope, operator, container, operator.raw_operator.loss in ("poisson", "gamma")):
        convert(scope, operator, _PlainNumbers(container))


@contextmanager
def _log_link(scope: Any, operator: Any, container: Any, applies: bool) -> Iterator[None]:
    """Inside the block a converter writes logarithms, where that applies; the output is their exponential."""
    output = operator.outputs[0]
    name = output.onnx_name
    if applies:
        output.set_onnx_name(scope.get_unique_variable_name("logs"))
    yield
    if applies:
        logs = output.onnx_name
        output.set_onnx_name(name)
        _add(container, "Exp", [logs], [name], scope)


def _convert_catboost(scope: Any, operator: Any, container: Any) -> None:
    """The graph that CatBoost itself writes, and the exponential function where its loss has a logarithmic link."""
    model = operator.raw_operator
    onnx = need("onnx")
    written = need("catboost.utils").convert_to_onnx_object(model)
    (node,) = written.graph.node
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    loss = str(model.get_all_params().get("loss_function", ""))
    with _log_link(scope, operator, container, loss.startswith(("Poisson", "Tweedie"))):
        container.add_node(
            node.op_type,
            [operator.inputs[0].full_name],
            [operator.outputs[0].full_name],
            op_domain=node.domain,
            name=scope.get_unique_operator_name("CatBoost"),
            **attributes,
        )


_BOOSTERS = {
    "lightgbm": ("LGBMRegressor", _add_lightgbm),
    "xgboost": ("XGBRegressor", _add_xgboost),
    "catboost": ("CatBoostRegressor", _add_catboost),
}
