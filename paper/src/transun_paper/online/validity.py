"""Whether A/B tests keep their word on heavy tails: tests of equal arms, of known effects, with many looks."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from transun.experiments import LogColumns, plan_abtest
from transun.experiments.effect import ArmComparison
from transun.experiments.outcomes import Outcome, outcomes_of
from transun.experiments.planning import POWER, detectable_change
from transun.experiments.user_log import UserLog
from transun.support.arrays import Floats
from transun_paper.lab.compare import Claim
from transun_paper.lab.computation import Computation
from transun_paper.lab.store import Store

__all__ = [
    "FULL_TESTS",
    "QUICK_TESTS",
    "WORLDS",
    "TestSizes",
    "validity_claims",
    "validity_computations",
    "validity_table",
]

Draw = Callable[[np.random.Generator, Floats], Floats]
"""Values of users (n,), given a taste (n,) that lasts."""

WORLDS: dict[str, Draw] = {
    "lognormal": lambda rng, taste: taste * rng.lognormal(0.0, 1.2, len(taste)),
    "zero-inflated": lambda rng, taste: (rng.random(len(taste)) < 0.3) * taste * rng.lognormal(0.0, 1.0, len(taste)),
    "Pareto 2.5": lambda rng, taste: np.sqrt(taste) * (1.0 + rng.pareto(2.5, len(taste))),
    "Pareto 1.5": lambda rng, taste: np.sqrt(taste) * (1.0 + rng.pareto(1.5, len(taste))),
}
_COLUMNS = LogColumns("user", "gmv", "arm", "impressions", "before")
_OUTCOMES = ("GMV", "GMVPI")
_SHARE = 15 / 35  # of users in the new arm, as in the paper's first test
_LOOKS = 5
# Many looks cost more than all else, so that they are simulated in every fourth test.
_LOOKED_AT = 4
_CHUNK = 250
_PAST = 50_000


@dataclass(frozen=True)
class TestSizes:
    """How many tests are simulated in each world, and of how many users."""

    __test__ = False  # pytest would take the class for a test

    tests: int = 2_000
    users: int = 20_000


FULL_TESTS, QUICK_TESTS = TestSizes(), TestSizes(40, 1_000)


def validity_computations(sizes: TestSizes) -> dict[str, list[Computation]]:
    """The work by world, in chunks of tests."""
    chunk = min(_CHUNK, sizes.tests)
    return {
        world: [
            Computation("ab validity", {"world": world, "chunk": index, "tests": chunk, "users": sizes.users})
            for index in range(sizes.tests // chunk)
        ]
        for world in WORLDS
    }


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """A test takes about as long as a hundred rows of a training."""
    return 100.0 * float(arguments["tests"])


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Counts over some tests of equal arms: significant ones, intervals with the truth, and effects that are found."""
    world, users, tests = arguments["world"], arguments["users"], arguments["tests"]
    rng = np.random.default_rng([list(WORLDS).index(world), arguments["chunk"], users])
    past = _log(world, rng, _PAST)
    columns = {"user": np.arange(_PAST), "gmv": past.value, "before": past.covariates["before"]}
    detectable, comparison = _detectable(columns, users), ArmComparison(control=0, level=0.95, horizon=users)
    counts = {outcome: {"significant": 0, "covered": 0} for outcome in _OUTCOMES}
    looks, detected = {"one look": 0, "always valid": 0}, 0
    for test in range(tests):
        log = _log(world, rng, users)
        for name, outcome in _decisive(log).items():
            effect = comparison.effect(outcome, log, 1)
            counts[name]["significant"] += effect.p_value < 0.05
            counts[name]["covered"] += 0.0 in effect.change
        raised = replace(log, value=log.value * np.where(log.arm == 1, 1.0 + detectable, 1.0))
        detected += comparison.effect(_decisive(raised)["GMV"], raised, 1).p_value < 0.05
        if test % _LOOKED_AT == 0:
            looks = {name: looks[name] + missed for name, missed in _misses(log, comparison).items()}
    return {"outcomes": counts, "looks": looks, "found": int(detected), "detectable": detectable, "tests": tests}


def _decisive(log: UserLog) -> dict[str, Outcome]:
    """The outcomes that a test is decided by: uncapped, adjusted by the value of the time before."""
    first: dict[str, Outcome] = {}
    for outcome in outcomes_of(log, _COLUMNS, cap=None):
        first.setdefault(outcome.name, outcome)
    return dict(zip(_OUTCOMES, first.values(), strict=True))


