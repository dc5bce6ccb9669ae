"""What a leaderboard compares: methods, data sets and the protocol of tuning and training."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transun.training.optimisers import Adam
from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.methods import METHODS, Method
from transun_paper.lab.protocol import ADAM, FIRST, SGDS, Budget, Study, TuningProtocol
from transun_paper.lab.run import lab_recipe
from transun_paper.lab.sources import encode_public


def _named(name: str, known: Mapping[str, Any], what: str) -> Any:
    if name not in known:
        raise ValueError(f"the leaderboard has no {what} {name!r}; it has {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class LeaderboardPlan:
    """Which methods are compared, on which rows, by which protocol.

    Args:
        protocol: how methods are tuned.
        methods: the rows of the tables.
        datasets: names of public data sets.
        rows: how many rows of a data set are used at most, by its name; other data sets are used whole.

    """

    protocol: TuningProtocol
    methods: tuple[Method, ...] = METHODS
    datasets: tuple[str, ...] = PUBLIC
    rows: Mapping[str, int] = field(default_factory=dict)

    def only(self, methods: Iterable[str] = (), datasets: Iterable[str] = ()) -> "LeaderboardPlan":
        """The board of some methods and data sets; where none is named, of all."""
        chosen = [_named(name, {method.name: method for method in self.methods}, "method") for name in methods]
        some = [_named(name, {name: name for name in self.datasets}, "data set") for name in datasets]
        return replace(self, methods=tuple(chosen) or self.methods, datasets=tuple(some) or self.datasets)

    def without_methods(self) -> "LeaderboardPlan":
        """The same data sets without any network, for tables of other methods alone."""
        return replace(self, methods=())

    def encode(self, cache: Path) -> dict[str, str]:
        """Cache keys of its data sets by name; they are encoded where they were not yet."""
        return encode_public(cache, self.datasets, self.rows)

    def studies(self, keys: Mapping[str, str]) -> dict[tuple[str, str], Study]:
        """The studies that the board needs, by data set and method."""
        return {
            (name, method.name): self.protocol.study(
                keys[name],
                method.head,
                method.correction,
                balanced=method.balanced,
                fused=method.fused,
                finish=method.finish,
            )
            for name in self.datasets
            for method in self.methods
        }


# The large data sets decide what the whole board costs: fewer rows of globo, fewer epochs of both.
_BUDGETS = {
    "kuairand": Budget(1024, 4),
    "globo": Budget(2048, 4),
    "online_retail": Budget(256, 12),
    "lastfm": Budget(512, 8),
    "eu_health": Budget(1024, 12),
    "movietweetings": Budget(512, 8),
}
FULL_BOARD = LeaderboardPlan(TuningProtocol(ADAM, FIRST, budgets=_BUDGETS), rows={"globo": 150_000})
QUICK_BOARD = LeaderboardPlan(
    TuningProtocol((Adam(1e-3),), None, seeds=2, training=lab_recipe(patience=1), otherwise=Budget(128, 2)),
    rows=dict.fromkeys(PUBLIC, 3_000),
)
# The same data and seeds by SGD, for the methods that the paper's argument is about.
SGD_BOARD = replace(FULL_BOARD, protocol=replace(FULL_BOARD.protocol, optimisers=SGDS)).only(
    ["MSE", "LogMSE", "Gamma", "LogSUN"]
)
