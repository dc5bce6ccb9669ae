"""Standard errors against what they claim to be: the spread of the value over datasets drawn anew."""

import numpy as np
import pytest

from transun.metrics import FLOORED, MRE, NEGATIVE, NMAE, NRMSE, PGR, RMSE, SMRE, STRE, TRE, XAUC, TopNDCG, TopXAUC
from transun.metrics.bias import SRE
from transun.metrics.error import PRINTED_NRMSE
from transun.metrics.metric import bootstrap
from transun.metrics.ranking import XAUC_EGMN, XAUC_TPM
from transun.metrics.spread import RELATIVE_VARIANCE, SKEWNESS, VARIANCE

DATASETS, ROWS = 400, 400
FORMULA = [TRE, STRE, MRE, SMRE, PGR, FLOORED, NEGATIVE, SRE(2.0), RMSE, NRMSE, PRINTED_NRMSE, NMAE]
FORMULA += [XAUC, XAUC_TPM, XAUC_EGMN, VARIANCE, RELATIVE_VARIANCE, SKEWNESS]


def draw(seed, n=ROWS):
    """Predictions off by a fifth, light tails (so that 400 rows are many), ties, weights that go with the target."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(1, 3, n)
    y = (base * rng.uniform(0.5, 1.5, n)).round(1)
    pred = (0.8 * base).round(1)
    pred = np.where(rng.random(n) < 0.2, rng.choice([1e-7, -1.0], n), pred)
    return pred, y, rng.uniform(0.5, 1.5, n) * np.where(y > 2, 1.5, 1.0)


def simple(seed):
    pred, y, weight = draw(seed)
    return np.where(pred < 0.5, 1.0, pred), y, weight


@pytest.mark.parametrize("metric", FORMULA, ids=lambda m: m.name)
def test_formula_matches_the_spread_over_datasets(metric):
    data = draw if metric.name in ("FLOORED", "NEGATIVE") else simple
    sets = [data(seed) for seed in range(DATASETS)]
    spread = np.std([metric(*s) for s in sets], ddof=1)
    claimed = np.sqrt(np.mean([metric.standard_error(*s) ** 2 for s in sets[:50]]))
    # The spread of 400 near-normal values is known to 1/√800 = 3.5 %; four times that, and 3 % for O(1/n) terms.
    assert claimed == pytest.approx(spread, rel=4 / np.sqrt(2 * DATASETS) + 0.03)


def test_shares_do_vary_between_rows():
    """Guards the test above against agreeing on zero."""
    for metric in FORMULA:
        data = draw if metric.name in ("FLOORED", "NEGATIVE") else simple
        assert metric.standard_error(*data(0)) > 0


@pytest.mark.parametrize("metric", [TopXAUC(), TopNDCG(share=0.3)], ids=lambda m: m.name)
def test_bootstrap_error_matches_the_spread_over_datasets(metric):
    sets = [simple(seed) for seed in range(DATASETS)]
    spread = np.std([metric(*s) for s in sets], ddof=1)
    claimed = np.sqrt(np.mean([metric.standard_error(*s) ** 2 for s in sets[:5]]))
    # As above, plus 200 redraws (1/√400 = 5 %, over five datasets 2 %) and the datasets' own differences.
    assert claimed == pytest.approx(spread, rel=0.3)


def test_xauc_error_equals_its_jackknife():
    pred, y, weight = draw(0, 150)
    keep = ~np.eye(150, dtype=bool)
    left_out = np.array([XAUC(pred[k], y[k], weight[k]) for k in keep])
    jackknife = np.sqrt(149 / 150 * np.sum((left_out - left_out.mean()) ** 2))
    assert XAUC.standard_error(pred, y, weight) == pytest.approx(jackknife, rel=0.02)


def test_bootstrap_interval_matches_the_normal_one():
    data = simple(0)
    interval = bootstrap(PGR, *data, draws=2000, level=0.9)
    half = 1.645 * PGR.standard_error(*data)
    value = PGR(*data)
    # An end is a quantile of 2000 draws: known to about 0.05 standard errors; five times that.
    assert interval.low == pytest.approx(value - half, abs=0.25 * half)
    assert interval.high == pytest.approx(value + half, abs=0.25 * half)


def test_rows_without_weight_change_no_bootstrap():
    pred, y, weight = simple(0)
    weight[::2] = 0
    assert bootstrap(PGR, pred, y, weight) == bootstrap(PGR, pred[1::2], y[1::2], weight[1::2])


@pytest.mark.parametrize(("draws", "level"), [(1, 0.9), (10, 0.0), (10, 1.0)])
def test_senseless_bootstraps_are_refused(draws, level):
    with pytest.raises(ValueError, match="`draws` is"):
        bootstrap(PGR, [1.0], [1.0], draws=draws, level=level)


def test_bootstrap_of_an_undefined_value_is_nan():
    interval = bootstrap(XAUC, [1.0, 2.0], [3.0, 3.0])
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)
