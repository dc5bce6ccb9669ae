"""The leaderboard: every method on every public data set, by one protocol, the best marked by a test."""

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from transun.metrics import MRE, NDCG, NMAE, NRMSE, TRE, XAUC, Metric, TopNDCG, TopXAUC
from transun_paper.lab.boards import LeaderboardPlan
from transun_paper.lab.compare import SIGNIFICANCE, Reports, difference, finished_seeds, mean_with_error
from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path, describe
from transun_paper.lab.measures import TEST_METRICS, measure_predictions
from transun_paper.lab.methods import ExternalMethod
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store, rounded

# The metrics that methods are ranked by. STRE is shown beside them with its interval, and TRE is least for the best.
RANKED_BY: tuple[Metric, ...] = (TRE, MRE, NRMSE, NMAE, XAUC, TopXAUC(), NDCG, TopNDCG())


def collect(
    board: LeaderboardPlan, keys: Mapping[str, str], store: Store, cache: Path, external: Sequence[ExternalMethod] = ()
) -> dict[str, Any]:
    """The leaderboard from reports in the store, as plain values; methods without reports are left out.

    Args:
        board: the methods, data sets and protocol.
        keys: cache keys of its data sets by name.
        store: where the reports are.
        cache: folder of encoded data.
        external: further rows. Where the store lacks their results, this call computes them in this process.

    """
    studies = board.studies(keys)
    tables = []
    for name in board.datasets:
        about = describe(cache_path(cache, keys[name]))
        reports = {method.name: studies[name, method.name].reports(store) for method in board.methods}
        entries = [
            _entry(method, seeds) | _rate(studies[name, method], store) for method, seeds in reports.items() if seeds
        ]
        for row in external:
            reports[row.name] = external_reports(row, keys[name], store, cache)
            entry = _entry(row.name, reports[row.name])
            entries.append(entry | {"rate": None, "at_the_end": False, "diverged_rates": []})
        _mark_best(entries, reports)
        tables.append({"dataset": name, "rows": about["sizes"], "split": about["notes"], "entries": entries})
    return {
        "protocol": board.protocol.statement,
        "level": SIGNIFICANCE,
        "columns": [metric.name for metric in RANKED_BY],
        "tables": rounded(tables, 5),
    }


def external_reports(row: ExternalMethod, key: str, store: Store, cache: Path) -> list[dict[str, Any]]:
    """Reports of a method that is not a network of ours, one per seed, kept in the store under its text."""
    loaded: list[EncodedDataset] = []

    def report(seed: int) -> dict[str, Any]:
        if not loaded:
            loaded.append(EncodedDataset.load(cache_path(cache, key)))
        began = time.perf_counter()
        predictions = row.predict(loaded[0], seed)
        seconds = time.perf_counter() - began
        measures: dict[str, Any] = rounded(measure_predictions(predictions, loaded[0]) | {"seconds": seconds})
        return measures

    return [store.run(f"{row.text} on {key} with seed {seed}", partial(report, seed)) for seed in range(row.seeds)]


def _entry(name: str, reports: Reports) -> dict[str, Any]:
    """A row of one table: means over seeds with their errors, and the value of every seed."""
    failed = [report["failed"] for report in reports if "failed" in report]
    if len(failed) == len(reports):
        return {"method": name, "failed": failed[0]}
    diverged = {"diverged": f"{len(failed)} of {len(reports)} seeds: {failed[0]}"} if failed else {}
    reports = [report for report in reports if "failed" not in report]
    known = _known(reports, "metrics")
    names = [metric.name for metric in TEST_METRICS if metric.name in known]
    means = {metric: mean_with_error(reports, metric) for metric in names}
    return diverged | {
        "method": name,
        "metrics": {metric: value for metric, (value, _) in means.items()},
        "errors": {metric: error for metric, (_, error) in means.items()},
        "seeds": {metric: [report["metrics"][metric] for report in reports] for metric in names},
        "train": {metric: fmean(report["train"][metric] for report in reports) for metric in _known(reports, "train")},
        **{quantity: _mean(reports, quantity) for quantity in ("bytes", "epochs")},
    }


def _known(reports: Reports, part: str) -> list[str]:
    """The metrics that have a number in every report.

    The signed TRE of a method that predicts 0 for every row is -∞, which JSON cannot hold.
    """
    return [name for name in reports[0][part] if all(report[part][name] is not None for report in reports)]


def _rate(study: Study, store: Store) -> dict[str, Any]:
    return {
        "rate": study.chosen(store).training.optimiser.rate,
        "at_the_end": study.at_the_end(store),
        "diverged_rates": study.diverged(store),
    }


def _mean(reports: Reports, quantity: str) -> float | None:
    return fmean(report[quantity] for report in reports) if quantity in reports[0] else None


def _mark_best(entries: list[dict[str, Any]], reports: Mapping[str, Reports]) -> None:
    """Write into each entry which of its metrics are the best of the table, and which are within noise of the best."""
    able = [entry for entry in entries if "failed" not in entry]
    for entry in able:
        entry["best"], entry["near"], entry["p"] = [], [], {}
    for metric in RANKED_BY:
        measured = [entry for entry in able if metric.name in entry["metrics"]]
        if not measured:
            continue
        best = min(measured, key=lambda entry: _badness(metric, entry["metrics"][metric.name]))
        best["best"].append(metric.name)
        for entry in measured:
            both = finished_seeds(reports[entry["method"]], reports[best["method"]])
            if entry is not best and both[0]:
                gap = difference(*both, metric.name)
                entry["p"][metric.name] = gap.p
                entry["near"] += [metric.name] if gap.p > SIGNIFICANCE else []


def _badness(metric: Metric, value: float) -> float:
    return math.inf if math.isnan(value) else metric.badness(value)
