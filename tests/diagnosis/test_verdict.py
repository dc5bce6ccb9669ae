"""The verdict is right: on simulated data with known truth, and on the eight distributions."""

import math

import numpy as np
import pytest
import torch

from population import COLUMNS, draw, population
from transun.data.columns import open_columns
from transun.diagnosis import diagnose
from transun.diagnosis.assessment import assess, total_interval
from transun.diagnosis.passes import first_pass, second_pass
from transun.diagnosis.reading import ColumnNames, ColumnRows
from transun.diagnosis.result import Segment, SegmentTable
from transun.diagnosis.verdict import worst, write_verdict
from transun.metrics import Estimate

SETS, ROWS = 100, 3000


def looked_at(y, pred):
    names = ColumnNames("y", "pred")
    rows = ColumnRows(open_columns({"y": y, "pred": pred}, names.numbers), names, show=False)
    first = first_pass(rows)
    return first.moments.ratio(), total_interval(first, second_pass(rows, first))


def lognormal(sigma):
    def draw(mean, x, rng):
        return mean * rng.lognormal(-0.5 * sigma**2, sigma, len(mean)), mean * math.exp(-0.5 * sigma**2)

    return draw


def heteroscedastic(mean, x, rng):
    sigma = 0.3 + 0.8 / (1.0 + np.exp(-x))
    return mean * np.exp(sigma * rng.normal(size=len(x)) - 0.5 * sigma**2), mean * np.exp(-0.5 * sigma**2)


def pareto(mean, x, rng):
    return mean * 1.5 * rng.pareto(2.5, len(mean)), 0.7 * mean


def zero_inflated(mean, x, rng):
    return mean * 5.0 * (rng.random(len(mean)) < 0.2) * rng.gamma(2.0, 0.5, len(mean)), 1.4 * mean


def even(mean, x, rng):
    return mean + 3.0 * rng.normal(size=len(mean)), 0.9 * mean


LAWS = {
    "normal": even,
    "lognormal 0.5": lognormal(0.5),
    "lognormal 1": lognormal(1.0),
    "lognormal 2": lognormal(2.0),
    "heteroscedastic": heteroscedastic,
    "Pareto 2.5": pareto,
    "zero-inflated": zero_inflated,
}


@pytest.mark.parametrize("law", LAWS)
def test_right_in_95_of_100_sets(law):
    """Fair predictions are called fair and biased ones biased, with the right sign, by the interval that is shown."""
    rng = np.random.default_rng(5)
    fair = found = sign = 0
    for _ in range(SETS):
        x = rng.normal(size=ROWS)
        mean = np.exp(2.0 + 0.7 * x)
        y, biased = LAWS[law](mean, x, rng)
        _, interval = looked_at(y, mean)
        fair += 1.0 in interval
        ratio, interval = looked_at(y, biased)
        found += 1.0 not in interval
        sign += (ratio > 1.0) == (biased.mean() < mean.mean())
    assert fair >= 95
    assert found >= 95
    assert sign == SETS


def test_a_huge_row_does_not_hide_that_all_others_are_too_low():
    rng = np.random.default_rng(6)
    typical = np.exp(2.0 + 0.7 * rng.normal(size=2000))
    y = 3.0 * typical * rng.lognormal(0.0, 0.5, 2000)
    y[0] = 30.0 * y.sum()
    _, interval = looked_at(y, typical)
    assert 1.0 < interval.low < 3.0 * math.exp(0.125)


TRANSFORMS = {"ln(1 + y)": (torch.log1p, math.expm1), "√y": (torch.sqrt, lambda u: u**2)}


@pytest.mark.parametrize("law", COLUMNS)
@pytest.mark.parametrize("name", [*TRANSFORMS, "y²", "the mean"])
def test_the_eight_distributions(law, name):
    """What T-MSE converges to is called biased to its side and, for T in use, by its cause; the mean is not."""
    forward, inverse = TRANSFORMS.get(name, (torch.square, math.sqrt))
    grid = population(law)
    mean = float(grid.mean())
    limit = mean if name == "the mean" else inverse(float(forward(grid).mean()))
    y = draw(law, 12_000, seed=3).numpy()
    found = diagnose(y, np.full(len(y), limit))
    gap = limit / mean - 1.0
    noise = float(grid.std()) / math.sqrt(len(y)) / mean
    if name == "the mean":
        assert found.verdict.kind == "fine"
        assert found.test.conclusion == "not biased"
        return
    assert abs(gap) > 5 * noise  # or the test would ask for the impossible
    assert found.verdict.biased
    assert ("low" if gap < 0 else "high") in found.verdict.text
    if name in TRANSFORMS:
        cause = next(one for one in found.test.candidates if one.name == name)
        assert cause.misfit.low < 0.2
        assert cause.consistent or abs(gap) < 15 * noise  # where the gap is hardly seen its cause may stay unclear
    else:
        assert found.test.conclusion == "biased, but not by retransformation"
    # The samples have the exact share of each component, so the totals are right to a few standard errors.
    assert all(result.tre.value < 5 * noise for result in found.corrections[1:])


