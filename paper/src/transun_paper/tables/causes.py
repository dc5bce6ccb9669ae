"""Why claims fail, shown by further runs: a changed protocol, reference predictions, the rows of training, the truth.

Each function here looks at one possible cause and returns it with the numbers of the runs that show it, or None where
they do not show it. An `Answer` takes the first cause that is shown; a claim that fails without one is said to be
unexplained.
"""

import math
from statistics import stdev

from transun.metrics import metric_named
from transun_paper.lab.compare import SIGNIFICANCE
from transun_paper.tables.findings import (
    DATA,
    METRIC,
    NO,
    PROTOCOL,
    SIZE,
    UNDECIDED,
    YES,
    Cause,
    Finding,
    Rows,
    Side,
    TrainRows,
    able,
    better,
)

# The signed metric of which an error is the size.
_SIGNED = {"TRE": "STRE", "MRE": "SMRE"}


def nothing_to_cut(rows: Rows, ours: Side, host: Side, metric: str) -> Cause | None:
    """The host is not biased here, nor is what is made of it: the paper takes models "with significant bias issues".

    Shown where the 95 % intervals of both signed errors contain 0.
    """
    signed = _SIGNED[metric]
    if not (_has(rows, ours, signed) and _has(rows, host, signed)):
        return None
    if not (_unbiased(rows, ours, signed) and _unbiased(rows, host, signed)):
        return None
    value, error = rows.mean_with_error(host.reports, signed)
    return Cause(DATA, f"{host.name} has no bias to cut here: its signed {metric} is {value:+.4f} ± {1.96 * error:.4f}")


def within_the_noise_of_no_bias(
    rows: Rows, first: Side, second: Side, metric: str, factor: float = 1.0
) -> Cause | None:
    """The claim asks for less than a prediction without any bias would reach.

    TRE and MRE are sizes of signed errors, so noise alone makes them positive: a prediction without bias whose signed
    error has the standard deviation s, over seeds and rows, has an error of s·√(2/π) on average. Shown where this is
    more than the claim allows, and where the 95 % interval of the signed error contains 0.
    """
    signed = _SIGNED[metric]
    if not (_has(rows, first, signed) and _has(rows, second, metric)) or len(first.reports) < 2:
        return None
    of_seeds = stdev(float(value) for value in rows.values(first.reports, signed) if value is not None)
    # The error of the mean holds that of the seeds, which is counted above, and that of the rows.
    of_mean = rows.mean_with_error(first.reports, signed)[1]
    of_rows = math.sqrt(max(of_mean**2 - of_seeds**2 / len(first.reports), 0.0))
    least = math.sqrt(2.0 / math.pi) * math.hypot(of_seeds, of_rows)
    asked = factor * rows.mean_with_error(second.reports, metric)[0]
    if least <= asked or not _unbiased(rows, first, signed):
        return None
    return Cause(
        SIZE,
        f"the claim asks for {metric} below {asked:.4f}, and a prediction without bias and with the noise of "
        f"{first.name} has {least:.4f} on average",
    )


def changed(what: str, original: Finding, other: Finding, nearer: Finding) -> Cause | None:
    """Another protocol changes the answer, so that the protocol is the cause.

    Args:
        what: the change, as the beginning of a sentence.
        original: the finding of the table's own protocol.
        other: the same finding with the change.
        nearer: whether the change is an improvement of the metric.

    """
    if other.holds == YES:
        return Cause(PROTOCOL, f"{what} the claim holds: {other.evidence}")
    if other.holds == UNDECIDED and original.holds == NO:
        return Cause(PROTOCOL, f"{what} the difference is within noise: {other.evidence}")
    if nearer.holds == YES and original.holds == NO:
        return Cause(PROTOCOL, f"{what} it is nearer: {nearer.evidence}")
    return None


