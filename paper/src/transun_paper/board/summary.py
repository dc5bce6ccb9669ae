"""The report of the board: every method on every table, geometric means of ratios, claims, and where the default loses.

NRMSE of tables differ by a factor of fifty, so methods are compared by ratios and averaged by geometric means:
exp(mean over tables of ln(NRMSE / NRMSE of the other method)). Every ratio is paired: both methods are measured on the
same test rows and, where they have seeds, with the same seeds.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

import torch

import transun
from transun.support.extras import need
from transun_paper.board.methods import ABLATIONS, AUTOGLUON, CONSTANT, DEFAULT, METHODS, OURS, PREVIOUS, REFERENCE
from transun_paper.board.methods import RIVALS as RIVAL_METHODS
from transun_paper.board.run import Board, Cell
from transun_paper.board.tables import BOARD_TABLES, IDS, NUMBERS, UNSEEN
from transun_paper.lab.compare import Claim, Difference, Reports, difference, log_ratio, mean_with_error
from transun_paper.lab.store import Store, rounded

Results = Mapping[Cell, Reports]
"""Results by table and method, one per seed."""

RIVALS = tuple(method.name for method in RIVAL_METHODS)
# Ablations are no methods that anybody would choose between, so that no table's best is among them.
_COMPARED = tuple(method.name for method in (*RIVAL_METHODS, *OURS))
# Groups of tables that have a mean.
_AVERAGED = (NUMBERS, IDS, UNSEEN)
# What the board has to show.
_AIM, _AIM_AUTOGLUON, _SLACK, _ORDER, _HARM = 0.94, 0.98, 0.01, 0.005, 0.002
# A total is right if it is within so many standard errors of the actual one.
_RIGHT = 2.0


@dataclass(frozen=True)
class GeometricMean:
    """A geometric mean of ratios over tables.

    Args:
        value: the mean.
        error: its standard error by the noise of test rows and seeds, for these tables.
        low: the end of its 95 % interval if the tables are a sample of all tables, by Student's t; None for one table.
        high: the other end.
        tables: how many there are.

    """

    value: float
    error: float
    low: float | None
    high: float | None
    tables: int


def geometric_mean(ratios: Iterable[Difference]) -> GeometricMean:
    """The geometric mean of ratios, given as differences of logarithms with their errors.

    >>> mean = geometric_mean([Difference(math.log(0.5), 0.0, 0.0), Difference(math.log(2.0), 0.0, 0.0)])
    >>> mean.value, mean.error, mean.tables
    (1.0, 0.0, 2)
    """
    differences = list(ratios)
    logs, count = [ratio.value for ratio in differences], len(differences)
    centre = fmean(logs)
    error = math.sqrt(sum(ratio.error**2 for ratio in differences)) / count
    low = high = None
    if count > 1:
        half = float(need("scipy.special").stdtrit(count - 1, 0.975)) * stdev(logs) / math.sqrt(count)
        low, high = math.exp(centre - half), math.exp(centre + half)
    return GeometricMean(math.exp(centre), math.exp(centre) * error, low, high, count)


def nrmse_ratio(first: Reports, second: Reports) -> Difference:
    """ln of the ratio of two methods' NRMSE on the same test rows, paired by the seeds that both were run with."""
    return log_ratio(*common_seeds(first, second), "NRMSE")


def common_seeds(first: Reports, second: Reports) -> tuple[Reports, Reports]:
    """The results of the seeds that both have; a single result stands for every seed of the other side.

    >>> common_seeds([{"a": 0}], [{"b": 0}, {"b": 1}]), common_seeds([{}] * 5, [{}] * 3) == ([{}] * 3, [{}] * 3)
    (([{'a': 0}], [{'b': 0}, {'b': 1}]), True)
    """
    count = min(len(first), len(second))
    return (first, second) if count == 1 else (first[:count], second[:count])


