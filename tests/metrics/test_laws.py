"""Laws over every metric that a module of the package exports, found by walking, so that a new metric is tested."""

import inspect
import itertools
import math
import pickle
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transun import metrics
from transun.metrics import GINI, NDCG, Meter, Metric, TopNDCG, TopXAUC
from transun.metrics.bias import SRE
from transun.metrics.metric import bootstrap
from transun.metrics.ranking import SampledXAUC
from transun.metrics.spread import OUTLIER_SHARE

# Classes whose arguments have no default, or whose default is slow here.
CHOSEN = {"SRE": SRE(2.0), "SampledXAUC": SampledXAUC(pairs=1000)}


def exported() -> list[Metric]:
    """Every metric once: the exported objects, and the exported classes with their default arguments."""
    found = {}
    for module in iter_modules(metrics.__path__, "transun.metrics."):
        room = import_module(module.name)
        for name in getattr(room, "__all__", ()):
            value = getattr(room, name)
            if inspect.isclass(value) and issubclass(value, Metric) and not inspect.isabstract(value):
                value = CHOSEN[name] if name in CHOSEN else value()
            if isinstance(value, Metric):
                found[value.name] = value
    return list(found.values())


METRICS = exported()
BOOTSTRAPPED = {NDCG, GINI, TopNDCG(), TopXAUC(), OUTLIER_SHARE, SampledXAUC(pairs=1000)}
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda m: f"{type(m).__name__}-{m.name}")

# Multiplying predictions and targets by the same factor changes these not at all (floors aside).
SCALE_FREE = {"TRE", "STRE", "MRE", "SMRE", "PGR", "NEGATIVE", "NRMSE", "PRINTED_NRMSE", "NMAE", "XAUC", "XAUC_TPM"}
SCALE_FREE |= {"XAUC_EGMN", "SampledXAUC(pairs=1000)", "TopXAUC", "NDCG", "TopNDCG", "RELATIVE_VARIANCE", "SKEWNESS"}
SCALE_FREE |= {"OUTLIER_SHARE", "XAUCSketch", "GINI"}
SCALE_BOUND = {"RMSE", "VARIANCE", "FLOORED", "SRE(expectation=2.0)"}


