"""How many steps a method needs until it is nearly as good as it gets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from transun.training.optimisers import Adam
from transun_paper.lab.boards import Board
from transun_paper.lab.methods import Method
from transun_paper.lab.protocol import Study
from transun_paper.lab.run import Run
from transun_paper.lab.store import Store

# One rate for all, so that a step is worth the same; looks an epoch; as near to the end as counts as there.
RATE, LOOKS, NEAR = 1e-3, 10, 1.02
METHODS = ("AutoSUN", "MSE", "LogMSE", "Gamma")


def convergence_studies(board: Board, keys: Mapping[str, str]) -> dict[tuple[str, str], Study]:
    """Trainings to the last epoch with many looks, by data set and method."""
    methods = board.only(METHODS).methods
    return {(name, method.name): _study(board, keys[name], method) for name in board.datasets for method in methods}


def _study(board: Board, key: str, method: Method) -> Study:
    training = replace(board.protocol.training_for(key, Adam(RATE)), checks_per_epoch=LOOKS, patience=None)
    seeds = min(board.protocol.seeds, 2)
    return Study((Run(key, method.head, training, balanced=method.balanced),), tuple(range(seeds)))


def convergence_table(studies: Mapping[tuple[str, str], Study], store: Store) -> list[dict[str, Any]]:
    """Per data set and method: steps to 1.02 times the last validation NRMSE, mean and spread over seeds, and of all.

    An NRMSE at the end that is worse than on the way counts as it is: what overfits is near its end early.
    """
    rows = []
    for (name, method), study in studies.items():
        reports = [report for report in study.reports(store) if "failed" not in report]
        if reports:
            steps = [steps_to(report["looks"]) for report in reports]
            rows.append(
                {
                    "dataset": name,
                    "method": method,
                    "steps": fmean(steps),
                    "spread": stdev(steps) if len(steps) > 1 else 0.0,
                    "all": reports[0]["steps"],
                    "last": fmean(report["looks"][-1][1] for report in reports),
                }
            )
    return rows


def steps_to(looks: Sequence[Sequence[float]], near: float = NEAR) -> float:
    """The first step from which on a curve of looks (step, value) stays within `near` times its last value.

    >>> steps_to([(10, 5.0), (20, 1.01), (30, 1.5), (40, 1.01), (50, 1.0)])
    40
    """
    last = looks[-1][1]
    first = looks[-1][0]
    for step, value in reversed(looks):
        if value > near * last:
            break
        first = step
    return first
