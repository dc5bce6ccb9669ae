"""Calls of `transun.train`: the default, its ablations, and networks with one head."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from transun.data import Datetime, Features, Kind, Number
from transun.data.inference import guess
from transun.tables.model import embedding_mlp, tabm
from transun.tables.plan import parse_head
from transun.tables.training import train
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe
from transun_paper.board.method import NOTHING, BoardMethod, FitResult, Stopwatch
from transun_paper.board.tables import TableSplit
from transun_paper.board.trees import rmse

# Raise this with every change of transun that changes what `train` returns by default: trees, mixing, the recipe. The
# default and its ablations are then measured anew, and the results of all other methods stay.
_DEFAULT_VERSION = 7
# Backbones by the name that a setting has; functions have no text that could be part of a key.
_BACKBONES = {"embedding_mlp": embedding_mlp, "tabm": tabm}


def _without_periods(kind: Kind) -> Kind:
    """The kind of a column without the effects of single days and years."""
    match kind:
        case Number():
            return replace(kind, periods=False)
        case Datetime():
            return replace(kind, parts=tuple(part for part in kind.parts if part != "day"))
        case _:
            return kind


# Changes of the inferred kinds by the name that a setting has, likewise.
_KINDS = {"without_periods": _without_periods}


@dataclass(frozen=True)
class Train(BoardMethod):
    """`train(train_rows, target, valid=valid_rows, **arguments)` with a seed.

    Args:
        name: of the method.
        arguments: further arguments of `train` as plain values: a head as text, a backbone by its name, features by the
            name of a change of the inferred kinds, changes of the recipe as a mapping.
        rates: learning rates of Adam to try with the first seed; the one of least RMSE on the validation rows is used
            for all seeds. The seconds are of one training. Empty keeps the rate of the recipe.

    """

    cost: ClassVar[float] = 60.0
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    rates: tuple[float, ...] = ()

    @property
    def version(self) -> int:
        # A method that names its head is a network by itself, without the trees and shares of the default.
        return super().version if "head" in self.arguments else _DEFAULT_VERSION

    def missing(self) -> str | None:
        """Why `train` of this version of transun cannot be called like this, or None."""
        unknown = [name for name in self.arguments if name not in inspect.signature(train).parameters]
        if unknown:
            return f"train takes no argument {unknown[0]!r}"
        try:
            parse_head(self.arguments.get("head", "MSE()"))
        except ValueError as error:
            return str(error).split(":")[0]
        return super().missing()

    def fit_predict(self, data: TableSplit, seed: int, given: Mapping[str, Any] = NOTHING) -> FitResult:
        if not self.rates:
            return self._train(data, seed)
        rates = [given["rate"]] if given else self.rates
        results = [self._train(data, seed, rate) for rate in rates]
        return min(results, key=lambda result: rmse(result.valid, data.y_valid))

    def needs(self, seed: int) -> tuple[str, int] | None:
        return (self.name, 0) if self.rates and seed else None

    def taken_from(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {"rate": result["details"]["rate"]}

    def _train(self, data: TableSplit, seed: int, rate: float | None = None) -> FitResult:
        arguments, watch = dict(self.arguments), Stopwatch()
        settings: dict[str, Any] = {"seed": seed, **arguments.get("recipe", {})}
        if rate is not None:
            settings["optimiser"] = Adam(rate)
        arguments["recipe"] = Recipe(**settings)
        if "backbone" in arguments:
            arguments["backbone"] = _BACKBONES[arguments["backbone"]]
        if "features" in arguments:
            change, inferred = _KINDS[arguments["features"]], guess(data.train, data.target)
            arguments["features"] = Features({name: change(kind) for name, kind in inferred.columns.items()})
        with watch.running():
            model = train(data.train, data.target, valid=data.valid, progress=False, **arguments)
        valid, test = (np.asarray(model.predict(part), np.float64) for part in (data.valid, data.test))
        return FitResult(valid, test, watch.seconds, {} if rate is None else {"rate": rate})
