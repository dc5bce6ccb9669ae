"""A training in Weights & Biases."""

from collections.abc import Mapping
from typing import Any

from transun.support.extras import need, require

__all__ = ["WandbTracker"]

_STEP = "training_step"


class WandbTracker:
    """Logs the numbers of a training into a run of Weights & Biases: `fit(..., tracker=...)`.

    The run is the one that is active, or a new one that is begun at the first number, so that of several ranks only
    rank 0 begins one. A training that is resumed continues its run with `WandbTracker(id="an id", resume="allow")`.

    Charts have `training_step` as their axis: the steps of Weights & Biases itself may never decrease, and those of
    several folds begin at 0 each.

    Args:
        **settings: of a new run, as `wandb.init` takes them, such as `project` or `mode="offline"`.

    """

    def __init__(self, **settings: Any) -> None:
        require("wandb")
        self.settings = settings

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log the numbers."""
        wandb = need("wandb")
        run = wandb.run or wandb.init(**self.settings)
        run.define_metric("*", step_metric=_STEP)
        run.log({_STEP: step, **values})