def board_report(board: Board, store: Store, command: str) -> dict[str, Any]:
    """The report of everything that the store holds for a board."""
    everything = board.results(store)
    results = {cell: by_seed for cell, by_seed in everything.items() if "failed" not in by_seed[0]}
    failures = [
        {"table": table, "method": method, "failed": by_seed[0]["failed"]}
        for (table, method), by_seed in everything.items()
        if "failed" in by_seed[0]
    ]
    tables = [name for name in board.tables if any(table == name for table, _ in results)]
    report = {
        "command": command,
        "version": transun.__version__,
        "torch": torch.__version__,
        "rows": board.rows,
        "reference": REFERENCE,
        "default": DEFAULT,
        "rivals": list(RIVALS),
        "machines": _machines(results),
        "methods": [{"method": name, "settings": METHODS[name].settings} for name in _present(results)],
        "tables": [_describe(name, results) for name in tables],
        "entries": [_entry(table, method, results) for table, method in results],
        "averages": [entry for group in _AVERAGED for entry in _averages(_in_group(results, group), group, _COMPARED)],
        "ablations": ablations(results),
        "claims": [asdict(claim) for claim in board_claims(results)],
        "losses": losses(results),
        "failures": failures,
        "skipped": board.skipped(),
    }
    plain: dict[str, Any] = rounded(report, digits=6)
    return plain


def _machines(results: Results) -> dict[str, list[str]]:
    """The methods that were run on each machine; results from before machines were recorded are left out."""
    methods: dict[str, dict[str, None]] = {}
    for (_, method), by_seed in results.items():
        for result in by_seed:
            if "machine" in result:
                methods.setdefault(result["machine"], {})[method] = None
    return {machine: list(names) for machine, names in methods.items()}


def _present(results: Results) -> list[str]:
    return [name for name in METHODS if any(method == name for _, method in results)]


def _in_group(results: Results, group: str) -> Results:
    return {cell: by_seed for cell, by_seed in results.items() if BOARD_TABLES[cell[0]].group == group}


def _describe(name: str, results: Results) -> dict[str, Any]:
    table = BOARD_TABLES[name]
    rows = next(by_seed[0]["rows"] for (other, _), by_seed in results.items() if other == name)
    return {"table": name, "group": table.group, "target": table.target, "exposure": table.exposure, "rows": rows}


def best_of(table: str, results: Results, methods: Iterable[str] = _COMPARED) -> str | None:
    """The method of least NRMSE on a table, by the mean over seeds; None where none was run."""
    candidates = [method for method in methods if (table, method) in results]
    return min(candidates, key=lambda method: mean_with_error(results[table, method], "NRMSE")[0], default=None)


def _entry(table: str, method: str, results: Results) -> dict[str, Any]:
    by_seed = results[table, method]
    means = {name: mean_with_error(by_seed, name) for name in ("NRMSE", "PGR", "XAUC")}
    best, reference = best_of(table, results), results.get((table, REFERENCE))
    return {
        "table": table,
        "method": method,
        "seeds": len(by_seed),
        "metrics": {name: value for name, (value, _) in means.items()},
        "errors": {name: error for name, (_, error) in means.items()},
        "valid": fmean(result["valid"]["NRMSE"] for result in by_seed),
        "total": total_in_errors(by_seed),
        "to_reference": None if reference is None else asdict(nrmse_ratio(by_seed, reference)),
        "to_best": None if best is None else asdict(nrmse_ratio(by_seed, results[table, best])),
        "seconds": fmean(result["seconds"] for result in by_seed),
        "by_seed": [result["metrics"] | {"seconds": result["seconds"]} for result in by_seed],
    }


def total_in_errors(by_seed: Sequence[Mapping[str, Any]]) -> float:
    """How many standard errors, of test rows and seeds, the predicted total is above the actual one."""
    value, error = mean_with_error(by_seed, "PGR")
    return (value - 1.0) / error


def _averages(results: Results, group: str, methods: Iterable[str]) -> list[dict[str, Any]]:
    """Per method the geometric means of its ratios to the reference and to each table's best, over some tables."""
    entries = []
    for method in methods:
        tables = [table for table, other in results if other == method]
        if not tables:
            continue
        own = {table: results[table, method] for table in tables}
        referred = [table for table in tables if (table, REFERENCE) in results]
        best = [(table, str(best_of(table, results))) for table in tables]
        to_best = geometric_mean(nrmse_ratio(own[table], results[table, name]) for table, name in best)
        to_reference = [nrmse_ratio(own[table], results[table, REFERENCE]) for table in referred]
        entries.append(
            {
                "group": group,
                "method": method,
                "tables": len(tables),
                "seeds": max(len(by_seed) for by_seed in own.values()),
                "to_reference": asdict(geometric_mean(to_reference)) if to_reference else None,
                "to_best": asdict(to_best),
                "first": sum(name == method for _, name in best),
                "wrong_totals": sum(abs(total_in_errors(by_seed)) > _RIGHT for by_seed in own.values()),
                "xauc": fmean(mean_with_error(by_seed, "XAUC")[0] for by_seed in own.values()),
                "seconds": fmean(result["seconds"] for by_seed in own.values() for result in by_seed),
                "slowest": max(result["seconds"] for by_seed in own.values() for result in by_seed),
            }
        )
    return entries


