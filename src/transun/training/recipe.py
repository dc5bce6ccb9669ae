"""How to train: every setting that does not depend on the data, in one value."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from transun.data import Dataset
from transun.metrics import RMSE, Metric
from transun.support.arguments import require_kind
from transun.support.device import check_device
from transun.support.text_form import dumps
from transun.training.averaging import EMA, Averaging
from transun.training.engine import Eager, Engine
from transun.training.optimisers import Adam, Optimiser, constant, linear

__all__ = ["Recipe", "plain_recipe", "require_recipe"]

# A check costs as much as training on a third of the validation rows.
_ROWS_PER_CHECK = 1 << 16
# More validation rows would not end the training any better.
MOST_VALID = 50_000


@dataclass(frozen=True, repr=False)
class Recipe:
    """How to train a model. `fit`, `train`, `transun fit` and `NetworkRegressor` share these settings and defaults.

    The defaults are for a table that nobody has looked at yet: many epochs, ended by early stopping, with averaged
    weights and a learning rate that falls to zero. They were chosen with `tabm` on tables of numbers and tables of ids;
    paper/reports/board has what was tried. Ids overfit within one or two epochs, numbers improve for twenty: no
    fixed number of epochs suits both.

    Args:
        optimiser: how weights follow gradients, with its learning rate.
        epochs: passes over the training rows at most. Ids overfit after one or two; without validation rows choose
            few epochs.
        batch_size: rows per step; None is a 32nd of the rows, but at least 16 and at most 256, so that small tables get
            enough steps.
        decay: factor of the learning rate as a function of the share of `epochs` done: `linear`, `cosine`, `constant`.
        averaging: `EMA` or `Tail` of the weights, which is kept in place of the last step's weights; None keeps those
            of the last step.
        clip: the largest norm of the gradient; None does not clip.
        monitor: the metric of the validation rows by which early stopping compares weights; any `Metric`.
        patience: checks of the validation rows without improvement before training stops. Half as many, three at least,
            are enough if each is worse than the one before it. None never stops, but still keeps the best weights.
        checks_per_epoch: how often an epoch is interrupted for a check of the validation rows; None is once every
            65,536 rows, and at least once.
        finish: epochs after the training in which the bias branches alone move, around points that stand still; they
            start at the best weights, at the full learning rate, and are kept only where the validation rows find them
            better. In short training z follows a point that moves on, which leaves totals off; costs these epochs, and
            helps most where training stops after one or two. Needs validation rows.
        valid_share: the share of the rows that become validation rows where the caller hands over whole tables
            (`train`, `transun fit`, `NetworkRegressor`); 0 trains on all of them to the last epoch. `fit` takes
            validation rows as an argument.
        refit: whether the trees beside a network are boosted again on training and validation rows together, with as
            many trees as the validation rows found best. It takes about as long as boosting the first time, and with a
            budget it is done where time is left. Where most of the variance is noise, so that these rows tell little,
            only the trees that order small amounts are boosted again. False leaves validation rows to stop trainings
            and to choose weights; the folds of a small table learn from them all the same.
        calibration_share: the share of the rows that no part of the training sees, from which `train` and `transun fit`
            learn a factor that makes totals right in every segment, see `multicalibrate`; 0 learns none. A tenth to a
            fifth is worth it where totals of segments matter more than what the rows would teach the model.
        balance: whether a factor makes the total of all these rows right, see `transun.balance`: that of the model or,
            beside trees, which see to their own total, that of the network. None does so where the head was
            recommended, and leaves a head that you name as it is.
        budget: seconds of training at most; None leaves the end to epochs and early stopping. With a budget the clock
            decides how much is tried, so that results differ between machines and runs.
        engine: how losses are computed; `Compiled("bfloat16")` is fastest on a GPU.
        device: where to train, such as "cuda"; None is where the model is.
        seed: of the initial weights, the order of rows, dropout, and the choice of validation rows.

    >>> Recipe(Adam(0.01), epochs=3)
    Recipe(Adam(0.01), 3)
    >>> Recipe().batch_rows(6_400), Recipe(batch_size=64).batch_rows(6_400)
    (200, 64)

    """

    optimiser: Optimiser = Adam(3e-3)
    epochs: int = 50
    batch_size: int | None = None
    decay: Callable[[float], float] = linear
    averaging: Averaging | None = EMA(0.99)
    clip: float | None = None
    monitor: Metric = RMSE
    patience: int | None = 6
    checks_per_epoch: int | None = None
    finish: int = 0
    valid_share: float = 0.1
    refit: bool = True
    calibration_share: float = 0.0
    balance: bool | None = None
    budget: float | None = None
    engine: Engine = Eager()
    device: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, concept in (("optimiser", Optimiser), ("monitor", Metric), ("engine", Engine)):
            if not isinstance(getattr(self, name), concept):
                example = getattr(type(self), name)
                raise ValueError(f"Recipe needs {name} to be one such as {example!r}, got {getattr(self, name)!r}")
        if not isinstance(self.seed, Integral) or not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"Recipe needs a whole number of 64 bits as its seed, got {self.seed!r}")
        check_device(self.device)
        counts = ("epochs", self.epochs), ("checks_per_epoch", self.checks_per_epoch)
        for name, count in (*counts, ("batch_size", self.batch_size), ("patience", self.patience)):
            if count is not None and not (isinstance(count, Integral) and count >= 1):
                raise ValueError(f"Recipe needs a whole number {name} >= 1, got {count!r}")
        if not (isinstance(self.finish, Integral) and self.finish >= 0):
            raise ValueError(f"Recipe needs a whole number of epochs finish >= 0, got {self.finish!r}")
        if self.budget is not None and not self.budget > 0.0:
            raise ValueError(f"Recipe needs a budget > 0 seconds, got {self.budget}")
        if self.clip is not None and not self.clip > 0.0:
            raise ValueError(f"Recipe needs clip > 0, got {self.clip}")
        for name, share in (("valid_share", self.valid_share), ("calibration_share", self.calibration_share)):
            if not 0.0 <= share < 1.0:
                raise ValueError(f"Recipe needs 0 <= {name} < 1, got {share}")

    def __repr__(self) -> str:
        return dumps(self)

    def batch_rows(self, rows: int) -> int:
        """Rows per step when there are so many training rows."""
        return self.batch_size or min(max(rows // 32, 16), 256)

    def split(self, data: Dataset) -> tuple[Dataset, Dataset | None]:
        """Training and validation rows; no validation rows where one part would be empty or would weigh nothing."""
        if not self.valid_share:
            return data, None
        try:
            return data.split(1.0 - min(self.valid_share, MOST_VALID / len(data)), self.seed)
        except ValueError:
            return data, None

    def checks(self, rows: int) -> int:
        """Checks of the validation rows an epoch when there are so many training rows."""
        return self.checks_per_epoch or max(1, round(rows / _ROWS_PER_CHECK))


def require_recipe(recipe: Any) -> None:
    """Raise a `TypeError` if the argument `recipe` of a training is something else, such as a dict of settings."""
    require_kind("recipe", recipe, Recipe, "write recipe=Recipe(budget=10)")


def plain_recipe(**changes: Any) -> Recipe:
    """The recipe of a training loop written by hand: one epoch of batches of 512 rows at a constant learning rate.

    It keeps the weights of the last step and, given validation rows, does not stop early. Papers train like this; the
    defaults of `Recipe` suit a table better.

    Args:
        **changes: settings of `Recipe` that differ.

    >>> recipe = plain_recipe(epochs=2)
    >>> recipe.epochs, recipe.averaging, recipe.patience
    (2, None, None)

    """
    settings: dict[str, Any] = {
        "optimiser": Adam(1e-3),
        "epochs": 1,
        "batch_size": 512,
        "decay": constant,
        "averaging": None,
        "patience": None,
        "checks_per_epoch": 1,
    }
    return Recipe(**settings | changes)
