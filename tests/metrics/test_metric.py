"""What a report shows of a metric stands on the metric, and an exported metric is found by its name."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest

from transun import metrics
from transun.metrics import MRE, NRMSE, PGR, STANDARD, XAUC, Metric, TopXAUC, metric_named
from transun.metrics.relative import MeanRelativeError


@dataclass(frozen=True)
class HalvedError(MeanRelativeError):
    """A metric that a contributor adds: half the mean relative error."""

    label: ClassVar[str] = "HalvedError"
    description: ClassVar[str] = ""


@pytest.mark.parametrize("metric", STANDARD, ids=lambda metric: metric.name)
def test_every_standard_metric_has_a_title_and_a_meaning(metric):
    assert metric.title.endswith(f"({metric.name})")
    assert metric.title != f" ({metric.name})"
    assert metric.meaning.endswith(".")


def test_a_title_names_the_arguments_that_were_chosen():
    assert MeanRelativeError(floor=0.5).title == "mean relative error (MRE(floor=0.5))"


def test_a_metric_without_a_description_is_titled_by_its_name():
    assert HalvedError().title == "HalvedError"
    assert Metric.meaning == ""


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [(PGR, 0.98765, "0.988"), (MRE, -1.0, "-1.000"), (XAUC, 0.98765, "0.9877"), (TopXAUC(), 0.5, "0.5000")],
)
def test_values_have_the_digits_of_their_metric(metric, value, text):
    assert metric.format(value) == text


def test_values_that_are_no_numbers_are_signs():
    assert [NRMSE.format(value) for value in (math.nan, math.inf, -math.inf)] == ["–", "∞", "-∞"]


def test_every_exported_metric_is_found_by_its_name():
    exported = [value for name in metrics.__all__ if isinstance(value := getattr(metrics, name), Metric)]
    assert exported
    for metric in [*exported, TopXAUC(), TopXAUC(share=0.1), MeanRelativeError(floor=0.5)]:
        assert metric_named(metric.name) == metric
        assert metric_named(f" {metric.label.lower()}") == type(metric)()


def test_a_metric_that_is_added_and_exported_is_found(monkeypatch):
    with pytest.raises(ValueError, match="no metric 'HalvedError'"):
        metric_named("HalvedError")
    monkeypatch.setattr(metrics, "HALVED", HalvedError(), raising=False)
    monkeypatch.setattr(metrics, "__all__", [*metrics.__all__, "HALVED"])
    assert metric_named("HalvedError") == HalvedError()
    assert metric_named("HalvedError(floor=1.0)") == HalvedError(floor=1.0)
    with pytest.raises(ValueError, match="did you mean 'HalvedError'"):
        metric_named("HalvdError")


@pytest.mark.parametrize("name", ["", "accuracy", "Meter", "AdditiveMetric", "metric_named"])
def test_what_is_no_metric_is_refused(name):
    with pytest.raises(ValueError, match=r"there is no metric .* Metrics are .*NRMSE"):
        metric_named(name)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="`share` is 7"):
        metric_named("TopXAUC(share=7)")
    with pytest.raises(ValueError, match="unexpected keyword argument 'part'"):
        metric_named("TopXAUC(part=1)")
