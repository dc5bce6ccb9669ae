import math
from collections.abc import Sequence

import pytest
import torch

from transun.backbones import Constant
from transun.data import Dataset
from transun.heads import MSE
from transun.metrics import RMSE
from transun.models import Model
from transun.support.group import Group
from transun.training.early_stopping import EarlyStopping

VALID = Dataset({"a": torch.zeros(4)}, torch.zeros(4))


def after_checks(errors: Sequence[float], patience: int | None) -> EarlyStopping:
    """Early stopping after checks of a constant model, whose root mean squared error is what it predicts of zeros."""
    model = Model(Constant(), MSE()).prepare(torch.tensor([1.0]))
    stopping = EarlyStopping(model, None, VALID, RMSE, patience, Group())
    check(stopping, errors)
    return stopping


def check(stopping: EarlyStopping, errors: Sequence[float]) -> None:
    for step, error in enumerate(errors, 1):
        with torch.no_grad():
            for weight in stopping.model.parameters():
                weight.fill_(error)
        stopping.check(step)


@pytest.mark.parametrize(
    ("patience", "errors", "stops"),
    [
        (2, [1.0, 1.2], False),
        (2, [1.0, 1.2, 1.1], True),  # patience has run out
        (6, [1.0, 1.1, 1.2], False),
        (6, [1.0, 1.1, 1.2, 1.3], True),  # three checks, each worse than the one before it
        (6, [1.0, 1.1, 1.2, 1.15, 1.3, 1.4], False),  # the fourth was better than the third
        (6, [1.0, 1.1, 1.1, 1.2, 1.3], False),  # the third was no worse than the second
        (10, [1.0, 1.1, 1.2, 1.3, 1.4], False),  # half of ten checks are five
        (10, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], True),
        (3, [1.0, 1.1, 1.2], False),  # fewer than three are an accident
        (None, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], False),
    ],
)
def test_training_ends_when_patience_runs_out_or_checks_only_get_worse(
    patience: int | None, errors: list[float], stops: bool
) -> None:
    assert after_checks(errors, patience).should_stop is stops


def test_a_check_without_a_finite_value_is_worse_than_any_other() -> None:
    stopping = after_checks([1.0, 2.0, math.inf], 6)
    assert stopping.rises == 2
    assert stopping.best is not None
    assert stopping.best.step == 1


def test_a_resumed_run_counts_on() -> None:
    """Whether training was interrupted makes no difference to when it stops."""
    before = after_checks([1.0, 1.1, 1.2], 6)
    resumed = after_checks([], 6)
    resumed.load_state_dict(before.state_dict(), before.best)
    for stopping in (before, resumed):
        check(stopping, [1.3])
        assert stopping.should_stop
    assert resumed.state_dict().keys() == before.state_dict().keys()
    assert [resumed.rises, resumed.checks_since_best] == [before.rises, before.checks_since_best] == [3, 3]
