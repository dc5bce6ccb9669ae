"""Coverage and width of the intervals of totals over simulated worlds, beside intervals that others would give.

A world draws labelled rows, new rows and the rows that the model was certified on, asks for the total of the new ones,
and looks whether the sum that came lies in the interval. Worlds are computed many at a time; some of each kind are also
given to `transun.total_of` and to ppi-aipw, whose answers must be the same. Writes benchmarks/results/totals.json, from
which page.py makes docs/coverage.md. It is not part of `make bench`, because the rival is not a dependency:
`pip install --no-deps ppi-aipw==0.2.2`. It takes six minutes of one core.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from record import Cell, machine, write
from scipy.special import stdtrit

from transun.totals import AmountTail, total_of

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, int]], Array]
LEVEL = 0.95
NORMAL = 1.959963984540054
TOGETHER = 25  # worlds computed at a time; those of one time have segments of one size
CERTIFIED = 4_000  # rows, or customers, that the model was certified on
COMPARED = 2  # worlds of each kind that the library and the rival answer too
DRAWS = 300  # of the bootstrap
FEWEST = 60  # labelled units
FEWEST_ANSWERED = 100  # worlds, without which no coverage is shown


def lognormal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.exp(rng.standard_normal(shape) - 0.5)


def zero_inflated(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.where(rng.random(shape) < 0.3, lognormal(rng, shape) / 0.3, 0.0)


def pareto(power: float) -> Noise:
    return lambda rng, shape: rng.random(shape) ** (-1.0 / power) * (power - 1.0) / power


def student(freedom: float) -> Noise:
    """|t|, whose tail is that of Pareto's law of this power, above a body of another shape."""
    halves = math.gamma(0.5 * (freedom + 1.0)) / math.gamma(0.5 * freedom)
    mean = 2.0 * math.sqrt(freedom / math.pi) * halves / (freedom - 1.0)
    return lambda rng, shape: np.abs(rng.standard_t(freedom, shape)) / mean


NOISES: dict[str, Noise] = {
    "lognormal": lognormal,
    "zero-inflated": zero_inflated,
    "Pareto 2.5": pareto(2.5),
    "Pareto 1.5": pareto(1.5),
    "Student 2.5": student(2.5),
    "Student 1.5": student(1.5),
}
CLUSTERED = "clustered"
LARGE = 0.75  # the share of the large segment


@dataclass(frozen=True)
class Worlds:
    """Several worlds (k) of the same shape: sums over the rows of each unit, and how many rows a unit has.

    The first `large` units are those of the large segment, about three quarters; the others have amounts three times as
    large.
    """

    pred: Array
    y: Array
    rows: Array
    large: int

    def segment(self, name: str) -> "Worlds":
        part = {"the large segment": slice(None, self.large), "the small segment": slice(self.large, None)}.get(name)
        return self if part is None else Worlds(self.pred[:, part], self.y[:, part], self.rows[part], self.large)


