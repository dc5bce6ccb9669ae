"""Metrics that a user picks by name: bias, error and ranking, each a `Metric`, accumulated and merged by a `Meter`.

Building blocks are imported from their modules: spread statistics from `metrics.spread`, the conventions of other
papers from `metrics.ranking` and `metrics.error`, differences between models from `metrics.paired`, XAUC of a stream in
fixed memory from `metrics.sketch`.
"""

import inspect

from transun.metrics.bias import NEGATIVE, PGR, STRE, TRE
from transun.metrics.binned import bin_by_prediction, bin_by_target
from transun.metrics.error import NMAE, NRMSE, RMSE
from transun.metrics.gini import GINI
from transun.metrics.meter import Meter
from transun.metrics.metric import AdditiveMetric, Estimate, Metric, SampleMetric
from transun.metrics.ranking import NDCG, XAUC, TopNDCG, TopXAUC
from transun.metrics.relative import FLOORED, MRE, SMRE
from transun.support.suggest import did_you_mean
from transun.support.text_form import parse

__all__ = [
    "FLOORED",
    "GINI",
    "MRE",
    "NDCG",
    "NEGATIVE",
    "NMAE",
    "NRMSE",
    "PGR",
    "RMSE",
    "SMRE",
    "STANDARD",
    "STRE",
    "TRE",
    "XAUC",
    "AdditiveMetric",
    "Estimate",
    "Meter",
    "Metric",
    "SampleMetric",
    "TopNDCG",
    "TopXAUC",
    "bin_by_prediction",
    "bin_by_target",
    "metric_named",
]

# The one list of what every evaluation and report shows: bias of the total and of the average row, error, ranking.
STANDARD: tuple[Metric, ...] = (PGR, TRE, STRE, MRE, NRMSE, NMAE, XAUC, GINI, FLOORED)


def metric_named(name: str) -> Metric:
    """The exported metric that has this name, in any case of letters; arguments are part of a name.

    Every metric of `__all__` is found, so a metric that is added and exported needs no second registration. Text is
    parsed and never executed.

    >>> metric_named("nrmse") == NRMSE, metric_named("TopXAUC(share=0.1)").share
    (True, 0.1)
    >>> metric_named("NRSME")
    Traceback (most recent call last):
        ...
    ValueError: there is no metric 'NRSME': did you mean 'NRMSE' or 'SMRE'? Metrics are FLOORED, GINI, ...
    """
    label, bracket, arguments = name.strip().partition("(")
    exported = {cls.label: cls for value in __all__ if (cls := _metric_type(globals()[value]))}
    by_upper = {exported_label.upper(): exported_label for exported_label in exported}
    if label.upper() not in by_upper:
        hint = f"{did_you_mean(label, exported)} Metrics are {', '.join(sorted(exported))}".lstrip()
        raise ValueError(f"there is no metric {label!r}: {hint}")
    call = by_upper[label.upper()] + (f"({arguments}" if bracket else "()")
    metric: Metric = parse(call, exported)
    return metric


def _metric_type(exported: object) -> type[Metric] | None:
    """The concrete class of an exported metric, which is exported as the class itself or as an object of it."""
    cls = exported if inspect.isclass(exported) else type(exported)
    return cls if issubclass(cls, Metric) and not inspect.isabstract(cls) else None
