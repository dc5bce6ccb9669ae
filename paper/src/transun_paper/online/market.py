"""A market whose truth is known: users visit, see ranked items, click, buy, and pay an amount of the order log."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transun.data import Dataset, OrderLog, hashing
from transun.support.arrays import Floats

__all__ = ["Market", "Score", "UserTotals", "Visits"]

Features = dict[str, Tensor]
Score = Callable[[Features], Tensor]
"""The predicted amount of an order, (n,), from the features of n rows."""

# Visits that are computed at a time: the memory of a simulation does not grow with the number of visits.
_CHUNK = 1 << 14
# Row numbers of the log from which visits and candidates are drawn; orders to train on come before them.
_VISITS, _CANDIDATES = 1 << 40, 1 << 41
_PERIOD = 1 << 36


@dataclass(frozen=True)
class Visits:
    """Some visits: user (v,); of v · c candidates the features, P(click) if seen, and P(order) if clicked."""

    user: Tensor
    x: Features
    click: Tensor
    buy: Tensor


@dataclass
class UserTotals:
    """Sums by user over a period: order value, impressions, and the value that a model predicted for them."""

    gmv: Floats
    impressions: Floats
    predicted: Floats


@dataclass(frozen=True)
class Market:
    """Users and items of an order log, and what users do with a ranking.

    A visit is a user at an hour of a weekday. Of `candidates` items that a retrieval would propose, the `shown` with
    the largest P(click) · P(order | click) · predicted amount are shown, best first. The item at position r = 0, 1, …
    is seen with probability (1 + r)^(-1/2), so that it matters who is first; what is seen is clicked with

        P(click) = 0.1 + 0.4·affinity(user, item)                              affinity, quality ∈ [0, 1]
        P(order | click) = min(0.35·exp(-(log_price - 3)/2)·(½ + quality(item)), 0.9)

    and the amount of an order is that of the log. All rankings use the true probabilities, so that they differ by the
    predicted amount alone.

    Args:
        log: the order log, without history.
        candidates: items a visit chooses from; one item may be among them twice.
        shown: items that are shown.
        noise: deviation of ln y, the same for all orders; None keeps that of the log, which differs by user and item.

    """

    log: OrderLog
    candidates: int = 10
    shown: int = 5
    noise: float | None = None

    def __post_init__(self) -> None:
        if self.log.history:
            raise ValueError("a market needs a log without history: OrderLog(history=0)")
        if not 1 <= self.shown <= self.candidates:
            raise ValueError(f"shown={self.shown} must lie in 1..{self.candidates}, the candidates of a visit")

    def orders(self, seed: int, columns: Sequence[str]) -> Dataset:
        """The orders of the log with amounts drawn anew, to train on; a model sees these columns."""
        x, _, _ = self.log.chunk(0, self.log.orders)
        y = self.amounts(x, torch.Generator().manual_seed(seed))
        return Dataset({name: x[name] for name in columns}, y)

    def expected(self, x: Features) -> Tensor:
        """E[y|x] of an order."""
        if self.noise is None:
            return self.log.expected(x)
        return self.log.geometric(x) * ((1.0 - self.log.zero_share) * math.exp(0.5 * self.noise**2))

    def amounts(self, x: Features, generator: torch.Generator) -> Tensor:
        """An amount for each row: exp(m + σε), or 0 where the order is returned."""
        centre = self.log.geometric(x)
        spread = 2.0 * torch.log(self.expected(x) / centre / (1.0 - self.log.zero_share))
        draws = torch.randn(len(centre), generator=generator) * spread.clamp_min(0.0).sqrt()
        kept = torch.rand(len(centre), generator=generator) >= self.log.zero_share
        return centre * draws.exp() * kept

    def visits(self, period: int, count: int) -> Iterator[Visits]:
        """The visits of a period, in chunks; another period has other visits of the same users."""
        for first in range(0, count, _CHUNK):
            numbers = torch.arange(first, min(first + _CHUNK, count)) + period * _PERIOD
            yield self._visits(numbers)

    def _visits(self, numbers: Tensor) -> Visits:
        visit, _, _ = self.log.rows(numbers + _VISITS)
        slots = numbers[:, None] * self.candidates + torch.arange(self.candidates)
        proposed, _, _ = self.log.rows(slots.reshape(-1) + _CANDIDATES)
        x = {name: visit[name].repeat_interleave(self.candidates) for name in ("user", "hour", "weekday")}
        x |= {name: proposed[name] for name in ("item", "log_price")}
        affinity = hashing.uniform(x["user"] * self.log.items + x["item"], self.log.seed, "market.affinity")
        quality = hashing.uniform(x["item"], self.log.seed, "market.quality")
        buy = 0.35 * torch.exp(-0.5 * (x["log_price"] - 3.0)) * (0.5 + quality)
        return Visits(visit["user"], x, (0.1 + 0.4 * affinity).float(), buy.clamp_max(0.9).float())

    def ranked(self, visits: Visits, amount: Tensor) -> Tensor:
        """Numbers of the candidates that are shown, (v, shown), best first, where `amount` is predicted (v · c,)."""
        score = (visits.click * visits.buy * amount).view(-1, self.candidates)
        best = score.topk(self.shown, dim=1).indices
        return best + torch.arange(len(score))[:, None] * self.candidates

    def seen(self) -> Tensor:
        """The probability that a user looks at a position, (shown,)."""
        return (1.0 + torch.arange(self.shown)) ** -0.5

    def value(self, visits: Visits, shown: Tensor) -> Tensor:
        """The expected order value of the shown items of each visit, (v,): the truth about a ranking."""
        x = {name: column[shown.reshape(-1)] for name, column in visits.x.items()}
        worth = self.expected(x) * visits.click[shown.reshape(-1)] * visits.buy[shown.reshape(-1)]
        return (worth.view(shown.shape) * self.seen()).double().sum(1)

    def serve(
        self, period: int, count: int, scores: dict[int, Score], arm: Tensor, model: Score, seed: int
    ) -> UserTotals:
        """Serve the visits of a period and draw what users buy; sums by user.

        Args:
            period: number of the period.
            count: its visits.
            scores: the predicted amounts that each arm ranks by, by number of the arm.
            arm: (users,) arm of every user.
            model: predicts the amounts of what was shown, for `UserTotals.predicted`.
            seed: of the purchases.

        """
        users = self.log.users
        totals = UserTotals(*(np.zeros(users) for _ in range(3)))
        generator = torch.Generator().manual_seed(seed)
        for visits in self.visits(period, count):
            shown = torch.empty((len(visits.user), self.shown), dtype=torch.int64)
            for number, score in scores.items():
                mine = torch.nonzero(arm[visits.user] == number).flatten()
                if len(mine):
                    part = self._only(visits, mine)
                    local = self.ranked(part, score(part.x))
                    # From numbers among the candidates of the part to numbers among all.
                    shown[mine] = (
                        local - torch.arange(len(mine))[:, None] * self.candidates + mine[:, None] * self.candidates
                    )
            flat = shown.reshape(-1)
            x = {name: column[flat] for name, column in visits.x.items()}
            chance = visits.click[flat] * visits.buy[flat] * self.seen().repeat(len(shown))
            bought = torch.rand(len(chance), generator=generator) < chance
            value = torch.zeros(len(chance))
            value[bought] = self.amounts({name: column[bought] for name, column in x.items()}, generator)
            user = x["user"].numpy()
            totals.gmv += np.bincount(user, value.double().numpy(), users)
            totals.impressions += np.bincount(user, minlength=users)
            totals.predicted += np.bincount(user, (chance * model(x)).double().numpy(), users)
        return totals

    def _only(self, visits: Visits, mine: Tensor) -> Visits:
        rows = (mine[:, None] * self.candidates + torch.arange(self.candidates)).reshape(-1)
        x = {name: column[rows] for name, column in visits.x.items()}
        return Visits(visits.user[mine], x, visits.click[rows], visits.buy[rows])
