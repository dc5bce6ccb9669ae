"""Computations that are not runs of the protocol: functions of a line of JSON, which is their cache key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from transun_paper.lab.store import rounded

# The modules whose functions a line may name.
_MODULES = {
    "ab validity": "transun_paper.online.validity",
    "board": "transun_paper.board.run",
    "booster": "transun_paper.lab.boosters",
    "constant": "transun_paper.lab.references",
    "drift": "transun_paper.online.drift",
    "industrial": "transun_paper.tables.industrial",
    "ranking speed": "transun_paper.online.speed",
    "ranking test": "transun_paper.online.ranking_test",
    "segments": "transun_paper.board.segments",
    "trace": "transun_paper.tables.curves",
    "variance": "transun_paper.tables.variance",
    "watching": "transun_paper.lab.watching",
}


class ComputationModule(Protocol):
    """What a module that a computation names has to define."""

    def compute(self, arguments: Mapping[str, Any], cache: Path) -> Any:
        """The result, as plain values; `cache` is the folder of encoded data."""

    def cost(self, arguments: Mapping[str, Any], cache: Path) -> float:
        """About how many rows pass through a branch of a network, the unit that `Run`s are compared in."""


@dataclass(frozen=True)
class Computation:
    """The name of a function and its arguments, plain values. Equal computations have equal texts.

    >>> computation = Computation("trace", {"seed": 0})
    >>> Computation.parse(computation.text) == computation
    True
    """

    name: str
    arguments: Mapping[str, Any] = field(hash=False)

    @property
    def text(self) -> str:
        """One line of JSON: the cache key of the result, and what a worker reads."""
        return json.dumps({"computation": self.name, **self.arguments}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> "Computation":
        """The inverse of `text`."""
        arguments = json.loads(text)
        return cls(arguments.pop("computation"), arguments)

    def compute(self, cache: Path) -> Any:
        """The result, as plain values of seven digits."""
        return rounded(self._module.compute(self.arguments, cache))

    def cost(self, cache: Path) -> float:
        """About how long it takes, in the unit of `ComputationModule.cost`."""
        return self._module.cost(self.arguments, cache)

    @property
    def _module(self) -> ComputationModule:
        if self.name not in _MODULES:
            raise ValueError(f"there is no computation {self.name!r}; there are {', '.join(_MODULES)}")
        # Imported when needed: the modules import this one, and some need more than torch and numpy.
        module: Any = import_module(_MODULES[self.name])
        return module  # type: ignore[no-any-return]
