"""Rows of a total: their predictions, weights, units and, where they are labelled, targets."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transun.data.magnitude import refuse_vanishing, require_squarable
from transun.support.arrays import Flags, Floats, Integers, distinct, refuse_reordered, to_floats

__all__ = ["Rows", "UnitSums"]


@dataclass(frozen=True)
class UnitSums:
    """Sums by unit, (units,): of the weights w, of wŷ and of wy; y is 0 where it is not known."""

    weight: Floats
    pred: Floats
    y: Floats


@dataclass(frozen=True)
class Rows:
    """Rows whose total is wanted, or labelled rows that it is learned from.

    Args:
        pred: predictions (n,).
        y: targets (n,), or None where nobody knows them.
        weight: how often each row counts (n,).
        unit: the number of each row's unit (n,), or None where every row is a unit of its own.

    """

    pred: Floats
    y: Floats | None
    weight: Floats
    unit: Integers | None = None

    @classmethod
    def of(cls, name: str, pred: Any, y: Any = None, weight: Any = None, unit: Any = None) -> "Rows":
        """Checked rows from arrays; `name` is what errors call them.

        >>> Rows.of("labelled", [1.0, 2.0], y=[1.0, float("nan")])
        Traceback (most recent call last):
        ValueError: the target of labelled row 1 is nan: leave out rows without one
        """
        refuse_reordered(pred=pred, y=y, weight=weight, cluster=unit)
        numbers = to_floats(pred, f"the prediction of {name} rows")
        if numbers.ndim != 1:
            raise ValueError(f"the predictions of {name} rows are an array of shape {numbers.shape}: give one a row")
        columns = {"prediction": numbers}
        if y is not None:
            columns["target"] = to_floats(y, f"the target of {name} rows")
        columns["weight"] = np.ones(len(numbers))
        if weight is not None:
            columns["weight"] = to_floats(weight, f"the weight of {name} rows")
        for what, values in columns.items():
            if values.shape != numbers.shape:
                raise ValueError(
                    f"there are {len(numbers):,} predictions of {name} rows and {what}s of shape {values.shape}"
                )
            wrong = np.flatnonzero(~np.isfinite(values))
            if len(wrong):
                raise ValueError(
                    f"the {what} of {name} row {wrong[0]} is {values[wrong[0]]}: leave out rows without one"
                )
        negative = np.flatnonzero(columns["weight"] < 0.0)
        if len(negative):
            row = negative[0]
            raise ValueError(f"the weight of {name} row {row} is {columns['weight'][row]:g}: use 0 to leave a row out")
        require_squarable(np.arange(len(numbers)), **columns)
        refuse_vanishing(
            **{f"{what} of {name} rows": values for what, values in columns.items() if what != "prediction"}
        )
        codes = None
        if unit is not None:
            units = np.asarray(unit)
            if units.shape != numbers.shape:
                raise ValueError(
                    f"there are {len(numbers):,} predictions of {name} rows and units of shape {units.shape}: give one "
                    "a row"
                )
            codes = distinct(units)[1]
        return cls(numbers, columns.get("target"), columns["weight"], codes)

    def __len__(self) -> int:
        return len(self.pred)

    def part(self, chosen: Flags) -> "Rows":
        """The rows of a mask (n,)."""
        return Rows(
            self.pred[chosen],
            None if self.y is None else self.y[chosen],
            self.weight[chosen],
            None if self.unit is None else self.unit[chosen],
        )

    def capped(self, cap: float) -> "Rows":
        """The rows with every amount above the cap counted as the cap."""
        return replace(self, pred=np.minimum(self.pred, cap), y=None if self.y is None else np.minimum(self.y, cap))

    def exceeds(self, cap: float) -> bool:
        """Whether a target is above the cap."""
        return self.y is not None and bool((self.y > cap).any())

    def repeated(self, key: np.ndarray) -> int:
        """How many rows with an amount have the key (n,) and the target of an earlier row; 0 where units are known.

        Rows that were given twice make an interval too narrow, since they are no news. Rows of one unit are counted as
        one anyway.

        >>> Rows.of("labelled", [1.0, 1.0, 2.0, 2.0], y=[5.0, 5.0, 0.0, 0.0]).repeated(np.array([7, 7, 8, 8]))
        1

        """
        if self.unit is not None or self.y is None:
            return 0
        some = self.y != 0.0  # nothing bought is nothing bought: such rows are alike by nature
        return int(some.sum()) - len(set(zip(key[some].tolist(), self.y[some].tolist(), strict=True)))

    def by_unit(self) -> UnitSums:
        """The sums over the rows of each unit; units of weight 0 are none."""
        y = np.zeros_like(self.pred) if self.y is None else self.y
        sums = np.stack([self.weight, self.weight * self.pred, self.weight * y])
        if self.unit is not None:
            codes = np.unique(self.unit, return_inverse=True)[1]
            sums = np.stack([np.bincount(codes, values) for values in sums])
        return UnitSums(*sums[:, sums[0] > 0.0])
