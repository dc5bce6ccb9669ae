"""What a leaderboard is of: methods, data sets and the protocol they meet under."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.methods import METHODS, Method
from transun_paper.lab.protocol import ADAM, SGDS, Budget, Protocol, Study
from transun_paper.lab.run import lab_recipe
from transun_paper.lab.sources import freeze_public


def _named(name: str, known: Mapping[str, Any], what: str) -> Any:
    if name not in known:
        raise ValueError(f"the leaderboard has no {what} {name!r}; it has {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class Board:
    """Which methods on which rows by which protocol.

    Args:
        protocol: how methods are tuned.
        methods: the rows.
        datasets: names of public data sets.
        rows: a data set's rows at most, by name; those not named keep all.

    """

    protocol: Protocol
    methods: tuple[Method, ...] = METHODS
    datasets: tuple[str, ...] = PUBLIC
    rows: Mapping[str, int] = field(default_factory=dict)

    def only(self, methods: Iterable[str] = (), datasets: Iterable[str] = ()) -> "Board":
        """Some rows or columns of it; nothing named keeps all."""
        chosen = [_named(name, {method.name: method for method in self.methods}, "method") for name in methods]
        some = [_named(name, {name: name for name in self.datasets}, "data set") for name in datasets]
        return replace(self, methods=tuple(chosen) or self.methods, datasets=tuple(some) or self.datasets)

    def freeze(self, cache: Path) -> dict[str, str]:
        """Key by name of its data sets, encoded where they were not yet."""
        return freeze_public(cache, self.datasets, self.rows)

    def studies(self, keys: Mapping[str, str]) -> dict[tuple[str, str], Study]:
        """What has to be run, by data set and method."""
        return {
            (name, method.name): self.protocol.study(
                keys[name], method.head, method.correction, balanced=method.balanced
            )
            for name in self.datasets
            for method in self.methods
        }


def plan(boards: Iterable[Board], cache: Path, file: Path) -> int:
    """Write the frozen data and a list of studies for `transun_paper.lab.worker`; how many there are."""
    lines: list[str] = []
    for board in boards:
        lines += [study.text for study in board.studies(board.freeze(cache)).values()]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


# Large data sets cap what the whole costs: rows of globo, epochs of both.
_BUDGETS = {
    "kuairand": Budget(1024, 4),
    "globo": Budget(2048, 4),
    "online_retail": Budget(256, 12),
    "lastfm": Budget(512, 8),
    "eu_health": Budget(1024, 12),
    "movietweetings": Budget(512, 8),
}
FULL = Board(Protocol(ADAM, budgets=_BUDGETS), rows={"globo": 150_000})
QUICK = Board(
    Protocol(ADAM[1:2], seeds=2, training=lab_recipe(patience=1), otherwise=Budget(128, 2)),
    rows=dict.fromkeys(PUBLIC, 3_000),
)
# The same data and seeds by SGD, for the methods that the paper's argument is about.
BY_SGD = replace(FULL, protocol=replace(FULL.protocol, optimisers=SGDS)).only(["MSE", "LogMSE", "Gamma", "LogSUN"])
