"""Shares of predictions in their mean: by squared errors for large amounts, by the order of rows for small ones."""

import math
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

import torch
from torch import Tensor

from transun.data import hashing
from transun.heads.blend import by_level, small_factor
from transun.metrics import XAUC

__all__ = ["choose_shares", "choose_small_weights", "weighted_mean"]

# A part that counts for less is not worth what its predictions cost.
_LEAST_SHARE = 0.05
# Samples of the rows whose best shares are averaged: their number, their share of the rows, and their least rows.
_SAMPLES, _SAMPLED, _FEWEST_SAMPLED = 100, 0.1, 60
# Shares of small amounts are multiples of one over this, and are compared by at most so many rows.
_STEPS, _ORDERED_ROWS = 4, 20_000
# What a better order may cost, as a part of the root mean squared error, and how much better it has to be, in XAUC.
_COST_OF_ORDER, _WORTH_ORDERING = 1e-3, 2e-3


def choose_shares(preds: Tensor, y: Tensor, weight: Tensor | None = None) -> list[float]:
    """Shares of the convex combination of predictions (n, k) with the least squared error of y (n,).

    On heavy tails a few rows decide the least error. So the shares are averages, over many random tenths of the rows,
    of the best shares of each tenth, and parts between which the rows cannot decide get similar shares. One huge error
    is in one tenth of ten: it decides a tenth of the average, and not all of it. A part with a share below a twentieth
    is left out, because its predictions cost as much as those of the others.

    Args:
        preds: predictions (n, k), of rows that no weight was learned from.
        y: their targets.
        weight: what each row counts.

    >>> y = torch.arange(10_000.0)
    >>> [round(share, 2) for share in choose_shares(torch.stack([y + 1.0, y - 1.0, y + 500.0], 1), y)]
    [0.5, 0.5, 0.0]

    """
    errors = preds.double() - y.double().unsqueeze(1)
    # In a unit of their own, so that products neither overflow nor vanish.
    errors = errors / errors.abs().max().clamp(min=1e-300)
    rows = torch.arange(len(y))
    total = torch.zeros(preds.shape[1], dtype=torch.float64)
    share = min(max(_SAMPLED, _FEWEST_SAMPLED / len(y)), 0.5)
    for number in range(_SAMPLES):
        counts = (hashing.uniform(rows, number, "mixing.sample") < share).double()
        if weight is not None:
            counts = counts * weight.double()
        total += _best_shares(errors.t() @ (counts.unsqueeze(1) * errors))
    shares = total / total.sum()
    shares = torch.where(shares < _LEAST_SHARE, 0.0, shares)
    return [float(share) for share in (shares / shares.sum())]


def choose_small_weights(
    preds: Tensor, large: Sequence[float], level: float, y: Tensor, weight: Tensor | None = None
) -> list[float]:
    """Weights for small amounts, see `Blend`, that order rows best and raise the error by a thousandth at most.

    Squared errors are those of the largest amounts, and say nothing of the order of the others. So mixtures whose
    shares are quarters are tried, and the shares of large amounts. Those whose root mean squared error is a thousandth
    above that of the shares of large amounts alone, or less, compete by XAUC. Of those that order about as well as the
    best of them, the one of least error is taken.

    Args:
        preds: predictions (n, k), of rows that no weight was learned from.
        large: the shares of large amounts (k,).
        level: the amount from which on these shares count more.
        y: the targets.
        weight: what each row counts.

    Returns:
        The weights, times the factor that leaves these rows the total of the shares of large amounts.

    >>> y = torch.arange(100.0)
    >>> preds = torch.stack([torch.full((100,), 49.5), y], 1)  # the second alone knows the order
    >>> choose_small_weights(preds, [1.0, 0.0], 49.5, y)
    [0.0, 1.0]

    """
    # In units of the level, so that squares neither overflow nor vanish.
    preds, target = preds.double() / level, y.double() / level
    counts = torch.ones_like(target) if weight is None else weight.double()
    amount = weighted_mean(preds, large)
    # Every so many rows; the order of the table may be one of time.
    some = slice(None, None, math.ceil(len(y) / _ORDERED_ROWS))

    def error(pred: Tensor) -> float:
        return float((counts * (pred - target) ** 2).sum().sqrt())

    trials: list[tuple[float, float, list[float]]] = []
    parts = range(preds.shape[1])
    quarters = combinations_with_replacement(parts, _STEPS)
    for shares in [large, *([chosen.count(part) / _STEPS for part in parts] for chosen in quarters)]:
        small = weighted_mean(preds, shares)
        factor = small_factor(amount, small, 1.0, weight)
        mixed = by_level(amount, factor * small, 1.0)
        order = XAUC(mixed[some], target[some], counts[some])
        # Without two different targets there is no order, and its value is NaN.
        trials.append((-1.0 if math.isnan(order) else order, error(mixed), [factor * share for share in shares]))
    allowed = [trial for trial in trials if trial[1] <= (1.0 + _COST_OF_ORDER) * error(amount)]
    # The shares of large amounts are always allowed but for rounding, where there is no error at all.
    best = max((order for order, _, _ in allowed), default=-1.0)
    equals = [trial for trial in allowed if trial[0] >= best - _WORTH_ORDERING] or trials[:1]
    return min(equals, key=lambda trial: trial[1])[2]


def _best_shares(products: Tensor) -> Tensor:
    """The shares w ≥ 0 of sum 1 that minimise w'Gw for the matrix G (k, k) of products of errors.

    With few parts every subset can be tried: within a subset the best w is G⁻¹1, scaled to sum 1.
    """
    k = len(products)
    # Equal predictions make G singular; a little on the diagonal shares equally between them.
    products = products + 1e-9 * products.diagonal().mean().clamp(min=1e-300) * torch.eye(k, dtype=products.dtype)
    best, least = torch.full((k,), 1.0 / k, dtype=products.dtype), math.inf
    for size in range(1, k + 1):
        for subset in map(list, combinations(range(k), size)):
            inner = products[subset][:, subset]
            part = torch.linalg.solve(inner, torch.ones(size, dtype=products.dtype))
            part = part / part.sum()
            value = float(part @ inner @ part)
            if bool((part >= 0.0).all()) and value < least:
                least, best = value, torch.zeros(k, dtype=products.dtype)
                best[subset] = part
    return best


def weighted_mean(preds: Tensor, shares: Sequence[float]) -> Tensor:
    """The sum of predictions (n, k), each times its share.

    >>> weighted_mean(torch.tensor([[2.0, 4.0]]), [0.5, 0.25]).tolist()
    [2.0]
    """
    return preds @ torch.tensor(shares, dtype=preds.dtype)
