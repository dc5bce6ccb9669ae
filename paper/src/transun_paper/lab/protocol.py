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

ADAM: tuple[Optimiser, ...] = (Adam(3e-4), Adam(1e-3), Adam(3e-3))
SGDS: tuple[Optimiser, ...] = (SGD(1e-2), SGD(1e-1), SGD(1.0))


@dataclass(frozen=True)
class Study:
    """Runs that are compared on the validation rows, and the seeds with which the best one is repeated.

    A single run is a study with one candidate.
    """

    candidates: tuple[Run, ...]
    seeds: tuple[int, ...] = (0,)

    @property
    def text(self) -> str:
        """One line of JSON, as a worker reads it."""
        return json.dumps(
            {"candidates": [run.spec for run in self.candidates], "seeds": self.seeds}, ensure_ascii=False
        )

    @classmethod
    def parse(cls, text: str) -> "Study":
        """The inverse of `text`; the text of a `Run` is read too."""
        spec = json.loads(text)
        if "candidates" not in spec:
            run = Run.from_spec(spec)
            return cls((run,), (run.seed,))
        return cls(tuple(map(Run.from_spec, spec["candidates"])), tuple(spec["seeds"]))

    def decided(self, store: Store) -> bool:
        """Whether the winner is known: there is only one candidate, or each has its report."""
        return len(self.candidates) == 1 or all(run.text in store for run in self.candidates)

    def chosen(self, store: Store) -> Run:
        """The candidate of least validation NRMSE; the first of equals, or where all failed."""
        if len(self.candidates) == 1:
            return self.candidates[0]
        return min(self.candidates, key=lambda run: validation(store.read(run.text)))

    def finals(self, store: Store) -> list[Run]:
        """The runs that are reported: the chosen one with every seed; a single one where every candidate failed."""
        chosen = self.chosen(store)
        if len(self.candidates) > 1 and math.isinf(validation(store.read(chosen.text))):
            return [chosen]
        return [chosen.with_seed(seed) for seed in self.seeds]

    def at_the_end(self, store: Store) -> bool:
        """Whether the winner is the first or last of three or more: a wider grid might contain a better rate."""
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
        optimisers: the grid, tried with the first seed.
        seeds: how many seeds the chosen one is repeated with.
        training: everything else about training; optimiser, batch and epochs are replaced.
        budgets: by name of the data set.
        otherwise: the budget of a data set that is not named.

    """

    optimisers: tuple[Optimiser, ...] = ADAM
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
    ) -> Study:
        """The runs of one method on one data set, given by its key."""
        candidates = [
            Run(dataset, head, self.training_for(dataset, optimiser), backbone, correction, balanced)
            for optimiser in self.optimisers
        ]
        return Study(tuple(candidates), tuple(range(self.seeds)))

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
        rates = ", ".join(f"{type(optimiser).__name__} {optimiser.rate:g}" for optimiser in self.optimisers)
        if len(self.optimisers) == 1:
            return f"One optimiser for every method, not tuned: {rates}, {self.seeds} seeds."
        return (
            f"Every method gets its own learning rate on every data set: of {rates} the one of least NRMSE on the "
            f"validation rows, with seed 0; then {self.seeds} seeds at that rate. NRMSE of predictions is in units of "
            "the target and least for E[y|x], whatever a method calls its loss."
        )


def name_of(dataset: str) -> str:
    """The name in the key of an encoded data set.

    >>> name_of("online_retail-1a2b3c4d")
    'online_retail'
    """
    return dataset.rsplit("-", 1)[0]