def asks_for_the_median(rows: Rows, first: Side, second: Side, mean: Side, median: Side) -> Cause | None:
    """NMAE is least for the median of y given x, so that a method whose total is off in its direction wins.

    Shown where the second wins beyond noise, where of two constants the training median has the lower NMAE, and where
    the total of the winner differs, beyond noise, from that of the loser as that of the median does from that of the
    mean.
    """
    if not all(_has(rows, side, name) for side in (first, second, mean, median) for name in ("NMAE", "PGR")):
        return None
    won = rows.minus(second.reports, first.reports, "NMAE")
    if won.value >= 0.0 or won.p >= SIGNIFICANCE:
        return None
    gap = rows.minus(second.reports, first.reports, "PGR")
    ratio = {side.name: rows.mean_with_error(side.reports, "PGR")[0] for side in (first, second, mean, median)}
    of_mean, of_median = (rows.mean_with_error(side.reports, "NMAE")[0] for side in (mean, median))
    same_way = gap.value * (ratio[median.name] - ratio[mean.name]) > 0.0 and gap.p < SIGNIFICANCE
    if of_median >= of_mean or not same_way:
        return None
    return Cause(
        METRIC,
        f"NMAE is least for medians: of two constants the median has {of_median:.4f} and the mean {of_mean:.4f}; "
        f"{second.name} predicts {ratio[second.name]:.0%} of the total, {first.name} {ratio[first.name]:.0%}",
    )


def holds_on_training_rows(first: Side, second: Side, metric: str, factor: float = 1.0) -> Cause | None:
    """The claim holds on the rows of training, so that what fails is the step to new rows: there are too few rows."""
    rows = TrainRows()
    if not (_has(rows, first, metric) and _has(rows, second, metric)) or len(first.reports) < 2:
        return None
    finding = better(rows, first, second, metric, factor)
    return Cause(SIZE, f"on the training rows it holds: {finding.evidence}") if finding.holds == YES else None


def beats_the_truth(rows: Rows, winner: Side, truth: Side, metric: str) -> Cause | None:
    """The true mean itself is beaten by this metric, on these rows: the metric does not ask for the mean."""
    if not (_has(rows, winner, metric) and _has(rows, truth, metric)):
        return None
    best, possible = (rows.mean_with_error(side.reports, metric)[0] for side in (winner, truth))
    badness = metric_named(metric).badness
    if badness(best) >= badness(possible):
        return None
    return Cause(METRIC, f"{truth.name} would lose, too: {metric} {possible:.4f} against {best:.4f} of {winner.name}")


def little_to_regain(rows: Rows, plain: Side, better_ordered: Side, least: float) -> Cause | None:
    """What a remedy shall regain was not lost: the order of the base is ahead by less than the claimed gain."""
    if not (_has(rows, plain, "XAUC") and _has(rows, better_ordered, "XAUC")):
        return None
    lost = rows.minus(better_ordered.reports, plain.reports, "XAUC").value
    if lost >= least:
        return None
    return Cause(
        DATA,
        f"{plain.name} has lost {lost:+.4f} of XAUC against {better_ordered.name}, less than the claimed {least:g}",
    )


def order_of_the_mean_is_free(rows: Rows, by_mean: Side, by_log: Side) -> Cause | None:
    """Ordering by the mean costs no XAUC here: a model of squares, which orders by it too, is as good as its rival."""
    if not (_has(rows, by_mean, "XAUC") and _has(rows, by_log, "XAUC")):
        return None
    own, other = (rows.mean_with_error(side.reports, "XAUC")[0] for side in (by_mean, by_log))
    if own < other:
        return None
    return Cause(
        DATA,
        f"to order by the mean costs nothing here: {by_mean.name}, which does so too, has XAUC {own:.4f} and "
        f"{by_log.name} {other:.4f}",
    )


def _unbiased(rows: Rows, side: Side, signed: str) -> bool:
    """Whether the 95 % interval of a signed error contains 0."""
    value, error = rows.mean_with_error(side.reports, signed)
    return abs(value) <= 1.96 * error


def _has(rows: Rows, side: Side, metric: str) -> bool:
    """Whether every seed of a method was run, did not fail and has a finite metric."""
    return able(side.reports) and all(
        metric in values and values[metric] is not None for values in map(rows.measures, side.reports)
    )
