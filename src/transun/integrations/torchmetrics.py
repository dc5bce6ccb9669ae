"""Metrics of transun as metrics of torchmetrics, for Lightning and for loops of one's own."""

from typing import Any

import torch
from torch import Tensor

from transun.metrics import Metric
from transun.metrics.metric import filled
from transun.metrics.rows import check
from transun.support.extras import need

__all__ = ["TorchMetric"]


class TorchMetric(need("torchmetrics").Metric):  # type: ignore[misc]
    """Any metric of transun as a `torchmetrics.Metric`: `update` with batches, on any rank, and `compute` the value.

    Its states are the metric's own sums, which torchmetrics adds up over ranks, or all rows where a metric needs them,
    such as XAUC; so the value is that over all rows, however they are cut into batches. States are float64 and stay so.

    Args:
        metric: the metric.
        **settings: of `torchmetrics.Metric`, such as `sync_on_compute`.

    >>> from transun.metrics import PGR
    >>> metric = TorchMetric(PGR)
    >>> metric.update(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 4.0]))
    >>> metric.update(torch.tensor([2.0]), torch.tensor([2.0]))
    >>> metric.compute().item()
    0.5

    """

    full_state_update = False
    is_differentiable = False

    def __init__(self, metric: Metric, **settings: Any) -> None:
        super().__init__(**settings)
        self.metric = metric
        nothing = metric.summarise(check([], []))
        self._summary = type(nothing)
        for name, tensor in nothing.tensors().items():
            rows = nothing.merging == "cat"
            self.add_state(name, [] if rows else tensor, dist_reduce_fx=nothing.merging)

    @property
    def higher_is_better(self) -> bool | None:
        """Whether more is better; None where a good value lies in between, as 1 does for PGR."""
        return {"higher": True, "lower": False}.get(self.metric.better)

    def update(self, preds: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        """Add a batch.

        Args:
            preds: predictions (n,).
            target: their targets (n,).
            weight: what each row counts (n,).

        """
        summary = self.metric.summarise(check(preds, target, weight))
        for name, tensor in summary.tensors().items():
            state, more = getattr(self, name), tensor.to(self.device)
            setattr(self, name, [*state, more] if isinstance(state, list) else state + more)

    def compute(self) -> Tensor:
        """The value over all rows of all ranks."""
        states = {name: getattr(self, name) for name in self._defaults}
        # Between ranks torchmetrics joins the rows itself.
        joined = {name: torch.cat(state) if isinstance(state, list) else state for name, state in states.items()}
        summary = self._summary.of_tensors({name: state.cpu() for name, state in joined.items()})
        return torch.tensor(self.metric.compute(filled(summary)), dtype=torch.float64, device=self.device)