def ablations(results: Results) -> list[dict[str, Any]]:
    """Per change of the default, the ratio of its NRMSE to the default's: by table, and its mean over each group.

    The difference of XAUC is a mean over all tables, because pieces for the order hardly move the error.
    """
    lines = []
    for method in (ablation.name for ablation in ABLATIONS):
        tables = [table for table, other in results if other == method and (table, DEFAULT) in results]
        # With one seed, a change is compared with that seed of the default alone: another seed may be a lucky one.
        pairs = {t: (changed := results[t, method], results[t, DEFAULT][: len(changed)]) for t in tables}
        ratios = {table: nrmse_ratio(*pair) for table, pair in pairs.items()}
        orders = [difference(*pair, "XAUC") for pair in pairs.values()]
        groups = {group: [ratios[t] for t in tables if BOARD_TABLES[t].group == group] for group in _AVERAGED}
        if ratios:
            lines.append(
                {
                    "change": method.partition(":")[2],
                    "settings": METHODS[method].settings,
                    "means": {group: asdict(geometric_mean(part)) for group, part in groups.items() if part},
                    "tables": {table: asdict(ratio) for table, ratio in ratios.items()},
                    "xauc": fmean(order.value for order in orders),
                    "xauc_error": math.hypot(*(order.error for order in orders)) / len(orders),
                    "wrong_totals": sum(abs(total_in_errors(results[t, method])) > _RIGHT for t in tables),
                    "seconds": fmean(result["seconds"] for t in tables for result in results[t, method]),
                }
            )
    return lines


def losses(results: Results) -> list[dict[str, Any]]:
    """Where the default falls short: another method errs less or ranks better, or the total is wrong.

    A larger error is listed where the paired difference is beyond one standard error, however small it is.
    """
    lost = []
    for table in (table for table, method in results if method == DEFAULT):
        own, best = results[table, DEFAULT], best_of(table, results)
        if best is not None and best != DEFAULT:
            gap = nrmse_ratio(own, results[table, best])
            if gap.value > gap.error:
                ratio = f"{math.exp(gap.value):.4f} ± {math.exp(gap.value) * gap.error:.4f}"
                lost.append({"table": table, "what": "NRMSE", "to": best, "evidence": f"ratio {ratio}"})
        total = total_in_errors(own)
        if abs(total) > _RIGHT:
            pgr = mean_with_error(own, "PGR")
            evidence = f"predicted / actual total {pgr[0]:.3f} ± {pgr[1]:.3f}, {total:+.1f} standard errors"
            lost.append({"table": table, "what": "total", "to": "the actual total", "evidence": evidence})
        ranked = _best_unbiased(table, results)
        if ranked is not None:
            order = difference(*common_seeds(own, results[table, ranked]), "XAUC")
            if order.value < -_ORDER:
                evidence = f"{order.value:+.4f} ± {order.error:.4f}"
                lost.append({"table": table, "what": "XAUC", "to": ranked, "evidence": evidence})
    return lost


def _best_unbiased(table: str, results: Results) -> str | None:
    """The rival of highest XAUC among those whose total is right."""
    rivals = [
        name
        for name in RIVALS
        if name != CONSTANT and (table, name) in results and abs(total_in_errors(results[table, name])) <= _RIGHT
    ]
    return max(rivals, key=lambda name: mean_with_error(results[table, name], "XAUC")[0], default=None)


