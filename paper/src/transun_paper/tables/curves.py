"""Figures of the course of training: losses and the bias of a sample of the training rows, by loss and by scheme."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from transun.data import Dataset
from transun.heads import MSE, Head, LogMSE, LogNormal, LogSUN, OptDist, Scaled
from transun.metrics import MRE, NRMSE, PGR, TRE, Metric
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.evaluation import predict
from transun.training.history import Step
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe
from transun_paper.lab.computation import Computation
from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path, training_rows
from transun_paper.lab.measures import values
from transun_paper.lab.protocol import Study, TuningProtocol
from transun_paper.lab.run import MLP, NAMES, fit_run, lab_recipe
from transun_paper.lab.store import Store
from transun_paper.tables.ablations import SCHEMES
from transun_paper.tables.causes import changed
from transun_paper.tables.figures import figure_report
from transun_paper.tables.findings import NOT_RUN, Answer, Finding, able, below
from transun_paper.tables.table import OTHERS, Keys, Tuned, kept, leaderboard_row, protocol_of

_TRACED: tuple[Metric, ...] = (PGR, TRE, MRE, NRMSE)
# How often the sample is measured during training, and its rows.
_POINTS, _SAMPLE = 50, 4096
# One learning rate for all, without averaging, because the figure shows the training itself.
_RATE, _EPOCHS = 1e-3, 2
# Points at the end of training over which the level of a curve is averaged, and seeds.
_LAST, _SEEDS = 10, 5
# The factor within which two values of NRMSE count as the same.
_SAME = 1.02


def trace(protocol: TuningProtocol, key: str, head: Head, seed: int) -> Computation:
    """The training of a head on a data set, traced."""
    batch = protocol.training_for(key, Adam(_RATE)).batch_size
    recipe = lab_recipe(optimiser=Adam(_RATE), epochs=_EPOCHS, batch_size=batch, averaging=None, patience=None)
    return Computation("trace", {"dataset": key, "head": dumps(head), "training": dumps(recipe), "seed": seed})


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train, and record about fifty points of the course of training.

    A point has the step, every term of the loss averaged over the batches since the last point, and PGR, TRE, MRE and
    NRMSE of the same 4096 training rows, predicted with the weights of this step.
    """
    data = EncodedDataset.load(cache_path(cache, arguments["dataset"]))
    recipe: Recipe = loads(arguments["training"], NAMES)
    model = Model(MLP().build(data), loads(arguments["head"]), arguments["seed"])
    batch = recipe.batch_rows(len(data.train))
    steps = -(-len(data.train) // batch) * recipe.epochs
    recorder = _Recorder(model, _sample(data.train), max(1, steps // _POINTS))
    try:
        fit_run(model, data.train, recipe, on_step=recorder)
    except FloatingPointError as error:
        return {"failed": str(error)}
    return {"rows": len(data.train), "batch_size": batch, "looks": recorder.points}


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Training rows, times epochs, times branches."""
    head: Head = loads(arguments["head"])
    return training_rows(cache, arguments["dataset"]) * _EPOCHS * (1.0 + len(head.branches))


def _sample(data: Dataset) -> Dataset:
    rows = torch.arange(0, len(data), max(1, len(data) // _SAMPLE))[:_SAMPLE]
    return data.take(rows)


class _Recorder:
    """Called after every step; records a point of the course of training every so many steps."""

    def __init__(self, model: Model, sample: Dataset, every: int) -> None:
        self.model, self.sample, self.every = model, sample, every
        self.recent: list[Mapping[str, float]] = []
        self.points: list[dict[str, Any]] = []

    def __call__(self, step: Step) -> None:
        self.recent.append(step.terms)
        if (step.step + 1) % self.every:
            return
        terms = {name: fmean(batch[name] for batch in self.recent) for name in step.terms}
        metrics = values(_TRACED, predict(self.model, self.sample), self.sample.y)
        self.points.append({"step": step.step + 1, "terms": terms, **metrics})
        self.recent = []


# Per label: what the curves end at, by metric and seed, and under "path" the NRMSE of every point of every seed. Under
# "trained" are the PGR of the training rows after the leaderboard's training, where the figure asks for it.
Levels = Mapping[str, Mapping[str, list[Any]]]


@dataclass(frozen=True)
class CurveFigure:
    """Curves over training, one per head and data set: the first seed is drawn, all seeds answer where curves end.

    `trained` are labels of heads, by names of the leaderboard, whose longer training there shows why claims fail.
    """

    name: str
    title: str
    about: str
    heads: Mapping[str, Head] = field(compare=False)
    claims: Callable[[Levels, str], list[Answer]]
    trained: tuple[str, ...] = ()

    def datasets(self, available: Iterable[str]) -> list[str]:
        """The three main data sets, and the user's."""
        return kept(available, OTHERS)

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """Those of the leaderboard that show why claims fail."""
        return [
            study for name in kept(keys, OTHERS) for study in self._trained(protocol_of(quick), keys[name]).values()
        ]

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """One traced training per data set, head and seed."""
        return [seed for heads in self._traces(keys, quick).values() for seeds in heads.values() for seed in seeds]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The curves that the store holds, and the answers."""
        panels, claims = [], []
        for dataset, heads in self._traces(keys, quick).items():
            traces = {label: _read(store, seeds) for label, seeds in heads.items()}
            finished = {label: seeds for label, seeds in traces.items() if seeds}
            panels.append({"dataset": dataset, "curves": {label: seeds[0] for label, seeds in finished.items()}})
            levels = {label: _levels(seeds) for label, seeds in finished.items()}
            for label, study in self._trained(protocol_of(quick), keys[dataset]).items():
                reports = study.reports(store)
                if label in levels and able(reports):
                    levels[label]["trained"] = [report["train"]["PGR"] for report in reports]
            claims += self.claims(levels, dataset)
        return figure_report(self.name, self.title, self.about, panels, claims)

    def _trained(self, protocol: TuningProtocol, key: str) -> dict[str, Study]:
        return {label: Tuned().study(protocol, key, leaderboard_row("", label, label)) for label in self.trained}

    def _traces(self, keys: Keys, quick: bool) -> dict[str, dict[str, list[Computation]]]:
        protocol = protocol_of(quick)
        seeds = range(min(_SEEDS, protocol.seeds))
        return {
            name: {
                label: [trace(protocol, keys[name], head, seed) for seed in seeds] for label, head in self.heads.items()
            }
            for name in kept(keys, OTHERS)
        }


def _read(store: Store, traces: Sequence[Computation]) -> list[dict[str, Any]]:
    """The traces of all seeds; none where one is missing or failed."""
    finished = [store.read(trace.text) for trace in traces if trace.text in store]
    return finished if len(finished) == len(traces) and not any("failed" in trace for trace in finished) else []


def _levels(traces: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    path = [[(point["step"], point["NRMSE"]) for point in trace["looks"]] for trace in traces]
    return {"path": path} | {
        metric.name: [fmean(point[metric.name] for point in trace["looks"][-_LAST:]) for trace in traces]
        for metric in _TRACED
    }


def _ends_below(levels: Sequence[float], limits: Sequence[float], evidence: str) -> Finding:
    return below(levels, limits, f"{evidence} over the last {_LAST} points")


def _training_claims(levels: Levels, where: str) -> list[Answer]:
    low = right = NOT_RUN
    cause = None
    if {"LogMSE", "LogSUN"} <= set(levels):
        biased, ours = levels["LogMSE"]["PGR"], levels["LogSUN"]["PGR"]
        low = _ends_below(biased, [0.9] * len(biased), f"PGR of LogMSE {fmean(biased):.3f}, limit 0.9")
        right = _ends_below(*_near_one(ours))
        longer = levels["LogSUN"].get("trained", [])
        if longer:
            after = below(*_near_one(longer))
            cause = changed("after the longer training of the leaderboard", right, after, NOT_RUN)
    return [
        Answer.of("LogMSE ends with PGR below 0.9", where, low),
        Answer.of("LogSUN ends with PGR within 0.1 of 1", where, right, cause),
    ]


def _near_one(ratios: Sequence[float]) -> tuple[list[float], list[float], str]:
    """The distances of PGR from 1, the largest that counts as near, and the numbers."""
    distances = [abs(value - 1.0) for value in ratios]
    return distances, [0.1] * len(ratios), f"PGR of LogSUN {fmean(ratios):.3f}, limits 0.9 and 1.1"


def _scheme_claims(levels: Levels, where: str) -> list[Answer]:
    answers = []
    for rival in ("S0", "S1"):
        finding = NOT_RUN
        if {rival, "S2"} <= set(levels):
            ours, theirs = levels["S2"]["TRE"], levels[rival]["TRE"]
            finding = _ends_below(ours, theirs, f"TRE: S2 {fmean(ours):.3f}, {rival} {fmean(theirs):.3f}")
        answers.append(Answer.of(f"S2 ends with a lower TRE than {rival} on training rows", where, finding))
    return answers


def _iteration_claims(levels: Levels, where: str) -> list[Answer]:
    finding = NOT_RUN
    if {"LogSUN", "OptDist"} <= set(levels):
        steps = steps_to_the_same_level(levels["LogSUN"]["path"], levels["OptDist"]["path"])
        ours, theirs = ([pair[side] for pair in steps] for side in (0, 1))
        evidence = (
            f"steps: LogSUN {fmean(ours):.0f}, OptDist {fmean(theirs):.0f}, ratio {fmean(theirs) / fmean(ours):.2f}"
        )
        finding = below(ours, theirs, evidence)
    claim = "OptDist needs more steps than LogSUN to the same NRMSE (the paper: 2.13 times as many)"
    return [Answer.of(claim, where, finding)]


Curve = Sequence[tuple[float, float]]
"""The points (step, NRMSE) of one training."""


def steps_to_the_same_level(first: Sequence[Curve], second: Sequence[Curve]) -> list[tuple[float, float]]:
    """Per seed the steps of two trainings until the NRMSE that both reach, within 2 %, is reached for the first time.

    >>> steps_to_the_same_level([[(1, 5.0), (2, 2.0), (3, 1.0)]], [[(1, 9.0), (2, 6.0), (3, 2.0)]])
    [(2, 3)]
    """
    pairs = []
    for a, b in zip(first, second, strict=True):
        level = _SAME * max(min(value for _, value in path) for path in (a, b))
        steps = [next(step for step, value in path if value <= level) for path in (a, b)]
        pairs.append((steps[0], steps[1]))
    return pairs


_ABOUT = (
    "Two epochs of Adam 0.001 without averaging; seed 0 is drawn. PGR, TRE, MRE and NRMSE are of the same 4096 "
    "training rows at every point. Output biases start at the best constants, not at zero as in the paper."
)
TRAINING = CurveFigure(
    "fig_training",
    "Prediction-to-truth ratio and loss during training",
    _ABOUT,
    {"MSE": Scaled(MSE()), "LogMSE": LogMSE(), "LogSUN": LogSUN()},
    _training_claims,
    trained=("LogSUN",),
)
SCHEME_CURVES = CurveFigure(
    "fig_schemes",
    "The three schemes during training",
    _ABOUT,
    {label: LogSUN(scheme) for label, scheme in SCHEMES.items()},
    _scheme_claims,
)
ITERATIONS = CurveFigure(
    "fig_iterations",
    "Steps to the same error: LogSUN and OptDist",
    f"{_ABOUT} The level is the NRMSE of these rows that both methods reach, within 2 %; the paper counts steps to a "
    "batch-NRMSE of 3.0 on its industrial data.",
    {"LogSUN": LogSUN(), "OptDist": OptDist(LogNormal(), shared=1)},
    _iteration_claims,
)