def _log(world: str, rng: np.random.Generator, users: int) -> UserLog:
    taste = rng.lognormal(0.0, 0.8, users)
    return UserLog(
        rows=users,
        users=users,
        value=WORLDS[world](rng, taste),
        per=(1 + rng.poisson(5.0 * taste)).astype(np.float64),
        covariates={"before": WORLDS[world](rng, taste)},
        arm=(rng.random(users) < _SHARE).astype(np.int64),
        arms=("base", "new"),
        segments=None,
        notes=(),
    )


def _detectable(past: Mapping[str, Any], users: int) -> float:
    """The change that a test of so many users finds with the usual power, by the product's plan from the past."""
    ratio = _SHARE / (1.0 - _SHARE)
    plan = plan_abtest(past, LogColumns("user", "gmv", before="before"), 0.01, ratio=ratio, cap=None)[0]
    return detectable_change(plan.spread * (1.0 + ratio) / math.sqrt(ratio * users), ratio, 0.95, POWER)


def _misses(log: UserLog, comparison: ArmComparison) -> dict[str, bool]:
    """Whether each kind of interval ever excludes the truth, in looks after every fifth of the users."""
    missed = {"one look": False, "always valid": False}
    for share in range(1, _LOOKS + 1):
        part = log.only(np.arange(log.users) < log.users * share // _LOOKS)
        effect = comparison.effect(_decisive(part)["GMV"], part, 1)
        missed["one look"] |= 0.0 not in effect.change
        missed["always valid"] |= 0.0 not in effect.always
    return missed


def validity_table(store: Store, sizes: TestSizes) -> list[dict[str, Any]]:
    """The shares by world, from the store; only worlds whose work is done."""
    entries = []
    for world, work in validity_computations(sizes).items():
        if not all(chunk.text in store for chunk in work):
            continue
        parts = [store.read(chunk.text) for chunk in work]
        tests = sum(part["tests"] for part in parts)
        shares = {
            outcome: {
                name: sum(part["outcomes"][outcome][name] for part in parts) / tests
                for name in ("significant", "covered")
            }
            for outcome in _OUTCOMES
        }
        looked_at = sum(math.ceil(part["tests"] / _LOOKED_AT) for part in parts)
        looks = {name: sum(part["looks"][name] for part in parts) / looked_at for name in parts[0]["looks"]}
        entry = {"world": world, "tests": tests, "outcomes": shares, "looked_at": looked_at, "looks": looks}
        detected = sum(part["found"] for part in parts) / tests
        entries.append(
            entry | {"found": detected, "detectable": float(np.mean([part["detectable"] for part in parts]))}
        )
    return entries


def validity_claims(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The promises of the product, judged world by world."""
    claims = []
    for entry in entries:
        world, tests = entry["world"], entry["tests"]
        error = math.sqrt(0.05 * 0.95 / tests)
        false, covered = (
            [entry["outcomes"][outcome][name] for outcome in _OUTCOMES] for name in ("significant", "covered")
        )
        claims += [
            Claim(
                f"{world}: 5 % of tests of equal arms are significant, up to two sampling errors",
                all(abs(share - 0.05) <= 2.0 * error for share in false),
                f"{false[0]:.1%} of GMV and {false[1]:.1%} of GMVPI; two errors are {2 * error:.1%}",
            ),
            Claim(
                f"{world}: 95 % intervals cover the truth in 94 to 96 % of the tests",
                all(0.94 <= share <= 0.96 for share in covered),
                f"{covered[0]:.1%} of GMV and {covered[1]:.1%} of GMVPI",
            ),
            Claim(
                f"{world}: a change that was planned for is found as often as planned, within 3 points",
                abs(entry["found"] - POWER) <= 0.03,
                f"{entry['found']:.1%} of the tests found {entry['detectable']:+.1%}, planned {POWER:.0%}",
            ),
            Claim(
                f"{world}: in {_LOOKS} looks the always-valid interval excludes the truth in at most 5 % of the tests",
                entry["looks"]["always valid"] <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / entry["looked_at"]),
                f"{entry['looks']['always valid']:.1%}; the interval for one look {entry['looks']['one look']:.1%}",
            ),
        ]
    return [asdict(claim) for claim in claims]