def rows(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Skewed targets with ties, tied predictions, a zero and a negative prediction, whole weights."""
    rng = np.random.default_rng(seed)
    y = np.round(rng.gamma(1.0, 3.0, n), 0)
    pred = np.round(y + rng.normal(0, 2, n), 1)
    pred[:2] = 0.0, -1.0
    return pred, y, rng.integers(1, 4, n).astype(float)


def same(a: float, b: float) -> None:
    assert a == pytest.approx(b, rel=1e-10, abs=1e-12, nan_ok=True)


def test_the_registry_is_complete():
    assert {m.name for m in METRICS} == SCALE_FREE | SCALE_BOUND
    assert set(metrics.STANDARD) <= set(METRICS)


@every_metric
def test_a_value_is_a_float_and_direction_is_stated(metric):
    value = metric(*rows())
    assert type(value) is float
    assert math.isfinite(value)
    assert metric.better in {"lower", "higher", "zero", "one"}


@every_metric
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 60), max_size=4), seed=st.integers(0, 99))
def test_merging_any_split_in_any_order_equals_the_whole(metric, cuts, seed):
    pred, y, weight = rows()
    edges = [0, *sorted(cuts), 60]
    shards = [slice(a, b) for a, b in itertools.pairwise(edges)]
    np.random.default_rng(seed).shuffle(shards)
    meter = Meter(metric)
    for shard in shards:
        part = Meter(metric)
        part.update(pred[shard], y[shard], weight[shard])
        meter.merge(part)
    same(meter.compute()[metric.name], metric(pred, y, weight))
    if metric not in BOOTSTRAPPED:  # a bootstrap draws by position, so order moves it
        same(meter.standard_errors()[metric.name], metric.standard_error(pred, y, weight))


@every_metric
def test_updating_by_batches_equals_the_whole(metric):
    pred, y, weight = rows()
    meter = Meter(metric)
    for start in range(0, 60, 7):
        part = slice(start, start + 7)
        meter.update(pred[part], y[part], weight[part])
    same(meter.compute()[metric.name], metric(pred, y, weight))


@every_metric
@pytest.mark.parametrize("seed", range(3))
def test_weight_two_is_the_row_twice(metric, seed):
    pred, y, weight = rows(seed=seed)
    times = weight.astype(int)
    same(metric(pred, y, weight), metric(np.repeat(pred, times), np.repeat(y, times)))


@every_metric
def test_weight_zero_is_no_row(metric):
    pred, y, weight = rows()
    weight[::3] = 0
    kept = weight > 0
    same(metric(pred, y, weight), metric(pred[kept], y[kept], weight[kept]))


@every_metric
def test_fractional_weights_depend_on_the_value(metric):
    """Weights must reach the value: moving weight from the high to the low targets changes it."""
    pred, y, _ = rows()
    low, high = np.where(y > 2, 0.3, 1.7), np.where(y > 2, 1.7, 0.3)
    assert metric(pred, y, low) != pytest.approx(metric(pred, y, high), rel=1e-4)


@every_metric
def test_order_of_rows_does_not_matter(metric):
    pred, y, weight = rows()
    order = np.random.default_rng(1).permutation(len(y))
    same(metric(pred[order], y[order], weight[order]), metric(pred, y, weight))


@every_metric
@pytest.mark.parametrize("scale", [0.25, 8.0])  # powers of two keep ties exact
def test_scale(metric, scale):
    pred, y, _ = rows()
    pred = np.where(pred == 0, 1.0, pred)  # a floored row is in target units
    before, after = metric(pred, y), metric(scale * pred, scale * y)
    if metric.name in SCALE_FREE:
        same(after, before)
    elif metric.name == "RMSE":
        same(after, scale * before)
    elif metric.name == "VARIANCE":
        same(after, scale**2 * before)


@every_metric
def test_one_row_gives_a_value_or_nan_and_no_standard_error(metric):
    assert type(metric([2.0], [3.0])) is float
    assert math.isnan(metric.standard_error([2.0], [3.0]))


@every_metric
def test_perfect_predictions_do_not_break_anything(metric):
    _, y, weight = rows()
    y = y + 1
    assert math.isfinite(metric(y, y, weight))
    assert math.isfinite(metric.standard_error(y, y, weight))


@every_metric
@pytest.mark.parametrize("kind", [list, tuple, np.asarray, torch.tensor, lambda x: torch.tensor(x).float()])
def test_every_kind_of_input_gives_the_same(metric, kind):
    pred, y, weight = ([2.0, 1.0, 4.0, 3.0], [2.0, 1.0, 3.0, 8.0], [1.0, 2.0, 1.0, 1.0])
    same(metric(kind(pred), kind(y), kind(weight)), metric(pred, y, weight))


@every_metric
def test_pickle_and_equality(metric):
    again = pickle.loads(pickle.dumps(metric))
    assert again == metric
    assert again.name == metric.name
    meter = Meter(metric)
    meter.update(*rows())
    shipped = pickle.loads(pickle.dumps(meter))
    other = Meter(again)
    other.merge(shipped)
    same(other.compute()[metric.name], meter.compute()[metric.name])


@every_metric
def test_bootstrap_covers_the_value_and_repeats(metric):
    data = rows(200)
    interval = bootstrap(metric, *data, draws=50, level=0.98)
    assert interval.low < interval.high
    if metric not in (SampledXAUC(pairs=1000), TopXAUC()):  # noisy, and few pairs
        assert metric(*data) in interval
    assert bootstrap(metric, *data, draws=50, level=0.98) == interval
    assert bootstrap(metric, *data, draws=50, level=0.98, seed=1) != interval


@every_metric
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_value_is_outside_of_its_bounds(metric, sign):
    """An error below 0 would look like the best of all: in early stopping, in a comparison, in a condition."""
    pred, y, weight = rows()
    least, largest = metric.bounds
    if sign < 0.0 and isinstance(metric, TopNDCG):
        with pytest.raises(ValueError, match="gains of 0 or more"):
            metric(-pred, -y, weight)
        return
    value = metric(sign * pred, sign * y, weight)
    assert math.isnan(value) or least <= value <= largest


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.better == "lower"], ids=lambda m: m.name)
def test_errors_have_a_lower_bound(metric):
    assert metric.bounds[0] == 0.0
