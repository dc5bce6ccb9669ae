"""What a method of the board is: it learns from a split table and predicts the rows that are held out."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from transun.support.arrays import Floats
from transun.support.extras import require
from transun_paper.board.tables import TableSplit

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a method returns.

    Args:
        valid: predictions of the validation rows (n,).
        test: predictions of the test rows (n,).
        seconds: how long learning took; reading the table and predicting are not counted.
        details: what it chose, as plain values.

    """

    valid: Floats
    test: Floats
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BoardMethod(ABC):
    """A row of the board. Every field is a setting, and the text of all of them is part of the key of its results.

    Args:
        name: without spaces, as options of the command line name it.

    """

    name: str

    # A method without randomness is run with one seed.
    deterministic: ClassVar[bool] = False
    # Libraries that it imports.
    libraries: ClassVar[tuple[str, ...]] = ()
    # About how much longer it takes than boosted trees that stop early: long work begins first.
    cost: ClassVar[float] = 1.0

    @abstractmethod
    def fit_predict(self, data: TableSplit, seed: int, given: Mapping[str, Any] = NOTHING) -> FitResult:
        """Learn from the training rows, choose by the validation rows, and predict validation and test rows.

        Args:
            data: the table.
            seed: of everything random.
            given: what `taken_from` takes from an earlier result, where there is one.

        """

    def needs(self, seed: int) -> tuple[str, int] | None:
        """The method and the seed whose result on the same table must be there first; None where nothing must."""
        return None

    def taken_from(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """What this method takes from the result that it needs, as plain values, which are part of the key."""
        return {}

    def missing(self) -> str | None:
        """Why the method cannot run here, or None where it can."""
        try:
            require(*self.libraries)
        except ModuleNotFoundError as error:
            return str(error)
        return None

    @property
    def version(self) -> int:
        """Part of the key of its results: a change of what the method computes, other than of a setting, raises it."""
        return 1

    @property
    def settings(self) -> str:
        """The text of all settings."""
        return repr(self)


class Stopwatch:
    """Seconds that the `with` blocks of `running` have taken together.

    >>> watch = Stopwatch()
    >>> with watch.running():
    ...     pass
    >>> watch.seconds >= 0.0
    True
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of this block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began
