"""Metrics inside torchmetrics have the values that they have outside, over chunks and over ranks."""

import pytest
import torch

pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from rank_jobs import torch_metrics
from transun.integrations.torchmetrics import TorchMetric
from transun.metrics import GINI, NDCG, PGR, SMRE, STANDARD, Metric, TopXAUC
from transun.metrics.sketch import XAUCSketch

METRICS: tuple[Metric, ...] = (*STANDARD, SMRE, GINI, NDCG, TopXAUC(0.2))


def rows(n=301):
    generator = torch.Generator().manual_seed(0)
    y = torch.randn(n, generator=generator).exp()
    pred = y * torch.randn(n, generator=generator).mul(0.5).exp()
    return pred, y, torch.randint(1, 4, (n,), generator=generator).double()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("weighted", [True, False])
def test_the_value_over_chunks_is_that_over_all_rows(metric, weighted):
    pred, y, weight = rows()
    adapted = TorchMetric(metric)
    for part in (slice(0, 1), slice(1, 100), slice(100, 100), slice(100, 301)):
        adapted.update(pred[part], y[part], weight[part] if weighted else None)
    assert adapted.compute().item() == pytest.approx(metric(pred, y, weight if weighted else None), rel=1e-12)
    adapted.reset()
    adapted.update(pred[:50], y[:50])
    assert adapted.compute().item() == pytest.approx(metric(pred[:50], y[:50]), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_forward_returns_the_value_of_the_batch_and_adds_it(metric):
    pred, y, _ = rows()
    adapted = TorchMetric(metric)
    for part in (slice(0, 120), slice(120, 301)):
        assert adapted(pred[part], y[part]).item() == pytest.approx(metric(pred[part], y[part]), rel=1e-12)
    assert adapted.compute().item() == pytest.approx(metric(pred, y), rel=1e-12)


def test_in_a_collection():
    from torchmetrics import MetricCollection

    pred, y, _ = rows()
    collection = MetricCollection({metric.name: TorchMetric(metric) for metric in STANDARD})
    for part in (slice(0, 120), slice(120, 301)):
        collection.update(pred[part], y[part])
    values = {name: value.item() for name, value in collection.compute().items()}
    assert values == pytest.approx({metric.name: metric(pred, y) for metric in STANDARD}, rel=1e-12)


@pytest.mark.parametrize("counts", [[200, 101], [301, 0]], ids=str)
def test_ranks_have_the_value_of_all_rows(pool, counts):
    pred, y, _ = rows()
    # Of the metrics that keep rows, a rank without any has none to send.
    metrics = [metric for metric in STANDARD if metric.name != "XAUC" or min(counts)]
    answers = pool.run(2, torch_metrics, [metric.name for metric in metrics], pred, y, counts)
    expected = {metric.name: metric(pred, y) for metric in metrics}
    for values in answers:
        assert values == pytest.approx(expected, rel=1e-12)


def test_which_way_is_better():
    directions = {metric.name: TorchMetric(metric).higher_is_better for metric in STANDARD}
    assert directions["XAUC"] is True
    assert directions["NRMSE"] is False
    assert directions["PGR"] is None


def test_states_stay_float64_where_a_module_is_cast():
    adapted = torch.nn.ModuleDict({"pgr": TorchMetric(PGR)}).float()["pgr"]
    adapted.update(torch.tensor([1.0]), torch.tensor([3.0]))
    assert adapted.sums.dtype == torch.float64
    assert adapted.compute().item() == 1 / 3


def test_no_rows_are_an_error():
    adapted = TorchMetric(PGR)
    adapted.update(torch.tensor([]), torch.tensor([]))
    with pytest.raises(ValueError, match="no rows"):
        adapted.compute()


def test_a_sketch_is_refused():
    with pytest.raises(TypeError, match="use XAUC"):
        TorchMetric(XAUCSketch())
