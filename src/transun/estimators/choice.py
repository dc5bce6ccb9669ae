"""The table that explains an automatic choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transun.estimators.mixing import judge, shares

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A candidate's judgement on held-out rows.

    Args:
        name: what it is.
        nrmse: root of its mean squared error, over the mean target.
        worse_by: its mean squared error over that of the best candidate, less one.
        standard_error: of `worse_by`, row by row against the best.
        total: predicted over actual total, before any balance.
        weight: what it counts in the result.

    """

    name: str
    nrmse: float
    worse_by: float
    standard_error: float
    total: float
    weight: float


@dataclass(frozen=True)
class Choice:
    """The candidates with their judgements, and those that were left out with the reason; prints as a table."""

    rows: Sequence[Row]
    skipped: Mapping[str, str]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        predictions: Array,
        skipped: Mapping[str, str],
        weights: Array,
        y: Array,
        weight: Array | None,
    ) -> "Choice":
        """From the out-of-fold predictions (n, candidates)."""
        verdicts = judge((predictions - y[:, None]) ** 2, weight)
        share = shares(len(y), weight)
        mean, best = float(share @ y), min(verdict.error for verdict in verdicts) or 1.0
        return cls(
            [
                Row(
                    name,
                    verdict.error**0.5 / abs(mean) if mean else verdict.error**0.5,
                    verdict.worse_by / best,
                    verdict.standard_error / best,
                    float(share @ pred) / mean if mean else float("nan"),
                    float(counts),
                )
                for name, verdict, counts, pred in zip(names, verdicts, weights, predictions.T, strict=True)
            ],
            dict(skipped),
        )

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{'candidate':{width}}   NRMSE   MSE above best   total   weight"]
        for row in self.rows:
            above = f"{row.worse_by:+.2%} ± {row.standard_error:.2%}"
            weight = f"{row.weight:.2f}" if row.weight else ""
            lines.append(f"{row.name:{width}}  {row.nrmse:6.4g}  {above:>15}  {row.total:6.3f}   {weight:>6}")
        return "\n".join([*lines, *(f"{name}: left out, {reason}" for name, reason in self.skipped.items())])
