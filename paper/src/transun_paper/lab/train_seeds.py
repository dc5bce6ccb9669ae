"""Several seeds of one run trained as one model: each with its own weights, order of rows, looks and end.

A lane is a seed. Every lane takes the steps that `fit` would take with its seed alone, up to rounding, so that the
result of a run does not depend on the company it was trained in.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from transun.data import Dataset
from transun.heads import Head, Raw
from transun.metrics import NRMSE
from transun.models.network import Model
from transun.training.averaging import Average
from transun.training.evaluation import BATCH
from transun.training.history import Check, History, Step
from transun.training.loop import epoch_seed
from transun.training.recipe import Recipe
from transun_paper.lab.stacked_network import Stacked

# Points of the learning curve that are kept; reading a loss costs a little.
_POINTS = 100


@dataclass
class _Lane:
    """One seed: its best weights so far, what it saw, and whether it is over."""

    seed: int
    history: History = field(default_factory=History)
    weights: list[Tensor] = field(default_factory=list)
    worse: int = 0
    failure: str | None = None

    @property
    def over(self) -> bool:
        return self.history.stopped_early or self.failure is not None


def fit_together(
    models: Sequence[Model], train: Dataset, valid: Dataset, recipe: Recipe
) -> list[History | FloatingPointError]:
    """Train models that differ only in their `seed`, in place; a history each, or why that one failed."""
    y = train.targets().double()
    for model in models:
        model.prepare(y)
    head = models[0].head.train()
    stack = Stacked(models)
    average = Average(stack) if recipe.averaging else None
    lanes = [_Lane(model.seed) for model in models]
    began = time.perf_counter()
    _train(stack, head, average, lanes, train, valid, recipe)
    if average is not None:
        average.swap()
    results: list[History | FloatingPointError] = []
    for place, (lane, model) in enumerate(zip(lanes, models, strict=True)):
        stack.write(model, lane.weights or stack.lane_of(place))
        lane.history.seconds = (time.perf_counter() - began) / len(lanes)
        model.eval()
        results.append(lane.history if lane.failure is None else FloatingPointError(lane.failure))
    return results


def _train(
    stack: Stacked,
    head: Head,
    average: Average | None,
    lanes: Sequence[_Lane],
    train: Dataset,
    valid: Dataset,
    recipe: Recipe,
) -> None:
    stepper = recipe.optimiser.build(stack.parameters())
    per_epoch = math.ceil(len(train) / recipe.batch_rows(len(train)))
    total, every = recipe.epochs * per_epoch, math.ceil(per_epoch / recipe.checks_per_epoch)
    cost = _Cost(head) if head.rowwise else _CostByLane(head, [lane.seed for lane in lanes])
    for step, epoch, rows in _orders(train, lanes, recipe):
        rate = recipe.optimiser.rate * recipe.decay(step / total)
        for group in stepper.param_groups:
            group["lr"] = rate
        raw, y = stack(_take(train, rows)), train.y[rows]
        terms = cost(raw, y)
        stepper.zero_grad()
        # Lanes do not touch each other, so the gradient of the sum is each lane's own.
        torch.stack(tuple(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        stepper.step()
        if average is not None and recipe.averaging is not None:
            average.update(recipe.averaging.weight(step, total))
        if step % max(1, total // _POINTS) == 0 or step + 1 == total:
            _log(lanes, Step(step, epoch, rate, {}), terms)
        for lane in lanes:
            lane.history.rows += 0 if lane.over else rows.shape[1]
        if (step + 1) % every == 0 or step + 1 == total:
            _look(stack, head, average, lanes, valid, step + 1, recipe.patience)
        if all(lane.over for lane in lanes):
            break


def _orders(train: Dataset, lanes: Sequence[_Lane], recipe: Recipe) -> Iterator[tuple[int, int, Tensor]]:
    """Step, epoch and the rows of every lane (S, B): for each seed those that `fit` would take."""
    places = Dataset({"row": torch.arange(len(train))}, train.y)
    step = 0
    for epoch in range(recipe.epochs):
        seeds = [epoch_seed(lane.seed, epoch) for lane in lanes]
        shuffled = [places.batches(recipe.batch_rows(len(train)), seed=seed) for seed in seeds]
        for batches in zip(*shuffled, strict=True):
            yield step, epoch, torch.stack([batch.x["row"] for batch in batches])
            step += 1


def _take(data: Dataset, rows: Tensor) -> dict[str, Tensor]:
    columns: dict[str, Tensor] = data.x  # type: ignore[assignment]
    flat = rows.flatten()
    return {name: column.index_select(0, flat).view(*rows.shape, *column.shape[1:]) for name, column in columns.items()}


class _Cost:
    """Mean loss terms of every lane, (S,) each."""

    def __init__(self, head: Head) -> None:
        self.head = head

    def __call__(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        terms = self.head.loss(tuple(output.flatten(0, 1) for output in raw), y.flatten())
        return {name: term.view(y.shape).mean(1) for name, term in terms.items()}


class _CostByLane(_Cost):
    """The same for a head whose rows see each other or that draws random numbers: lane by lane, each as if alone."""

    def __init__(self, head: Head, seeds: Sequence[int]) -> None:
        super().__init__(head)
        self.states = [torch.Generator().manual_seed(seed).get_state() for seed in seeds]

    def __call__(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        found = []
        with torch.random.fork_rng(devices=[]):
            for lane, own in enumerate(zip(*raw, strict=True)):
                torch.set_rng_state(self.states[lane])
                found.append({name: term.mean() for name, term in self.head.loss(own, y[lane]).items()})
                self.states[lane] = torch.get_rng_state()
        return {name: torch.stack([terms[name] for terms in found]) for name in found[0]}


def _log(lanes: Sequence[_Lane], at: Step, terms: dict[str, Tensor]) -> None:
    found = {name: term.tolist() for name, term in terms.items()}
    for place, lane in enumerate(lanes):
        if lane.over:
            continue
        own = {name: term[place] for name, term in found.items()}
        wrong = [name for name, value in own.items() if not math.isfinite(value)]
        if wrong:
            lane.failure = f"the loss term {wrong[0]!r} became {own[wrong[0]]} in step {at.step}"
        lane.history.steps.append(Step(at.step, at.epoch, at.rate, own))


@torch.no_grad()
def _look(
    stack: Stacked,
    head: Head,
    average: Average | None,
    lanes: Sequence[_Lane],
    valid: Dataset,
    step: int,
    patience: int | None,
) -> None:
    if average is not None:
        average.swap()
    predictions = _predict(stack, head, valid)
    for place, lane in enumerate(lanes):
        if lane.over:
            continue
        value = NRMSE(predictions[place], valid.y) if bool(predictions[place].isfinite().all()) else math.inf
        check = Check(step, {"NRMSE": value})
        lane.history.checks.append(check)
        lane.worse += 1
        if math.isfinite(value) and (lane.history.best is None or value < lane.history.best.values["NRMSE"]):
            lane.history.best, lane.worse = check, 0
            lane.weights = stack.lane_of(place)
        lane.history.stopped_early = patience is not None and lane.worse >= patience
    if average is not None:
        average.swap()


def _predict(stack: Stacked, head: Head, data: Dataset) -> Tensor:
    """Predictions of every lane for the same rows, (S, n)."""
    head.eval()
    parts = []
    for batch in data.batches(BATCH):
        columns: dict[str, Tensor] = batch.x  # type: ignore[assignment]
        raw = stack({name: column.unsqueeze(0) for name, column in columns.items()})
        parts.append(head(tuple(output.flatten(0, 1) for output in raw)).view(len(raw[0]), -1))
    head.train()
    return torch.cat(parts, 1)