def draw(rng: np.random.Generator, kind: str, units: int, biased: bool) -> Worlds:
    """Worlds of so many units: rows, or customers of one to many rows who are alike in what the model does not know."""
    large = int(rng.binomial(units, LARGE))
    sizes = rng.geometric(0.2, units) if kind == CLUSTERED else np.ones(units, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    factor = np.repeat(np.where(np.arange(units) < large, 1.0, 3.0), sizes)
    shape = (TOGETHER, int(sizes.sum()))
    mean = np.exp(0.7 * rng.standard_normal(shape) - 0.245) * factor
    if kind == CLUSTERED:
        customer = np.repeat(np.exp(0.7 * rng.standard_normal((TOGETHER, units)) - 0.245), sizes, axis=1)
        y = mean * customer * np.exp(0.7 * rng.standard_normal(shape) - 0.245)
    else:
        y = mean * NOISES[kind](rng, shape)
    # E[y|x], or a model with retransformation bias: low by 40 %, and by more where amounts are large.
    pred = 0.6 * mean**0.9 if biased else mean
    if kind == CLUSTERED:
        pred, y = np.add.reduceat(pred, starts, axis=1), np.add.reduceat(y, starts, axis=1)
    return Worlds(pred, y, sizes.astype(np.float64), large)


@dataclass(frozen=True)
class Tails:
    """Tail indices of several worlds (k,) with their standard errors; see `transun.diagnosis.tail`."""

    index: Array
    error: Array

    @classmethod
    def of(cls, worlds: Worlds) -> "Tails":
        pred = np.maximum(worlds.pred, 0.1 * worlds.pred.mean(1, keepdims=True))
        tails = [AmountTail.of(values) for values in worlds.y / pred]
        return cls(np.array([tail.index for tail in tails]), np.array([tail.error for tail in tails]))

    def joined(self, other: "Tails") -> "Tails":
        mine, theirs = self.error**-2, other.error**-2
        return Tails((mine * self.index + theirs * other.index) / (mine + theirs), (mine + theirs) ** -0.5)

    def refuses(self, *, assumed: bool) -> NDArray[np.bool_]:
        if assumed:
            return np.asarray(self.index - 1.645 * self.error > 0.5)
        return ~np.asarray(self.index < 0.5)


@dataclass(frozen=True)
class Answer:
    """Estimates and ends of intervals of several worlds (k,)."""

    value: Array
    low: Array
    high: Array

    def without(self, refused: NDArray[np.bool_]) -> "Answer":
        """NaN instead of the ends where an interval is refused."""
        return Answer(self.value, *(np.where(refused, np.nan, end) for end in (self.low, self.high)))


def plain_difference(known: Worlds, new: Worlds, *, expected: bool = False) -> Answer:
    """The same estimate with ± 1.96 standard errors."""
    return differences(known, new, [], expected=expected)[0]


def differences(known: Worlds, new: Worlds, tails: Sequence[Tails | None], *, expected: bool = False) -> list[Answer]:
    """What `transun.totals.difference` computes, for several worlds and by each of some tails.

    The first answer has ± 1.96 standard errors instead of the ends. Without a tail, None, the ends are those of Hall's
    interval, which removes the skewness that the sample shows and counts no amount that is still to be drawn.
    """
    mass, wanted, units = known.rows.sum(), new.rows.sum(), len(known.rows)
    scale = wanted / mass
    a = known.y - known.rows * (known.y.sum(1, keepdims=True) / mass)
    b = known.pred - known.rows * (known.pred.sum(1, keepdims=True) / mass)
    squares = np.einsum("ij,ij->i", b, b)
    predicted = new.pred.sum(1)
    others = [np.zeros(len(b))] * 2
    if expected:
        b_new = new.pred - new.rows * (predicted[:, None] / wanted)
        others = [np.einsum("ij,ij->i", b_new, b_new), np.einsum("ij,ij,ij->i", b_new, b_new, b_new)]
    tuning = scale**2 * np.einsum("ij,ij->i", a, b) / (scale**2 * squares + others[0])
    others = [tuning**power * each for power, each in zip((2, 3), others, strict=True)]
    value = tuning * predicted + scale * (known.y.sum(1) - tuning * known.pred.sum(1))
    luck = [0.0 if expected else (new.rows**p).sum() / (known.rows**p).sum() for p in (2, 3)]
    both = scale**2 + luck[0]
    u = a - tuning[:, None] * b
    half = NORMAL * np.sqrt(both * np.einsum("ij,ij->i", u, u) * units / (units - 1) + others[0])
    answers = [Answer(value, value - half, value + half)]
    u /= np.maximum(1.0 - known.rows / mass - b * b / squares[:, None], 1e-3)
    u -= u.mean(1, keepdims=True)
    u2 = u * u
    sums = [u2.sum(1), np.einsum("ij,ij->i", u2, u), np.einsum("ij,ij->i", u2, u2)]
    largest = np.take_along_axis(u, u2.argmax(1)[:, None], 1)[:, 0]
    refused = np.asarray(sums[2] / sums[0] ** 2 - 1.0 / units > 2.0 / 3.0) | (units < FEWEST)
    for each in tails:
        index = np.zeros(len(a)) if each is None else np.clip(np.where(np.isnan(each.index), 0.4, each.index), 0.2, 0.6)
        again = 45.0 * index**2 / units ** (1 / 3)
        s2 = sums[0] * units / (units - 1) + again * largest**2
        s3, s4 = sums[1] + again * largest**3, sums[2] + again * largest**4
        variance = both * s2 + others[0]
        skewness = ((scale**3 - luck[1]) * s3 + others[1]) / variance**1.5
        covariance = (scale * both * s3 + others[1]) / variance**1.5
        bend = (3.0 * covariance - skewness) / 6.0
        shift = 0.5 * covariance - bend
        freedom = np.minimum(units - 1, 2.0 / (both**2 * (s4 - s2**2 / units) / variance**2))
        ends = []
        for side in (1.0, -1.0):
            tau = stdtrit(freedom, 0.5 * (1.0 + side * LEVEL)) - shift
            quantile = (np.cbrt(1.0 + 3.0 * bend * tau) - 1.0) / bend
            ends.append(value - quantile * np.sqrt(variance))
        answers.append(Answer(value, *ends).without(refused & (each is not None)))
    return answers


def bootstrap_t(rng: np.random.Generator, known: Worlds, new: Worlds) -> Answer:
    """The same estimate with quantiles of t from resampled errors, among them those of the new rows, in each world."""
    plain = plain_difference(known, new)
    n, wanted = len(known.rows), len(new.rows)
    ends = []
    for pred, y, value in zip(known.pred, known.y, plain.value, strict=True):
        centred = pred - pred.mean()
        errors = y - y.mean() - centred * ((centred @ y) / (centred @ centred))
        samples = errors[rng.integers(0, n, (DRAWS, n))]
        luck = rng.multinomial(wanted, np.full(n, 1.0 / n), size=DRAWS) @ errors / wanted
        scale = math.sqrt(1.0 / n + 1.0 / wanted)
        t = (samples.mean(1) - luck) / (samples.std(1, ddof=1) * scale)
        error = wanted * errors.std(ddof=1) * scale
        ends.append(value - np.quantile(t, [(1 + LEVEL) / 2, (1 - LEVEL) / 2]) * error)
    return Answer(plain.value, *np.array(ends).T)


@dataclass
class Coverage:
    """Intervals of many worlds and the truths that came."""

    parts: list[Array] = field(default_factory=list)

    def add(self, answer: Answer, truth: Array | float) -> None:
        self.parts.append(np.stack([answer.value, answer.low, answer.high, np.broadcast_to(truth, answer.low.shape)]))

    @property
    def any_answered(self) -> bool:
        return self.answered.shape[1] >= FEWEST_ANSWERED

    @property
    def answered(self) -> Array:
        """Estimates, ends and truths, (4, n), where there was an interval."""
        every = np.concatenate(self.parts, axis=1)
        return every[:, ~np.isnan(every[1])]

    @property
    def refused(self) -> float:
        return 100.0 * (1.0 - self.answered.shape[1] / sum(part.shape[1] for part in self.parts))

    @property
    def wrongly_answered(self) -> float:
        """The share, in per cent, of all worlds that got an interval without the truth in it."""
        _, low, high, truth = self.answered
        missed = int(((truth < low) | (truth > high)).sum())
        return 100.0 * missed / sum(part.shape[1] for part in self.parts)

    @property
    def covered(self) -> float:
        """The share, in per cent, of the intervals that had the truth in them."""
        return 100.0 * (1.0 - self.wrongly_answered / (100.0 - self.refused))

    @property
    def width(self) -> float:
        return float(np.median(self.answered[2] - self.answered[1]))

    @property
    def stretched_width(self) -> float:
        """The median width after all intervals are stretched by the one factor with which they cover 95 %."""
        value, low, high, truth = self.answered
        factor = np.quantile(np.abs(truth - value) / np.where(truth < value, value - low, high - value), LEVEL)
        return self.width * float(factor)


PARTS = ("all rows", "the large segment", "the small segment", "all rows, expected")
RULES = ("certified", "labelled alone", "assumed")


def simulate(kind: str, labelled: int, new: int, biased: bool, count: int, bootstrapped: int) -> list[list[Cell]]:
    """The lines of one kind of world."""
    rng = np.random.default_rng([labelled, new, int(biased), *kind.encode()])
    coverages = {(part, rule): Coverage() for part in PARTS for rule in RULES}
    plain, hall, bootstrap, ours, rival, ours_expected, rival_expected = (Coverage() for _ in range(7))
    for number in range(0, count, TOGETHER):
        known, wanted, certified = (draw(rng, kind, units, biased) for units in (labelled, new, CERTIFIED))
        alone = Tails.of(known)
        both = alone.joined(Tails.of(certified))
        average = (LARGE + 3.0 * (1.0 - LARGE)) * wanted.rows.sum()
        for part in PARTS:
            expects = part == PARTS[3]
            here, truth = wanted.segment(part), average if expects else wanted.segment(part).y.sum(1)
            first, *others, halls = differences(known.segment(part), here, [both, alone, None], expected=expects)
            for rule, tails, answer in zip(RULES, (both, alone, alone), (*others, others[1]), strict=True):
                coverages[part, rule].add(answer.without(tails.refuses(assumed=rule == "assumed")), truth)
            # Widths are those of the worlds where ours is given, whatever the tail, so that both have the same ones.
            undecided = np.isnan(others[0].low)
            if part == PARTS[0]:
                plain.add(first, truth)
                hall.add(halls, truth)
                if number < bootstrapped and kind != CLUSTERED:
                    bootstrap.add(bootstrap_t(rng, known, wanted), truth)
                    ours.add(others[0], truth)
            if expects:
                rival.add(first, truth)
                rival_expected.add(first.without(undecided), truth)
                ours_expected.add(others[0], truth)
        if number == 0:
            compare(known, wanted, both, alone, kind != CLUSTERED)
    lines: list[list[Cell]] = []
    for part in PARTS:
        whole, expects = part == PARTS[0], part == PARTS[3]
        numbers: list[Cell] = []
        for rule in RULES:
            coverage = coverages[part, rule]
            numbers += [coverage.refused, coverage.covered if coverage.any_answered else None]
            if rule != "assumed":
                numbers.append(coverage.wrongly_answered)
        tried = whole and bool(bootstrap.parts)
        rivals = [
            plain.covered if whole else None,
            hall.covered if whole else None,
            bootstrap.covered if tried else None,
            ours.stretched_width / bootstrap.stretched_width if tried else None,
            rival.covered if expects else None,
            ours_expected.width / rival_expected.width if expects else None,
            ours_expected.stretched_width / rival_expected.stretched_width if expects else None,
        ]
        lines.append([kind, "biased" if biased else "unbiased", labelled, new, part, *numbers, *rivals])
        print(*(f"{cell:.3g}" if isinstance(cell, float) else cell for cell in lines[-1]), flush=True)
    return lines


def compare(known: Worlds, new: Worlds, both: Tails, alone: Tails, single: bool) -> None:
    """Raise an error unless the library, and ppi-aipw where rows are single, answer as the sums here do."""
    from ppi_aipw import mean_inference

    for expected, certified in ((False, True), (True, False)):
        tails = both if certified else alone
        here = differences(known, new, [tails], expected=expected)[1].without(tails.refuses(assumed=False))
        for world in range(COMPARED):
            # A unit of several rows is given as that many equal rows, which have the same sums.
            parts = [
                (np.repeat(each.pred[world] / each.rows, each.rows.astype(int)), each.rows.astype(int))
                for each in (known, new)
            ]
            y = np.repeat(known.y[world] / known.rows, parts[0][1])
            units = [np.repeat(np.arange(len(sizes)), sizes) for _, sizes in parts]
            # What the certificate adds to the labelled rows: the difference of precisions.
            precision = both.error[world] ** -2 - alone.error[world] ** -2
            index = both.index[world] * both.error[world] ** -2 - alone.index[world] * alone.error[world] ** -2
            other = AmountTail(float(index / precision), float(precision**-0.5), CERTIFIED) if certified else None
            answer = total_of(
                parts[1][0],
                parts[0][0],
                y,
                cluster=units[1],
                labelled_cluster=units[0],
                level=LEVEL,
                tail=other,
                expected=expected,
            ).whole
            ours = [here.value[world], here.low[world], here.high[world]]
            np.testing.assert_allclose([answer.value, answer.low, answer.high], ours, rtol=1e-6)
    if single:
        here = plain_difference(known, new, expected=True)
        for world in range(COMPARED):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = mean_inference(
                    known.y[world],
                    known.pred[world],
                    new.pred[world],
                    method="aipw",
                    efficiency_maximization=True,
                    alpha=1.0 - LEVEL,
                )
            ends = [float(np.squeeze(end)) * len(new.rows) for end in theirs.ci]
            ours = [here.low[world], here.high[world]]
            np.testing.assert_allclose(ends, ours, atol=0.01 * (ours[1] - ours[0]), rtol=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument(
        "--bootstrapped", type=int, default=100, help="worlds of 1,000 labelled rows in which the bootstrap is tried"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the kinds of worlds")
    options = parser.parse_args()
    tasks = [
        (
            kind,
            labelled,
            new,
            biased,
            options.worlds,
            {300: options.worlds, 1_000: options.bootstrapped}.get(labelled, 0),
        )
        for labelled, new in ((300, 3_000), (1_000, 5_000), (4_000, 8_000))
        for kind in (*NOISES, CLUSTERED)
        for biased in (False, True)
        # 4,000 customers have 20,000 rows, and take as long as all other worlds together.
        if (kind, labelled) != (CLUSTERED, 4_000)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        table = [line for lines in pool.map(simulate, *zip(*tasks, strict=True)) for line in lines]
    columns = [
        "amounts",
        "model",
        "labelled",
        "new",
        "total of",
        "refused, %",
        "covered, %",
        "answered wrongly, %",
        "refused by labelled rows alone, %",
        "covered by labelled rows alone, %",
        "answered wrongly by labelled rows alone, %",
        "refused where assumed, %",
        "covered where assumed, %",
        "± 1.96 standard errors cover, %",
        "Hall's interval covers, %",
        "bootstrap-t covers, %",
        "width to bootstrap-t, both at 95 %",
        "ppi-aipw covers, %",
        "width to ppi-aipw",
        "width to ppi-aipw, both at 95 %",
    ]
    write(
        "totals",
        f"95 % intervals of totals of rows without labels (`transun.total`), over {options.worlds:,} simulated worlds "
        "a line: how many were refused, and how many of the others covered the total that came. The standard error of "
        f"a coverage of 95 % is {100 * math.sqrt(LEVEL * (1 - LEVEL) / options.worlds):.1f} points.",
        columns,
        table,
        [
            "Labelled and new are numbers of rows, or of customers of five rows on average where rows are clustered. "
            "The small segment has about a quarter of them, with amounts three times as large. A segment of fewer than "
            f"{FEWEST} labelled is refused.",
            f"Refused and covered are those of a model that was certified on {CERTIFIED:,} rows, by which together "
            "with the labelled ones the variance of the amounts is likelier finite than infinite. “By labelled rows "
            "alone” is without a certificate. “Where assumed” is with `finite_variance=True`: refused only where the "
            f"labelled rows show beyond chance that it is not. No coverage is shown of fewer than {FEWEST_ANSWERED} "
            "answered worlds. “Answered wrongly” is the share of all worlds, refused ones among them, that got an "
            "interval without the truth in it.",
            "“Expected” is the total that such rows have on average, which is what ppi-aipw (`method='aipw', "
            "efficiency_maximization=True`) estimates: widths are compared there. Those “both at 95 %” are after each "
            "was stretched by the factor with which it covers 95 %. For clusters the rival is given sums of customers.",
            "Hall's interval removes the skewness that the sample shows, as ours does, and counts no amount that is "
            "still to be drawn.",
            "“Student” are absolute values of Student's t, whose tail is that of Pareto's law of this power and whose "
            "body is not. With 1.5 both have an infinite variance: no interval can hold there, and a refusal is the "
            "right answer.",
            "The bootstrap was tried in every world of 300 labelled rows, and in "
            f"{options.bootstrapped} of 1,000, where its coverage is known to "
            f"{100 * math.sqrt(LEVEL * (1 - LEVEL) / max(options.bootstrapped, 1)):.1f} points.",
        ],
        where=machine("numpy", "ppi-aipw"),
        script="coverage_totals.py",
    )


if __name__ == "__main__":
    main()
