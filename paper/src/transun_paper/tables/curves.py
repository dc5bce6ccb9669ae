"""Figures of what happens during training: the three losses, and the three schemes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from transun.heads import MSE, Head, LogMSE, LogSUN, Scaled
from transun_paper.lab.compare import paired_t
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store
from transun_paper.tables.figure import framed_figure
from transun_paper.tables.jobs import Job
from transun_paper.tables.judge import LEVEL, NO, NOISE, UNKNOWN, YES, Answer, Finding, answers
from transun_paper.tables.schemes import SCHEMES
from transun_paper.tables.table import OTHERS, Keys, board_of, kept
from transun_paper.tables.traces import trace_job

# Looks at the end of training over which a curve's level is taken, and seeds that are tried.
_LAST, _SEEDS = 10, 3
_NOTHING = Finding(UNKNOWN, "not run, or failed")


# What the curves end at, per label, metric and seed.
Levels = Mapping[str, Mapping[str, list[float]]]


@dataclass(frozen=True)
class CurveFigure:
    """Curves during training, one per head and data set: that of the first seed; all seeds judge where they end."""

    name: str
    title: str
    about: str
    heads: Mapping[str, Head] = field(compare=False)
    claims: Callable[[Levels, str], list[Answer]]

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """No runs."""
        return []

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """One training a head and seed."""
        return [job for jobs in self._jobs(keys, quick).values() for seeds in jobs.values() for job in seeds]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The curves that are there, and the answers."""
        panels, claims = [], []
        for dataset, jobs in self._jobs(keys, quick).items():
            found = {label: _read(store, seeds) for label, seeds in jobs.items()}
            usable = {label: traces for label, traces in found.items() if traces}
            panels.append({"dataset": dataset, "curves": {label: traces[0] for label, traces in usable.items()}})
            claims += self.claims({label: _levels(traces) for label, traces in usable.items()}, dataset)
        return framed_figure(self.name, self.title, self.about, panels, claims)

    def _jobs(self, keys: Keys, quick: bool) -> dict[str, dict[str, list[Job]]]:
        protocol = board_of(quick).protocol
        seeds = range(min(_SEEDS, protocol.seeds))
        return {
            name: {
                label: [trace_job(protocol, keys[name], head, seed) for seed in seeds]
                for label, head in self.heads.items()
            }
            for name in kept(keys, OTHERS)
        }


def _read(store: Store, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The traces of all seeds; none where one is missing or failed."""
    found = [store.read(job.text) for job in jobs if job.text in store]
    return found if len(found) == len(jobs) and not any("failed" in trace for trace in found) else []


def _levels(traces: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    return {
        metric: [fmean(look[metric] for look in trace["looks"][-_LAST:]) for trace in traces]
        for metric in ("PGR", "TRE", "MRE")
    }


def _below(values: Sequence[float], limits: Sequence[float], shown: str) -> Finding:
    """Whether values lie below limits, tested over seeds."""
    p = paired_t(values, limits)
    holds = NOISE if p >= LEVEL else YES if fmean(values) < fmean(limits) else NO
    return Finding(holds, f"{shown} over the last {_LAST} looks, p = {p:.2g} over {len(values)} seeds")


def _training_claims(levels: Levels, where: str) -> list[Answer]:
    low, right = "LogMSE ends with PGR below 0.9", "LogSUN ends with PGR within 0.1 of 1"
    if not {"LogMSE", "LogSUN"} <= set(levels):
        return [*answers(low, [(where, _NOTHING)]), *answers(right, [(where, _NOTHING)])]
    biased, ours = levels["LogMSE"]["PGR"], levels["LogSUN"]["PGR"]
    far = [abs(value - 1.0) for value in ours]
    return [
        *answers(low, [(where, _below(biased, [0.9] * len(biased), f"PGR {fmean(biased):.3f}"))]),
        *answers(right, [(where, _below(far, [0.1] * len(far), f"PGR {fmean(ours):.3f}"))]),
    ]


def _scheme_claims(levels: Levels, where: str) -> list[Answer]:
    result = []
    for rival in ("S0", "S1"):
        finding = _NOTHING
        if {rival, "S2"} <= set(levels):
            ours, theirs = levels["S2"]["TRE"], levels[rival]["TRE"]
            finding = _below(ours, theirs, f"TRE {fmean(ours):.3f} against {fmean(theirs):.3f}")
        result += answers(f"S2 ends with a lower TRE than {rival} on training rows", [(where, finding)])
    return result


_WATCHED = (
    "Two epochs of Adam 0.001 without averaging; drawn is seed 0. PGR, TRE and MRE are of the same 4096 training rows "
    "at every look. Output biases start at the best constants, not at zero as in the paper."
)
TRAINING = CurveFigure(
    "fig_training",
    "Prediction-to-truth ratio and loss during training",
    _WATCHED,
    {"MSE": Scaled(MSE()), "LogMSE": LogMSE(), "LogSUN": LogSUN()},
    _training_claims,
)
SCHEME_CURVES = CurveFigure(
    "fig_schemes",
    "The three schemes during training",
    _WATCHED,
    {label: LogSUN(scheme) for label, scheme in SCHEMES.items()},
    _scheme_claims,
)
