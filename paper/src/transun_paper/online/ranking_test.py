"""One simulated A/B test of rankings: three heads are trained, serve three arms, and the product analyses the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transun.backbones import EmbeddingMLP
from transun.data import Dataset, OrderLog, hashing
from transun.experiments import LogColumns, abtest, plan_abtest
from transun.experiments.effect import Effect
from transun.heads import Head, LogMAE, LogMSE, LogSUN
from transun.models.network import Model
from transun.training import Adam, Recipe, fit, predict
from transun_paper.lab.computation import Computation
from transun_paper.online.market import Features, Market, Score, UserTotals

__all__ = [
    "ARMS",
    "PAIRS",
    "SCENARIOS",
    "Scenario",
    "assign_arms",
    "computation",
    "rank_by_arm",
    "train_scores",
]

ARMS: dict[str, Head] = {"LogSUN": LogSUN(shared=1), "LogMAE": LogMAE(), "LogMSE": LogMSE()}
PAIRS = (("LogSUN", "LogMAE"), ("LogSUN", "LogMSE"))
"""New arm and control of the tests."""

_NUMBERS = {name: number for number, name in enumerate(ARMS)}
# What a model sees. It does not see the user: at a few orders each, a table of users learns noise.
_COLUMNS = ("item", "log_price", "hour", "weekday")
_BEFORE, _DURING, _TRUTH = 1, 2, 3
# Visits that the true gain is computed from, at most; all are ranked by every head, so that their noise cancels.
_TRUTH_VISITS = 40_000
_SERVING_BATCH = 1 << 15


@dataclass(frozen=True)
class Scenario:
    """A market and the shares of users in its arms.

    Args:
        title: what it is.
        zero_share: share of the orders that are returned.
        noise: deviation of ln y, the same for all orders; None lets it differ by user and item.
        shares: of LogSUN, LogMAE and LogMSE.

    """

    title: str
    zero_share: float
    noise: float | None
    shares: tuple[float, float, float]

    def market(self, arguments: Mapping[str, Any], seed: int) -> Market:
        """The market of this scenario, of the size that the arguments name."""
        sizes = {name: arguments[name] for name in ("orders", "users", "items")}
        log = OrderLog(**sizes, history=0, seed=seed, zero_share=self.zero_share)
        return Market(log, arguments["candidates"], arguments["shown"], self.noise)


SCENARIOS = {
    "product": Scenario("the noise of ln y differs by item and user", 0.0, None, (0.15, 0.20, 0.09)),
    "returns": Scenario("as before, and 30 % of the orders are returned", 0.3, None, (1.0, 1.0, 1.0)),
    "equal noise": Scenario("the noise of ln y is 0.8 for all orders", 0.0, 0.8, (1.0, 1.0, 1.0)),
}


def computation(scenario: str, repetition: int, sizes: Mapping[str, int]) -> Computation:
    """The test of a scenario with a seed."""
    return Computation("ranking test", {"scenario": scenario, "repetition": repetition, **sizes})


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Orders of all trainings and branches, and a tenth of what is ranked, since nothing is learned from it."""
    trained = arguments["orders"] * arguments["epochs"] * sum(1 + len(head.branches) for head in ARMS.values())
    return float(trained + 0.2 * arguments["visits"] * arguments["candidates"])


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train the heads, rank and serve by each, and test; the truth of every number beside it."""
    scenario, seed = SCENARIOS[arguments["scenario"]], arguments["repetition"]
    market = scenario.market(arguments, seed)
    scores = train_scores(market, arguments["epochs"], seed)
    arm = assign_arms(market.log, scenario.shares)
    before, during = (
        market.serve(period, arguments["visits"], arms, arm, scores["LogSUN"], 2 * seed + period)
        for period, arms in (
            (_BEFORE, {number: scores["LogMAE"] for number in _NUMBERS.values()}),
            (_DURING, rank_by_arm(scores)),
        )
    )
    true_values, same_order = _true_values(market, scores, min(arguments["visits"], _TRUTH_VISITS))
    return {
        "true_values": true_values,
        "same_order": same_order,
        "totals": _totals(market, scores),
        "tests": {f"{new} vs. {base}": _test(new, base, before, during, arm, true_values) for new, base in PAIRS},
        "impressions": float(before.impressions.sum() + during.impressions.sum()),
    }


def train_scores(market: Market, epochs: int, seed: int) -> dict[str, Score]:
    """The amount of an order as each head predicts it, trained on the orders of the market."""
    data = market.orders(seed, _COLUMNS)
    sizes = {name: size for name, size in market.log.sizes.items() if name in _COLUMNS}
    network = EmbeddingMLP(sizes, numeric=("log_price",), dim=8, hidden=(32, 16))
    scores: dict[str, Score] = {}
    for name, head in ARMS.items():
        model = Model(network, head, seed)
        fit(model, data, Recipe(epochs=epochs, batch_size=256, optimiser=Adam(1e-3), seed=seed), progress=False)
        scores[name] = _score_of(model)
    return scores


def _score_of(model: Model) -> Score:
    def score(x: Features) -> Tensor:
        rows = Dataset({name: x[name] for name in _COLUMNS}, torch.zeros(len(x["item"])))
        return predict(model, rows, batch_size=_SERVING_BATCH)

    return score


def assign_arms(log: OrderLog, shares: tuple[float, ...]) -> Tensor:
    """The arm of every user, by a hash of the user: the same at every visit, and independent of all else."""
    draw = hashing.uniform(torch.arange(log.users), log.seed, "market.arm")
    edges = torch.tensor(np.cumsum(shares)[:-1] / np.sum(shares), dtype=draw.dtype)
    return torch.searchsorted(edges, draw)


def rank_by_arm(scores: Mapping[str, Score]) -> dict[int, Score]:
    """What every arm ranks by in the test: the head that it is named after."""
    return {number: scores[name] for name, number in _NUMBERS.items()}


def _true_values(market: Market, scores: Mapping[str, Score], count: int) -> tuple[dict[str, float], bool]:
    """The expected order value of a visit under each ranking, and whether a factor changes the order of LogMSE."""
    rankings: dict[str, Score] = {**scores, "truth": market.expected, "price": lambda x: torch.exp(x["log_price"])}
    sums, visits_seen, same = dict.fromkeys(rankings, 0.0), 0, True
    for visits in market.visits(_TRUTH, count):
        visits_seen += len(visits.user)
        for name, score in rankings.items():
            sums[name] += float(market.value(visits, market.ranked(visits, score(visits.x))).sum())
        amount = scores["LogMSE"](visits.x)
        # A power of two is exact in floating point, so that no rounding decides.
        same &= torch.equal(market.ranked(visits, amount), market.ranked(visits, 2.0 * amount))
    return {name: total / visits_seen for name, total in sums.items()}, same


def _totals(market: Market, scores: Mapping[str, Score]) -> dict[str, float]:
    """Predicted total over the expected one, of orders like those of training."""
    x, _, _ = market.log.chunk(0, min(market.log.orders, 50_000))
    expected = market.expected(x).double().sum()
    return {name: float(score(x).double().sum() / expected) for name, score in scores.items()}


def _test(
    new: str, base: str, before: UserTotals, during: UserTotals, arm: Tensor, true_values: Mapping[str, float]
) -> dict[str, Any]:
    """The test of a pair of arms as the product makes it, with the plan that was made before."""
    chosen = np.isin(arm.numpy(), [_NUMBERS[new], _NUMBERS[base]])
    came = chosen & (during.impressions > 0)
    names = np.array(list(_NUMBERS))
    log = {
        "user": np.flatnonzero(came),
        "arm": names[arm.numpy()[came]],
        "gmv": during.gmv[came],
        "impressions": during.impressions[came],
        "before": before.gmv[came],
        "predicted": before.predicted[came],
    }
    columns = LogColumns("user", "gmv", "arm", "impressions", "before", "predicted")
    counts = {name: float((log["arm"] == name).sum()) for name in (new, base)}
    # Users are expected in the shares in which they were assigned: who does not come is missing equally in all arms.
    shares = {name: float((arm.numpy() == _NUMBERS[name]).sum()) for name in (new, base)}
    result = abtest(log, columns, control=base, shares=shares)
    gain = true_values[new] / true_values[base] - 1.0
    past = {"user": np.flatnonzero(chosen), "gmv": before.gmv[chosen], "earlier": before.predicted[chosen]}
    plan = plan_abtest(past, LogColumns("user", "gmv", predicted="earlier"), gain, ratio=counts[new] / counts[base])[0]
    return {
        "users": sum(counts.values()),
        "gain": gain,
        "power": plan.power,
        "users_needed": plan.users_needed,
        "effects": [_plain(effect) for effect in result.effects],
        "explained": {covariate.name: covariate.explained for covariate in result.covariates},
        "sample_ratio": result.sample_ratio,
    }


def _plain(effect: Effect) -> dict[str, Any]:
    names = ("outcome", "how", "p_value", "error")
    change = {"change": effect.change.value, "low": effect.change.low, "high": effect.change.high}
    return {name: getattr(effect, name) for name in names} | change
