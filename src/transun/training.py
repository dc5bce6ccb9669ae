"""Training: batches through a model, its named losses weighted, summed and followed."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from transun.averaging import Average, Averaging
from transun.evaluation import Rows, Source, measure
from transun.metrics import NRMSE, Metric
from transun.model import Model
from transun.optimisers import Adam, Optimiser, constant
from transun.progress import Progress

__all__ = ["Check", "History", "Step", "fit"]

# How many points of the learning curve a history keeps.
_POINTS = 1000


@dataclass(frozen=True)
class Step:
    """What one optimiser step saw: the mean of every loss term over its batch."""

    step: int
    epoch: int
    rate: float
    terms: dict[str, float]

    @property
    def loss(self) -> float:
        """The sum of the terms."""
        return sum(self.terms.values())


@dataclass(frozen=True)
class Check:
    """One look at the validation data after `step` steps."""

    step: int
    value: float


@dataclass
class History:
    """What happened during `fit`: about a thousand points of the learning curve, and every validation check."""

    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    best: Check | None = None
    stopped_early: bool = False
    seconds: float = 0.0
    rows: int = 0


def fit(
    model: Model,
    data: Source,
    *,
    optimiser: Optimiser = Adam(),
    epochs: int = 1,
    batch_size: int = 512,
    decay: Callable[[float], float] = constant,
    averaging: Averaging | None = None,
    clip: float | None = None,
    valid: Source | None = None,
    monitor: Metric = NRMSE,
    check_every: int | None = None,
    patience: int | None = None,
    base: Model | None = None,
    seed: int = 0,
    on_step: Callable[[Step], None] | None = None,
    progress: bool | None = None,
) -> History:
    """Train the model on the data, in place; the same seed and threads give the same weights to the last bit.

    The first call learns the head's constants and starts the output biases there; later calls go on from the weights
    as they are. With validation data the best weights seen are the ones kept. Interrupting (Ctrl-C) leaves the
    weights reached so far, averaged if so asked, and raises `KeyboardInterrupt` on.

    Args:
        model: what to train.
        data: rows with targets; see `Dataset`.
        optimiser: how weights follow gradients.
        epochs: passes over the data. Id features overfit after one or two: give validation data and patience for more.
        batch_size: rows a step.
        decay: factor of the learning rate as a function of the share of training done; `linear`, `cosine`.
        averaging: `Tail` or `EMA` of the weights, kept in place of the last step's.
        clip: largest norm of the gradient.
        valid: validation rows, looked at after every epoch.
        monitor: the metric that decides what is best there.
        check_every: steps between looks, instead of epochs.
        patience: looks without improvement before training stops; None never stops.
        base: a trained model without this one's last branches, whose weights and constants are taken over first.
        seed: of the order of rows and of dropout.
        on_step: called after each step with its losses; reading them synchronises a GPU every step.
        progress: show a progress bar; None shows it on a terminal.

    """
    _check_arguments(epochs, batch_size, clip, patience, check_every, valid)
    if base is not None or not model.prepared:
        model.prepare(data.targets().double(), base)
    stepper = optimiser.build(model.parameters())
    per_epoch = math.ceil(len(data) / batch_size)
    total = epochs * per_epoch
    history = History()
    average = Average(model) if averaging else None
    keeper = _Keeper(model, average, valid, monitor, history) if valid is not None else None
    every = check_every or per_epoch
    log_every = max(1, total // _POINTS)
    began = time.perf_counter()
    model.train()
    with torch.random.fork_rng(devices=_devices(model)), Progress("training", total, progress) as bar:
        torch.manual_seed(seed)
        step = 0
        try:
            for epoch in range(epochs):
                for rows in data.batches(batch_size, seed=_epoch_seed(seed, epoch)):
                    rate = optimiser.rate * decay(step / total)
                    for group in stepper.param_groups:
                        group["lr"] = rate
                    terms = _descend(model, rows, stepper, clip)
                    if average is not None and averaging is not None:
                        average.update(averaging.weight(step, total))
                    logged = step % log_every == 0 or step + 1 == total
                    if on_step is not None or logged:
                        seen = Step(step, epoch, rate, {name: float(term) for name, term in terms.items()})
                        _require_finite(seen)
                        if logged:
                            history.steps.append(seen)
                        if on_step is not None:
                            on_step(seen)
                        bar.advance(step + 1, f"loss {seen.loss:.4g}")
                    step += 1
                    history.rows += len(rows.y)
                    if keeper is not None and (step % every == 0 or step == total):
                        keeper.look(step)
                        if patience is not None and keeper.worse >= patience:
                            history.stopped_early = True
                            return history
        finally:
            if average is not None:
                average.swap()
            if keeper is not None:
                keeper.restore()
            history.seconds = time.perf_counter() - began
            model.eval()
    return history


def _descend(model: Model, rows: Rows, stepper: torch.optim.Optimizer, clip: float | None) -> dict[str, Tensor]:
    terms = {name: _mean(term, rows.weight) for name, term in model.loss(rows.x, rows.y).items()}
    stepper.zero_grad()
    torch.stack(tuple(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    stepper.step()
    return {name: term.detach() for name, term in terms.items()}


def _mean(term: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return term.mean()
    # A batch may happen to hold only rows of weight zero: it teaches nothing.
    return (term * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


class _Keeper:
    """Looks at validation data, remembers the best weights and how many looks ago they were."""

    def __init__(self, model: Model, average: Average | None, valid: Source, monitor: Metric, history: History) -> None:
        self.model, self.average, self.valid, self.monitor, self.history = model, average, valid, monitor, history
        self.worse = 0
        self.weights: dict[str, Tensor] | None = None

    def look(self, step: int) -> None:
        if self.average is None:
            self._look(step)
        else:
            with self.average.standing_in():
                self._look(step)

    def _look(self, step: int) -> None:
        value = measure(self.model, self.valid, [self.monitor]).compute()[self.monitor.name]
        check = Check(step, value)
        self.history.checks.append(check)
        best = self.history.best
        self.worse += 1
        if math.isfinite(value) and (best is None or self.monitor.badness(value) < self.monitor.badness(best.value)):
            self.history.best, self.worse = check, 0
            self.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def restore(self) -> None:
        if self.weights is not None:
            self.model.load_state_dict(self.weights)


def _require_finite(step: Step) -> None:
    for name, value in step.terms.items():
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss term {name!r} became {value} in step {step.step}; "
                "lower the learning rate, set `clip`, or wrap the head in Scaled"
            )


def _check_arguments(
    epochs: int,
    batch_size: int,
    clip: float | None,
    patience: int | None,
    check_every: int | None,
    valid: Source | None,
) -> None:
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("check_every", check_every or 1)):
        if value < 1:
            raise ValueError(f"fit needs {name} >= 1, got {value}")
    if clip is not None and not clip > 0.0:
        raise ValueError(f"fit needs clip > 0, got {clip}")
    if valid is None and (patience is not None or check_every is not None):
        raise ValueError("patience and check_every look at validation data: pass valid=...")
    if patience is not None and patience < 1:
        raise ValueError(f"fit needs patience >= 1, got {patience}")


def _epoch_seed(seed: int, epoch: int) -> int:
    # Neighbouring seeds must not replay each other's epochs.
    return (seed * 1_000_003 + epoch) % 2**63


def _devices(model: Model) -> list[int]:
    parameter = next(model.parameters())
    return [parameter.device.index or 0] if parameter.is_cuda else []
