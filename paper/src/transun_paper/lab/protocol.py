"""The protocol of every comparison on real data: how a method gets its learning rate and its epochs."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from transun.corrections import Correction
from transun.heads import Head
from transun.models.spec import dumps
from transun.training.optimisers import SGD, Adam, Optimiser
from transun.training.recipe import Recipe
from transun_paper.lab.run import MLP, Run, lab_recipe
from transun_paper.lab.store import Store

# The three in the middle are tried first; those beyond only where the best is at an end.
ADAM: tuple[Optimiser, ...] = tuple(map(Adam, (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)))
SGDS: tuple[Optimiser, ...] = tuple(map(SGD, (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)))
FIRST = (2, 5)


@dataclass(frozen=True)
class Study:
    """Runs that are compared on the validation rows, and the seeds with which the best one is repeated.

    Candidates are in the order of a setting, mostly the learning rate. Those of `first` are tried first; as long as the
    best one so far is at an end of what was tried, the next one beyond is tried too. So the best rate lies inside,
    wherever it is, and nobody pays for rates that are far off. A single run is a study with one candidate.

    Args:
        candidates: in the order of the setting.
        seeds: with which the best one is repeated.
        first: the first and the last but one of those tried first, by their index; None tries all.

    """

    candidates: tuple[Run, ...]
    seeds: tuple[int, ...] = (0,)
    first: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """One line of JSON, as a worker reads it."""
        spec = {"candidates": [run.spec for run in self.candidates], "seeds": self.seeds, "first": self.first}
        return json.dumps(spec, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> "Study":
        """The inverse of `text`; the text of a `Run` is read too."""
        spec = json.loads(text)
        if "candidates" not in spec:
            run = Run.from_spec(spec)
            return cls((run,), (run.seed,))
        first = spec.get("first")
        return cls(
            tuple(map(Run.from_spec, spec["candidates"])), tuple(spec["seeds"]), None if first is None else tuple(first)
        )

    def tried(self, store: Store) -> tuple[Run, ...]:
        """The candidates that are to be compared, as far as the reports so far tell."""
        return self._compared(store)[0]

    def decided(self, store: Store) -> bool:
        """Whether the winner is known: there is only one candidate, or each that is to be compared has its report."""
        return len(self.candidates) == 1 or self._compared(store)[1]

    def _compared(self, store: Store) -> tuple[tuple[Run, ...], bool]:
        """The candidates that are to be compared, and whether they are all of them.

        The store is asked once for each, because another worker may add a report between two questions.
        """
        low, high = self.first or (0, len(self.candidates))
        while all(run.text in store for run in self.candidates[low:high]):
            errors = [validation(store.read(run.text)) for run in self.candidates[low:high]]
            best = errors.index(min(errors))
            if best == 0 and low > 0:
                low -= 1
            elif best == len(errors) - 1 and high < len(self.candidates):
                high += 1
            else:
                return self.candidates[low:high], True
        return self.candidates[low:high], False

    def chosen(self, store: Store) -> Run:
        """The candidate of least validation NRMSE; the first of equals, or where all failed."""
        if len(self.candidates) == 1:
            return self.candidates[0]
        return min(self.tried(store), key=lambda run: validation(store.read(run.text)))

    def diverged(self, store: Store) -> list[tuple[float, str]]:
        """The learning rates that were tried and failed, each with the reason."""
        runs = [run for run in self.tried(store) if run.text in store]
        reports = [(run.training.optimiser.rate, store.read(run.text)) for run in runs]
        return [(rate, report["failed"]) for rate, report in reports if "failed" in report]

    def finals(self, store: Store) -> list[Run]:
        """The runs that are reported: the chosen one with every seed; a single one where every candidate failed."""
        chosen = self.chosen(store)
        if len(self.candidates) > 1 and math.isinf(validation(store.read(chosen.text))):
            return [chosen]
        return [chosen.with_seed(seed) for seed in self.seeds]

    def at_the_end(self, store: Store) -> bool:
        """Whether the winner is the first or last of all candidates: a wider grid might contain a better rate."""
        ends = (self.candidates[0], self.candidates[-1])
        return len(self.candidates) > 2 and self.chosen(store) in ends

    def reports(self, store: Store) -> list[dict[str, Any]]:
        """The reports of the final runs, one per seed; empty while one is missing."""
        if not self.decided(store):
            return []
        texts = [run.text for run in self.finals(store)]
        return [store.read(text) for text in texts] if all(text in store for text in texts) else []


def validation(report: Mapping[str, Any]) -> float:
    """The NRMSE of the validation rows, by which candidates are compared; infinite for a run that failed."""
    return math.inf if "failed" in report else float(report["valid"]["NRMSE"])


@dataclass(frozen=True)
class Budget:
    """How long a data set is trained on: rows per step, and epochs at most."""

    batch_size: int = 512
    epochs: int = 10


@dataclass(frozen=True)
class TuningProtocol:
    """One way of tuning, the same for all methods; `statement` describes it in words.

    The paper names SGD with a rate of 0.001 for all methods, which its own listing contradicts: it sums losses in one
    place and averages them in another, so that the same rate is 512 times as large (errata E7). Hence every method gets
    its own rate. It is chosen by the NRMSE of predictions on validation rows because that is in units of the target,
    which all methods predict, and least for E[y|x], which all are compared on. A method's own loss would not do: the
    bias term of GTS is in units that its other branch decides, so that of two rates the one with the worse point can
    have the smaller loss.

    Args:
        optimisers: the grid by ascending rate, tried with the first seed.
        first: which of them are tried first, by index; None tries all. See `Study`.
        seeds: how many seeds the chosen one is repeated with.
        training: everything else about training; optimiser, batch and epochs are replaced.
        budgets: by name of the data set.
        otherwise: the budget of a data set that is not named.

    """

    optimisers: tuple[Optimiser, ...] = ADAM
    first: tuple[int, int] | None = None
    seeds: int = 5
    training: Recipe = lab_recipe()
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    otherwise: Budget = Budget()

    def study(
        self,
        dataset: str,
        head: Head,
        correction: Correction | None = None,
        backbone: Any = MLP(),
        balanced: bool = False,
        fused: bool = False,
        finish: int = 0,
    ) -> Study:
        """The runs of one method on one data set, given by its key."""
        candidates = [
            Run(dataset, head, replace(training, finish=finish), backbone, correction, balanced, fused=fused)
            for training in (self.training_for(dataset, optimiser) for optimiser in self.optimisers)
        ]
        return Study(tuple(candidates), tuple(range(self.seeds)), self.first)

    def training_for(self, dataset: str, optimiser: Optimiser) -> Recipe:
        """The training that a data set, given by its key, gets with an optimiser of the grid."""
        budget = self.budgets.get(name_of(dataset), self.otherwise)
        return replace(self.training, optimiser=optimiser, batch_size=budget.batch_size, epochs=budget.epochs)

    @property
    def statement(self) -> str:
        """The protocol in words."""
        budgets = "; ".join(f"{name} {b.batch_size} and {b.epochs}" for name, b in self.budgets.items())
        if not budgets:
            budgets = f"{self.otherwise.batch_size} and {self.otherwise.epochs}"
        averaging = "" if self.training.averaging is None else f", weights averaged by {dumps(self.training.averaging)}"
        return (
            f"{self._choice} Otherwise all methods train alike: rate by `{self.training.decay.__name__}`{averaging}, a "
            "check on the validation rows after every epoch, the weights of the best check kept, and early stopping "
            f"after {self.training.patience} checks without improvement. Corrections are fitted to the same validation "
            f"rows. Test rows choose nothing. Rows per step and epochs at most: {budgets}."
        )

    @property
    def _choice(self) -> str:
        low, high = self.first or (0, len(self.optimisers))
        rates = ", ".join(f"{type(optimiser).__name__} {optimiser.rate:g}" for optimiser in self.optimisers[low:high])
        ends = f"down to {self.optimisers[0].rate:g} and up to {self.optimisers[-1].rate:g}"
        wider = f" Where that is the least or the largest tried, the next one beyond is tried too, {ends}."
        if len(self.optimisers) == 1:
            return f"One optimiser for every method, not tuned: {rates}, {self.seeds} seeds."
        return (
            f"Every method gets its own learning rate on every data set: of {rates} the one of least NRMSE on the "
            f"validation rows, with seed 0; then {self.seeds} seeds at that rate.{wider if self.first else ''} NRMSE "
            "of predictions is in units of the target and least for E[y|x], whatever a method calls its loss."
        )


def name_of(dataset: str) -> str:
    """The name in the key of an encoded data set.

    >>> name_of("online_retail-1a2b3c4d")
    'online_retail'
    """
    return dataset.rsplit("-", 1)[0]
