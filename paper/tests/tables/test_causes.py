"""Causes of failed claims, from numbers whose cause is plain."""

import math

import numpy as np
import pytest

from transun_paper.tables import ablations, causes, comparison, debiasing
from transun_paper.tables.findings import (
    DATA,
    METRIC,
    NO,
    PROTOCOL,
    SIZE,
    UNDECIDED,
    UNKNOWN,
    YES,
    Answer,
    Cause,
    Finding,
    Side,
    TestRows,
    TrainRows,
    better,
    gains,
    near,
)

TEST = TestRows()


def side(name: str = "a", noise: float = 1e-5, blocks: float = 1e-5, train: dict | None = None, **metrics) -> Side:
    """A method of five seeds that scatter by `noise`; the rows scatter by `blocks`."""
    shift = blocks * np.linspace(-1, 1, 20)
    return Side(
        name,
        [
            {
                "metrics": {key: value + noise * step for key, value in metrics.items()},
                "left_out": {key: (value + noise * step + shift).tolist() for key, value in metrics.items()},
                "train": {key: value + noise * step for key, value in (train or metrics).items()},
            }
            for step in (-1.0, -0.5, 0.0, 0.5, 1.0)
        ],
    )


def test_the_first_cause_that_is_shown_counts_and_only_where_a_claim_fails():
    first, second = Cause(DATA, "one"), Cause(SIZE, "two")
    failed = Finding(NO, "numbers", second)
    assert Answer.of("c", "w", failed, None, first).cause == first
    assert Answer.of("c", "w", failed, None).cause == second
    assert Answer.of("c", "w", Finding(YES, "numbers", second), first).cause is None
    assert Answer.of("c", "w", Finding(UNKNOWN, "numbers", second), first).cause == second


def test_noise_says_how_many_rows_would_decide():
    # The seeds are equal, so that the rows make all of the noise, and the error of the difference is that of one side.
    first, second = side(noise=0.0, blocks=0.01, TRE=0.10), side(noise=0.0, blocks=0.0, TRE=0.11)
    finding = better(TEST, first, second, "TRE")
    gap = TEST.minus(first.reports, second.reports, "TRE")
    assert finding.holds == UNDECIDED
    assert gap.of_rows == pytest.approx(1.0)
    times = (1.96 * gap.error / 0.01) ** 2
    assert finding.cause.kind == SIZE
    assert "100% of its square from test rows" in finding.cause.evidence
    assert f"about {times:.1f} times as many test rows and seeds" in finding.cause.evidence


def test_noise_of_seeds_alone_asks_for_seeds():
    finding = better(TrainRows(), side(noise=0.1, TRE=0.10), side(noise=0.0, TRE=0.11), "TRE")
    assert finding.cause.evidence.endswith("times as many seeds would decide")


def test_a_decided_claim_has_no_noise_to_blame():
    assert better(TEST, side(TRE=0.1), side(TRE=0.2), "TRE").cause is None
    assert near(TEST, side(TRE=0.1), side(TRE=0.2), "TRE", 0.02).cause is None
    assert gains(TEST, side(XAUC=0.7), side(XAUC=0.7), "XAUC", 0.01).cause is None


def test_there_is_no_bias_to_cut_only_where_neither_side_is_biased():
    fair = side("host", noise=0.02, TRE=0.01, STRE=0.001)
    biased = side(noise=0.001, TRE=0.2, STRE=0.2)
    cause = causes.nothing_to_cut(TEST, fair, fair, "TRE")
    assert cause.kind == DATA
    assert "host has no bias to cut here" in cause.evidence
    assert causes.nothing_to_cut(TEST, biased, fair, "TRE") is None
    assert causes.nothing_to_cut(TEST, fair, biased, "TRE") is None


def test_the_size_of_noise_without_bias_is_that_of_the_half_normal():
    ours, host = side(noise=0.04, blocks=0.0, STRE=0.0, TRE=0.03), side(STRE=0.05, TRE=0.05)
    deviation = np.std([-0.04, -0.02, 0.0, 0.02, 0.04], ddof=1)
    cause = causes.within_the_noise_of_no_bias(TEST, ours, host, "TRE", 0.3)
    assert cause.kind == SIZE
    assert f"below {0.3 * 0.05:.4f}" in cause.evidence
    assert f"{math.sqrt(2 / math.pi) * deviation:.4f} on average" in cause.evidence
    assert causes.within_the_noise_of_no_bias(TEST, ours, side(STRE=0.5, TRE=0.5), "TRE", 0.3) is None


