import math

import numpy as np
import pytest
from scipy import stats

from transun_paper.board.summary import (
    ablations,
    best_of,
    board_claims,
    common_seeds,
    geometric_mean,
    losses,
    nrmse_ratio,
    total_in_errors,
)
from transun_paper.lab.compare import Difference


def result(nrmse, pgr=1.0, xauc=0.7, seconds=1.0, noise=0.0, pgr_noise=0.01):
    """One seed's result; `noise` is what the odd blocks of test rows add."""
    metrics = {"NRMSE": nrmse, "PGR": pgr, "XAUC": xauc}
    sizes = {"NRMSE": noise, "PGR": pgr_noise, "XAUC": 0.0}
    return {
        "metrics": metrics,
        "left_out": {name: [metrics[name] + sizes[name] * (block % 2) for block in range(20)] for name in metrics},
        "valid": {"NRMSE": nrmse},
        "seconds": seconds,
        "rows": {"train": 1, "valid": 1, "test": 1},
    }


def claims(results):
    return {claim.text: claim for claim in board_claims(results)}


class TestGeometricMean:
    def test_it_is_that_of_scipy(self):
        ratios = [0.5, 0.9, 1.3, 2.0]
        mean = geometric_mean(Difference(math.log(ratio), 0.0, 0.0) for ratio in ratios)
        assert mean.value == pytest.approx(stats.gmean(ratios))
        assert mean.tables == 4
        low, high = stats.t.interval(0.95, 3, np.log(ratios).mean(), stats.sem(np.log(ratios)))
        assert (mean.low, mean.high) == pytest.approx((math.exp(low), math.exp(high)))

    def test_the_error_is_that_of_a_mean_of_independent_ratios(self):
        mean = geometric_mean([Difference(0.0, 0.03, 0.0), Difference(0.0, 0.04, 0.0)])
        assert mean.error == pytest.approx(0.025)  # √(0.03² + 0.04²) / 2

    def test_one_table_has_no_interval(self):
        mean = geometric_mean([Difference(math.log(2.0), 0.1, 0.0)])
        assert (mean.value, mean.low, mean.high) == (pytest.approx(2.0), None, None)
        assert mean.error == pytest.approx(0.2)


class TestPairs:
    def test_noise_that_both_share_cancels(self):
        """Both errors rise by half without the odd blocks, so that their ratio does not move."""
        first, second = result(1.0, noise=0.5), result(2.0, noise=1.0)
        ratio = nrmse_ratio([first], [second])
        assert (ratio.value, ratio.error) == pytest.approx((math.log(0.5), 0.0), abs=1e-12)

    def test_noise_of_seeds_is_paired(self):
        """Ratios of 0.5 with every seed have no noise; ratios 0.5 and 1 have ln 2 / 2."""
        steady = nrmse_ratio([result(1.0), result(3.0)], [result(2.0), result(6.0)])
        assert (steady.value, steady.error) == pytest.approx((math.log(0.5), 0.0), abs=1e-12)
        moving = nrmse_ratio([result(1.0), result(2.0)], [result(2.0)])
        assert (moving.value, moving.error) == pytest.approx((math.log(0.5) / 2, math.log(2.0) / 2))

    def test_only_seeds_that_both_have_are_paired(self):
        five, three = [result(float(seed + 1)) for seed in range(5)], [result(float(seed + 1)) for seed in range(3)]
        assert nrmse_ratio(five, three).value == 0.0
        assert [len(side) for side in common_seeds(five, three)] == [3, 3]


def test_a_total_in_errors():
    # Blocks of 1.1 and 1.1 + 0.01 in turn: √(19/20 · 20 · 0.005²).
    error = math.sqrt(19 / 20 * 20 * 0.005**2)
    assert total_in_errors([result(1.0, pgr=1.1)]) == pytest.approx(0.1 / error)


def test_the_best_of_a_table_is_no_ablation():
    results = {
        ("charity_gifts", "lightgbm_poisson"): [result(2.0)],
        ("charity_gifts", "default"): [result(3.0)],
        ("charity_gifts", "default:network_alone"): [result(1.0)],
    }
    assert best_of("charity_gifts", results) == "lightgbm_poisson"
    assert best_of("imdb_votes", results) is None


def test_a_change_of_one_seed_is_compared_with_that_seed():
    results = {
        ("imdb_votes", "default"): [result(1.0), result(3.0)],
        ("imdb_votes", "default:trees_alone"): [result(2.0)],
    }
    (line,) = ablations(results)
    assert line["tables"]["imdb_votes"]["value"] == pytest.approx(math.log(2.0))


def test_the_order_of_a_change_is_a_mean_over_all_tables():
    changed = [("imdb_votes", 0.6), ("globo", 0.72)]
    results = {(table, "default"): [result(1.0, xauc=0.7)] for table, _ in changed}
    results |= {(table, "default:trees_alone"): [result(1.0, xauc=xauc)] for table, xauc in changed}
    (line,) = ablations(results)
    assert line["xauc"] == pytest.approx((-0.1 + 0.02) / 2)
    assert line["xauc_error"] == pytest.approx(0.0)