def segment(value, pgr, low, high, biased):
    return Segment(value, 100, 0.1, (Estimate("PGR", pgr, low, high),), 0.5, biased)


def test_worst_is_what_is_surely_off_by_most():
    noisy = segment("noisy", 0.3, 0.1, 0.95, True)
    sure = segment("sure", 0.5, 0.45, 0.55, True)
    chance = segment("chance", 0.1, 0.01, 9.0, False)
    table = SegmentTable("shop", "", (noisy, sure, chance))
    found = worst((table,), beyond=0.0)
    assert found is not None
    assert found[1] is sure
    assert worst((table,), beyond=1.0) is None


def test_a_right_total_with_wrong_segments_is_uneven():
    fine = Estimate("PGR", 1.0, 0.99, 1.01)
    table = SegmentTable("shop", "", (segment("a", 0.5, 0.45, 0.55, True),))
    verdict = write_verdict(fine, 1.0, 1.0, False, (table,))
    assert verdict.kind == "uneven"
    assert "shop = a (50 % low)" in verdict.text
    assert not verdict.biased


class TestOrder:
    """By simulation: shuffled and constant predictions rank by chance; those that know some of the target do not."""

    rng = np.random.default_rng(5)
    y = rng.lognormal(0.0, 1.0, 8000)

    @pytest.mark.parametrize("pred", [rng.permutation(y), np.full(8000, y.mean())], ids=["shuffled", "constant"])
    def test_a_right_total_without_order_is_reported_as_such(self, pred):
        verdict = assess(pred, self.y).verdict
        assert verdict.kind == "fine"
        assert verdict.text.startswith("No bias of the total found")
        assert "Nothing shows that predictions order the rows: XAUC is 0.5" in verdict.text.replace("0.49", "0.50")

    def test_an_order_that_the_rows_show_is_not_mentioned(self):
        verdict = assess(self.y * self.rng.lognormal(0.0, 2.0, 8000), self.y).verdict
        assert "order the rows" not in verdict.text


class TestWords:
    """The verdict follows from the interval beside it, and says how much that interval can tell."""

    @pytest.mark.parametrize(
        ("pgr", "kind", "words"),
        [
            ((1.01, 0.98, 1.04), "fine", "(99 % interval 0.980 to 1.040), so that it is right to within 4.0 %"),
            ((1.0, 0.91, 1.09), "fine", "right to within 9.0 %"),
            ((1.0, 0.91, 1.11), "unclear", "a bias of less than 11 % would look like chance"),
            ((0.8, 0.531, 1.121), "unclear", "a bias of less than 47 % would look like chance"),
            ((2.0, 0.3, math.inf), "unclear", "(99 % interval above 0.300); the rows are too few"),
        ],
    )
    def test_a_total_is_called_right_only_by_a_narrow_interval(self, pgr, kind, words):
        verdict = write_verdict(Estimate("PGR", *pgr), 1.0, 1.0, False, ())
        assert (verdict.kind, verdict.alarming) == (kind, False)
        assert words in verdict.text

    @pytest.mark.parametrize("scale", np.linspace(0.6, 1.6, 60).tolist())
    def test_the_verdict_and_the_interval_never_disagree(self, scale):
        rng = np.random.default_rng(0)
        mean = rng.uniform(1.0, 9.0, 60)
        assessment = assess(scale * mean, mean * rng.gamma(2.0, 0.5, 60))
        assert assessment.verdict.biased == (1.0 not in assessment.metric("PGR"))
        assert f"{assessment.metric('PGR').low:.3f}" in assessment.verdict.text or assessment.verdict.biased

    @pytest.mark.parametrize(
        ("pred", "y", "words"),
        [
            ([1.0, 2.0], [0.0, 0.0], "The actual total is 0 and not above 0"),
            ([1.0, 2.0], [-1.0, -2.0], "The actual total is -3 and not above 0"),
            ([0.0, 0.0], [1.0, 2.0], "The predicted total is 0 and not above 0"),
            ([-1.0, 0.5], [1.0, 2.0], "The predicted total is -0.5 and not above 0"),
        ],
    )
    def test_the_total_that_is_not_above_0_is_named(self, pred, y, words):
        verdict = assess(np.array(pred), np.array(y)).verdict
        assert words in verdict.text
        assert (verdict.kind, verdict.biased, verdict.alarming) == ("undefined", False, True)