def test_another_protocol_is_the_cause_where_it_changes_the_answer():
    no, yes, unsure = (Finding(holds, holds) for holds in (NO, YES, UNDECIDED))
    assert causes.changed("so", no, yes, no) == Cause(PROTOCOL, "so the claim holds: yes")
    assert causes.changed("so", no, unsure, no).evidence == "so the difference is within noise: undecided"
    assert causes.changed("so", no, no, yes).evidence == "so it is nearer: yes"
    assert causes.changed("so", unsure, unsure, yes) is None
    assert causes.changed("so", no, no, unsure) is None


def test_the_median_wins_by_its_metric_where_the_total_of_the_winner_is_too_low():
    mean, median = side("mean", NMAE=1.0, PGR=1.0), side("median", NMAE=0.8, PGR=0.6)
    ours, low, high = side("ours", NMAE=0.9, PGR=1.0), side("low", NMAE=0.7, PGR=0.7), side("high", NMAE=0.7, PGR=1.3)
    cause = causes.asks_for_the_median(TEST, ours, low, mean, median)
    assert cause.kind == METRIC
    assert "low predicts 70% of the total, ours 100%" in cause.evidence
    assert causes.asks_for_the_median(TEST, ours, high, mean, median) is None
    assert causes.asks_for_the_median(TEST, ours, low, median, mean) is None


def test_overfitting_is_seen_on_the_training_rows():
    ours, rival = side(train={"NRMSE": 0.8}, NRMSE=1.1), side("rival", train={"NRMSE": 0.9}, NRMSE=1.0)
    assert causes.holds_on_training_rows(ours, rival, "NRMSE").kind == SIZE
    assert causes.holds_on_training_rows(rival, ours, "NRMSE") is None


def test_a_metric_by_which_the_truth_loses_does_not_ask_for_the_mean():
    truth = Side("the truth", side(TRE=0.3).reports[:1])
    assert causes.beats_the_truth(TEST, side("rival", TRE=0.1), truth, "TRE").kind == METRIC
    assert causes.beats_the_truth(TEST, side("rival", TRE=0.4), truth, "TRE") is None


def test_what_was_not_lost_cannot_be_regained():
    plain, base = side("plain", XAUC=0.700), side("base", XAUC=0.704)
    assert causes.little_to_regain(TEST, plain, base, 0.01).kind == DATA
    assert causes.little_to_regain(TEST, plain, base, 0.003) is None
    assert causes.order_of_the_mean_is_free(TEST, base, plain).kind == DATA
    assert causes.order_of_the_mean_is_free(TEST, plain, base) is None


@pytest.mark.parametrize("name", ["nothing_to_cut", "within_the_noise_of_no_bias"])
def test_what_was_not_run_shows_nothing(name):
    assert getattr(causes, name)(TEST, Side("a", []), side(TRE=0.1, STRE=0.1), "TRE") is None


def test_tables_name_the_causes_of_their_failures():
    good = side(TRE=0.1, MRE=0.1, NRMSE=1.0, NMAE=0.5, XAUC=0.7, NDCG=0.9, TopNDCG=0.6, STRE=0.1, PGR=1.1).reports
    bad = side(TRE=0.8, MRE=0.8, NRMSE=9.0, NMAE=5.0, XAUC=0.6, NDCG=0.8, TopNDCG=0.5, STRE=0.8, PGR=5.0).reports
    found = {row.id: good for row in debiasing.EXTENSION.rows} | {("GTS", "MDME"): bad}
    answers = {(answer.claim, answer.where): answer for answer in debiasing.extension_claims(found, "d")}
    cause = answers["GTS lowers the NRMSE of its host", "d, MDME"].cause
    assert cause.kind == PROTOCOL
    assert cause.evidence.startswith("with κ = 1")

    diverged = [{"failed": "nan"}] * 5
    found = {("LogSUN", "S0"): good, ("LogSUN", "S1"): good, ("LogSUN", "S2"): bad}
    found |= {("by SGD", "S0"): diverged, ("by SGD", "S2"): good}
    (first, *_) = ablations.scheme_claims(found, "d")
    assert first.cause == Cause(
        PROTOCOL, "by SGD, the paper's optimiser, S0 diverges with 5 of 5 seeds and S2 with no seed"
    )

    found = {row.id: good for row in comparison.COMPARISON.rows} | {("LogSUN", "-"): bad, ("SqrtSUN", "-"): bad}
    found["LogSUN, z finished", "-"] = good
    (first, *_) = comparison.error_claims(found, "d")
    assert first.cause.kind == PROTOCOL
    assert first.cause.evidence.startswith("with two epochs of z alone the difference is within noise")