def board_claims(results: Results) -> list[Claim]:
    """What the default has to show, whether it does, and the numbers; a claim without results is left out."""
    numbers, ids = _in_group(results, NUMBERS), _in_group(results, IDS)
    claims = [
        _mean_claim(numbers, REFERENCE, _AIM),
        _mean_claim(numbers, AUTOGLUON, _AIM_AUTOGLUON),
        _below_every_rival(numbers),
        _everywhere(
            "its NRMSE is at most one standard error and 1 % above the table's best",
            {table: _near_best(table, numbers) for table in _tables(numbers, REFERENCE)},
        ),
        _everywhere(
            "its total is within two standard errors of the actual one",
            {table: abs(total_in_errors(results[table, DEFAULT])) <= _RIGHT for table in _tables(results)},
        ),
        _everywhere(
            "its XAUC is at most 0.005 below that of the best rival whose total is right",
            {table: _ranks(table, numbers) for table in _tables(numbers, REFERENCE)},
        ),
        _everywhere(
            f"its NRMSE is at most one standard error above that of {PREVIOUS}, on tables of ids",
            {
                table: (gap := nrmse_ratio(ids[table, DEFAULT], ids[table, PREVIOUS])).value <= gap.error
                for table in _tables(ids, PREVIOUS)
            },
        ),
        _everywhere(
            f"it takes less time than {PREVIOUS}, on tables of ids",
            {table: _seconds(ids[table, DEFAULT]) < _seconds(ids[table, PREVIOUS]) for table in _tables(ids, PREVIOUS)},
        ),
        _everywhere(
            "its NRMSE is at most 0.2 % above that of a constant rate of exposure",
            {
                table: nrmse_ratio(results[table, DEFAULT], results[table, CONSTANT]).value <= math.log1p(_HARM)
                for table in _tables(results, CONSTANT)
                if BOARD_TABLES[table].exposure is not None
            },
        ),
    ]
    return [claim for claim in claims if claim is not None]


def _tables(results: Results, other: str = DEFAULT) -> list[str]:
    """The tables that both the default and another method were run on."""
    return [table for table, method in results if method == DEFAULT and (table, other) in results]


def _seconds(by_seed: Sequence[Mapping[str, Any]]) -> float:
    return fmean(result["seconds"] for result in by_seed)


def _mean_to(results: Results, other: str) -> GeometricMean | None:
    ratios = [nrmse_ratio(results[table, DEFAULT], results[table, other]) for table in _tables(results, other)]
    return geometric_mean(ratios) if ratios else None


def _mean_claim(results: Results, other: str, most: float) -> Claim | None:
    mean = _mean_to(results, other)
    if mean is None:
        return None
    text = f"the geometric mean of its NRMSE over that of {other} is at most {most:g}"
    return Claim(text, mean.value <= most, f"{mean.value:.4f} ± {mean.error:.4f} (tables: {mean.tables})")


def _below_every_rival(results: Results) -> Claim | None:
    means = {name: mean for name in RIVALS if (mean := _mean_to(results, name)) is not None}
    if not means:
        return None
    lost = [f"{name} {mean.value:.4f} ± {mean.error:.4f}" for name, mean in means.items() if mean.value >= 1.0]
    nearest = max(means, key=lambda name: means[name].value)
    won = f"nearest is {nearest}, {means[nearest].value:.4f} ± {means[nearest].error:.4f}"
    text = "the geometric mean of its NRMSE over that of every rival is below 1"
    return Claim(text, not lost, f"not against {', '.join(lost)}" if lost else won)


def _near_best(table: str, results: Results) -> bool:
    gap = nrmse_ratio(results[table, DEFAULT], results[table, str(best_of(table, results))])
    return gap.value <= gap.error + math.log1p(_SLACK)


def _ranks(table: str, results: Results) -> bool:
    rival = _best_unbiased(table, results)
    return rival is None or _xauc(table, rival, results) >= -_ORDER


def _xauc(table: str, rival: str, results: Results) -> float:
    return difference(*common_seeds(results[table, DEFAULT], results[table, rival]), "XAUC").value


def _everywhere(text: str, holds: Mapping[str, bool]) -> Claim | None:
    if not holds:
        return None
    failed = [table for table, fine in holds.items() if not fine]
    where = f"on {len(holds) - len(failed)} of {len(holds)}" + (f", not on {', '.join(failed)}" if failed else "")
    return Claim(text, not failed, where)
