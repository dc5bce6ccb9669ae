"""The leaderboard: every method on every public data set, by one protocol, the best marked by a test."""

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

import transun
from transun.metrics import MRE, NDCG, NMAE, NRMSE, TRE, XAUC, Metric, TopNDCG, TopXAUC
from transun_paper.lab.boards import Board
from transun_paper.lab.compare import Reports, difference, spread
from transun_paper.lab.encoded_dataset import Frozen, describe
from transun_paper.lab.measures import METRICS, assess
from transun_paper.lab.methods import Foreign
from transun_paper.lab.pool import Say, carry_out, to_stderr
from transun_paper.lab.protocol import Study
from transun_paper.lab.sources import cache_path
from transun_paper.lab.store import Store, rounded

# What is ranked. STRE is shown beside, with its interval; TRE is what is least for the best of them.
COLUMNS: tuple[Metric, ...] = (TRE, MRE, NRMSE, NMAE, XAUC, TopXAUC(), NDCG, TopNDCG())
# A method is within the noise of the best one unless a difference this large would be this rare.
LEVEL = 0.05


def run_board(
    board: Board,
    store: Store,
    cache: Path,
    jobs: int = 2,
    foreign: Sequence[Foreign] = (),
    say: Say = to_stderr,
) -> dict[str, Any]:
    """Do what is missing of a leaderboard and put it together; see `carry_out` and `collect`."""
    keys = board.freeze(cache)
    carry_out(board.studies(keys).values(), store, cache, jobs, say)
    return collect(board, keys, store, cache, foreign)


def collect(
    board: Board, keys: Mapping[str, str], store: Store, cache: Path, foreign: Sequence[Foreign] = ()
) -> dict[str, Any]:
    """The leaderboard from reports in the store, as plain values; what is missing there is left out.

    Args:
        board: what it is of.
        keys: keys of its data sets by name.
        store: where the reports are.
        cache: folder of frozen data.
        foreign: further rows. Those whose results the store lacks are computed here and now, in this process.

    """
    tuned = {place: (study, study.reports(store)) for place, study in board.studies(keys).items()}
    tables = []
    for name in board.datasets:
        about = describe(cache_path(cache, keys[name]))
        entries = [
            _entry(method.name, reports) | _rate(study, store)
            for method in board.methods
            for study, reports in [tuned[name, method.name]]
            if reports
        ]
        found = {method.name: tuned[name, method.name][1] for method in board.methods}
        for row in foreign:
            found[row.name] = foreign_reports(row, keys[name], store, cache)
            entries.append(_entry(row.name, found[row.name]) | {"rate": None, "at_the_end": False})
        _mark(entries, {method: reports for method, reports in found.items() if reports})
        tables.append({"dataset": name, "rows": about["sizes"], "split": about["notes"], "entries": entries})
    return {
        "version": transun.__version__,
        "torch": torch.__version__,
        "protocol": board.protocol.statement,
        "level": LEVEL,
        "columns": [metric.name for metric in COLUMNS],
        "tables": rounded(tables, 5),
    }


def foreign_reports(row: Foreign, key: str, store: Store, cache: Path) -> list[dict[str, Any]]:
    """Reports of a row that is not a network of ours, one per seed, kept in the store under its text."""
    loaded: list[Frozen] = []

    def report(seed: int) -> dict[str, Any]:
        if not loaded:
            loaded.append(Frozen.load(cache_path(cache, key)))
        began = time.perf_counter()
        predictions = row.predict(loaded[0], seed)
        seconds = time.perf_counter() - began
        found: dict[str, Any] = rounded(assess(predictions, loaded[0]) | {"seconds": seconds})
        return found

    return [store.run(f"{row.text} on {key} with seed {seed}", partial(report, seed)) for seed in range(row.seeds)]


def _entry(name: str, reports: Reports) -> dict[str, Any]:
    """A row of one table: means over seeds with their errors, and the value of every seed."""
    failed = next((report["failed"] for report in reports if "failed" in report), None)
    if failed is not None:
        return {"method": name, "failed": failed}
    names = [metric.name for metric in METRICS if metric.name in reports[0]["metrics"]]
    means = {name: spread(reports, name) for name in names}
    return {
        "method": name,
        "metrics": {metric: value for metric, (value, _) in means.items()},
        "errors": {metric: error for metric, (_, error) in means.items()},
        "seeds": {name: [report["metrics"][name] for report in reports] for name in names},
        "train": {metric: fmean(report["train"][metric] for report in reports) for metric in reports[0]["train"]},
        **{what: _mean(reports, what) for what in ("seconds", "bytes", "epochs")},
    }


def _rate(study: Study, store: Store) -> dict[str, Any]:
    return {"rate": study.chosen(store).training.optimiser.rate, "at_the_end": study.at_the_end(store)}


def _mean(reports: Reports, what: str) -> float | None:
    return fmean(report[what] for report in reports) if what in reports[0] else None


def _mark(entries: list[dict[str, Any]], found: Mapping[str, Reports]) -> None:
    """Write into each entry which of its metrics are the best of the table, and which are within noise of it."""
    able = [entry for entry in entries if "failed" not in entry]
    for entry in able:
        entry["best"], entry["near"], entry["p"] = [], [], {}
    for metric in COLUMNS:
        if not any(metric.name in entry["metrics"] for entry in able):
            continue
        best = min(able, key=lambda entry: _badness(metric, entry["metrics"][metric.name]))
        best["best"].append(metric.name)
        for entry in able:
            if entry is not best:
                gap = difference(found[entry["method"]], found[best["method"]], metric.name)
                entry["p"][metric.name] = gap.p
                entry["near"] += [metric.name] if gap.p > LEVEL else []


def _badness(metric: Metric, value: float) -> float:
    return math.inf if math.isnan(value) else metric.badness(value)
