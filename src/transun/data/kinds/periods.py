"""Periods that many rows share, such as days and years: which of them training knows, and the codes of new rows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from transun.data.kinds.graph import count

__all__ = ["MEANING", "ascending", "period_codes", "period_codes_in_graph", "recurring_periods"]

# Fewer rows say too little about their period to learn a vector from.
_FEWEST_ROWS = 10
# Five years of days. Every known period is compared with every row that is served, so older ones are given up.
_MOST = 2_000
MEANING = "the code of a period that training knows, in order, from 1; 0 for any other and for a missing one"


def recurring_periods(periods: np.ndarray) -> tuple[float, ...]:
    """The periods that enough training rows have, in ascending order; of more than 2,000 the last ones.

    Args:
        periods: of each row (n,), NaN for missing.

    >>> recurring_periods(np.array([2021.0] * 10 + [2022.0] * 9 + [2023.0] * 12 + [np.nan] * 20))
    (2021.0, 2023.0)

    """
    values, counts = np.unique(periods[np.isfinite(periods)], return_counts=True)
    return tuple(float(value) for value in values[counts >= _FEWEST_ROWS][-_MOST:])


def ascending(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Numbers that were learned, which must ascend; a `ValueError` names them.

    >>> ascending("edges of Buckets", (1, 2))
    (1.0, 2.0)
    """
    numbers = tuple(float(value) for value in values)
    if not all(low < high for low, high in pairwise(numbers)):
        raise ValueError(f"the {name} must ascend")
    return numbers


def period_codes(periods: np.ndarray, known: Sequence[float]) -> Tensor:
    """The code of each period (n,): its place among the known ones, from 1, and 0 for any other.

    >>> period_codes(np.array([2023.0, 2022.0, np.nan, 2021.0]), (2021.0, 2023.0)).tolist()
    [2, 0, 0, 1]
    """
    values = np.asarray(known, np.float64)
    at = np.searchsorted(values, periods).clip(max=len(values) - 1)
    return torch.from_numpy(np.where(values[at] == periods, at + 1, 0))


def period_codes_in_graph(periods: Tensor, known: Tensor) -> Tensor:
    """What `period_codes` does, in operations of torch; both tensors have one type.

    >>> period_codes_in_graph(torch.tensor([2023, 2022, 2021]), torch.tensor([2021, 2023])).tolist()
    [2, 0, 1]
    """
    up_to = count(periods.unsqueeze(-1) >= known)
    return torch.where(known[(up_to - 1).clamp(min=0)] == periods, up_to, 0)