TABLES = ("imdb_votes", "mlb_salaries")


def tables(default, poisson, **others):
    """Two tables of numbers, on which the methods have these results."""
    methods = {"default": default, "lightgbm_poisson": poisson, **others}
    return {(table, name): [pair[number]] for name, pair in methods.items() for number, table in enumerate(TABLES)}


AHEAD = tables((result(0.8), result(0.9)), (result(1.0), result(1.0)))


class TestClaims:
    def test_the_mean_to_the_reference(self):
        text = "the geometric mean of its NRMSE over that of lightgbm_poisson is at most 0.94"
        claim = claims(AHEAD)[text]
        assert claim.holds
        assert claim.evidence == f"{math.sqrt(0.72):.4f} ± 0.0000 (tables: 2)"
        behind = tables((result(0.99), result(0.9)), (result(1.0), result(1.0)))
        assert not claims(behind)[text].holds  # √0.891 = 0.944

    def test_every_rival_counts(self):
        text = "the geometric mean of its NRMSE over that of every rival is below 1"
        assert claims(AHEAD)[text].holds
        results = AHEAD | tables(*[(result(0.8), result(0.9))] * 2, lightgbm_mse=(result(0.7), result(0.9)))
        claim = claims(results)[text]
        assert not claim.holds
        assert "lightgbm_mse" in claim.evidence

    def test_one_table_is_allowed_one_error_and_one_percent(self):
        text = "its NRMSE is at most one standard error and 1 % above the table's best"
        near = tables((result(1.009), result(0.5)), (result(1.0), result(1.0)))
        far = tables((result(1.011), result(0.5)), (result(1.0), result(1.0)))
        noisy = tables((result(1.011, noise=0.01), result(0.5)), (result(1.0), result(1.0)))
        assert claims(near)[text].holds
        assert (claims(far)[text].holds, claims(far)[text].evidence) == (False, "on 1 of 2, not on imdb_votes")
        assert claims(noisy)[text].holds

    def test_totals_and_order(self):
        wrong = tables((result(0.8, pgr=1.1), result(0.8, xauc=0.69)), (result(1.0), result(1.0)))
        found = claims(wrong)
        total = found["its total is within two standard errors of the actual one"]
        order = found["its XAUC is at most 0.005 below that of the best rival whose total is right"]
        assert total.evidence == "on 1 of 2, not on imdb_votes"
        assert order.evidence == "on 1 of 2, not on mlb_salaries"

    def test_order_is_compared_with_rivals_whose_totals_are_right(self):
        wrong_rival = tables((result(0.8), result(0.8)), (result(1.0, pgr=0.8, xauc=0.9), result(1.0)))
        assert claims(wrong_rival)["its XAUC is at most 0.005 below that of the best rival whose total is right"].holds

    def test_no_harm_is_about_tables_with_exposure(self):
        results = {
            ("cas_bemtpl97", "default"): [result(8.02)],
            ("cas_bemtpl97", "constant_rate"): [result(8.0)],
            ("imdb_votes", "default"): [result(3.0)],
            ("imdb_votes", "constant_rate"): [result(1.0)],
        }
        claim = claims(results)["its NRMSE is at most 0.2 % above that of a constant rate of exposure"]
        assert (claim.holds, claim.evidence) == (False, "on 0 of 1, not on cas_bemtpl97")

    def test_tables_of_ids_are_compared_with_the_previous_default(self):
        results = {
            ("lastfm", "default"): [result(5.0, seconds=1.0)],
            ("lastfm", "autosun_mlp"): [result(4.0, seconds=2.0)],
        }
        found = claims(results)
        assert not found["its NRMSE is at most one standard error above that of autosun_mlp, on tables of ids"].holds
        assert found["it takes less time than autosun_mlp, on tables of ids"].holds

    def test_without_results_nothing_is_claimed(self):
        assert board_claims({}) == []


class TestLosses:
    def test_none_where_it_is_ahead(self):
        assert losses(AHEAD) == []

    def test_each_kind_is_named(self):
        results = tables((result(1.2, pgr=1.1, xauc=0.6), result(0.8)), (result(1.0), result(1.0)))
        found = [(loss["table"], loss["what"], loss["to"]) for loss in losses(results)]
        assert found == [
            ("imdb_votes", "NRMSE", "lightgbm_poisson"),
            ("imdb_votes", "total", "the actual total"),
            ("imdb_votes", "XAUC", "lightgbm_poisson"),
        ]

    def test_within_one_error_is_no_loss(self):
        noisy = tables((result(1.01, noise=0.1), result(0.8)), (result(1.0), result(1.0)))
        assert losses(noisy) == []
