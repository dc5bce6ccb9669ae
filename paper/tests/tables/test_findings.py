import numpy as np
import pytest
from scipy import stats

from transun_paper.tables.findings import (
    NO,
    UNDECIDED,
    UNKNOWN,
    YES,
    Finding,
    Side,
    TestRows,
    TrainRows,
    below,
    best_of,
    better,
    every,
    near,
)


def reports(*values: float, metric: str = "TRE", blocks: float = 1e-4) -> list[dict]:
    """Reports of one seed each, with leave-out values that scatter by `blocks` around the metric."""
    shift = blocks * np.linspace(-1, 1, 20)
    return [
        {"metrics": {metric: v}, "train": {metric: v}, "left_out": {metric: (v + shift * np.sign(v)).tolist()}}
        for v in values
    ]


def side(*values: float, **settings) -> Side:
    return Side("a method", reports(*values, **settings))


@pytest.mark.parametrize("rows", [TestRows(), TrainRows()])
def test_a_cut_by_seventy_per_cent_leaves_thirty_per_cent(rows):
    biased = side(1.0, 1.01, 0.99, 1.0, 1.0)
    assert better(rows, side(0.2, 0.21, 0.19, 0.2, 0.2), biased, "TRE", 0.3).holds == YES
    assert better(rows, side(0.4, 0.41, 0.39, 0.4, 0.4), biased, "TRE", 0.3).holds == NO
    assert better(rows, side(0.3, 0.35, 0.25, 0.31, 0.29), biased, "TRE", 0.3).holds == UNDECIDED


def test_more_is_better_for_rankings():
    high, low = (side(*(v + d for d in (0.0, 1e-3, -1e-3)), metric="XAUC") for v in (0.8, 0.7))
    assert better(TestRows(), high, low, "XAUC").holds == YES
    assert better(TestRows(), low, high, "XAUC").holds == NO


def test_training_rows_are_tested_by_seed_alone():
    first, second = [0.5, 0.7, 0.62], [0.6, 0.71, 0.75]
    gap = TrainRows().minus(reports(*first), reports(*second), "TRE", 0.9)
    expected = stats.ttest_rel(first, [0.9 * v for v in second])
    assert gap.p == pytest.approx(expected.pvalue)
    assert gap.value == pytest.approx(np.mean(first) - 0.9 * np.mean(second))
    assert gap.error == pytest.approx(abs(gap.value / expected.statistic))


def test_test_rows_add_the_noise_of_the_rows():
    first, second = reports(0.5, 0.5), reports(0.6, 0.6)
    quiet = TestRows().minus(first, second, "TRE").p
    loud = TestRows().minus(reports(0.5, 0.5, blocks=0.2), second, "TRE").p
    assert quiet < 1e-6 < 0.05 < loud


def test_rows_inside_a_report_are_found():
    inside = [{"top": report} for report in reports(0.5, 0.6)]
    assert TestRows(("top",)).values(inside, "TRE") == [0.5, 0.6]


def test_equality_needs_the_interval_inside_the_margin():
    base = side(1.0, 1.0, 1.0)
    assert near(TestRows(), side(1.004, 1.005, 1.006), base, "TRE", 0.02).holds == YES
    assert near(TestRows(), side(1.04, 1.041, 1.042), base, "TRE", 0.02).holds == NO
    assert near(TestRows(), side(1.0, 1.1, 0.95), base, "TRE", 0.02).holds == UNDECIDED
    assert near(TestRows(), side(10.04, 10.05), side(10.0, 10.0), "TRE", 0.0, share=0.01).holds == YES


def test_all_of_several_findings_hold_only_if_each_does():
    yes, no, noise, unknown = (Finding(holds, "") for holds in (YES, NO, UNDECIDED, UNKNOWN))
    assert every([yes, yes]).holds == YES
    assert every([yes, noise]).holds == UNDECIDED
    assert every([unknown, noise]).holds == UNKNOWN
    assert every([yes, no, unknown]).holds == NO


def test_the_best_is_compared_with_the_best_other():
    found = {"a": reports(0.5, 0.51, 0.49), "b": reports(0.6, 0.61, 0.59), "c": reports(0.9, 0.9, 0.9)}
    assert best_of(TestRows(), "a", found, "TRE").holds == YES
    assert best_of(TestRows(), "b", found, "TRE").holds == NO
    assert "best other b" in best_of(TestRows(), "a", found, "TRE").evidence
    found["d"] = reports(0.5, 0.515, 0.485)
    assert best_of(TestRows(), "a", found, "TRE").holds == UNDECIDED
    found["d"][0]["metrics"]["TRE"] = None  # not finite
    assert best_of(TestRows(), "a", found, "TRE").holds == YES


def test_what_was_not_run_or_failed_is_unknown():
    fine = side(0.5, 0.6)
    assert better(TestRows(), Side("b", []), fine, "TRE").holds == UNKNOWN
    failed = better(TestRows(), fine, Side("b", [*reports(0.5), {"failed": "diverged"}]), "TRE")
    assert (failed.holds, failed.evidence) == (UNKNOWN, "b failed with 1 of 2 seeds: diverged")
    nothing = reports(0.5, 0.6)
    nothing[0]["metrics"]["TRE"] = None
    assert better(TestRows(), Side("b", nothing), fine, "TRE").holds == UNKNOWN
    assert best_of(TestRows(), "a", {"a": fine.reports, "b": [{"failed": "x"}]}, "TRE").holds == UNKNOWN


def test_no_claim_is_judged_by_relative_errors_of_predictions_at_zero():
    fine, floored = (reports(0.5, 0.5, metric="MRE") for _ in range(2))
    for report in floored:
        report["metrics"]["FLOORED"] = report["train"]["FLOORED"] = 0.01
    for rows in (TestRows(), TrainRows()):
        finding = better(rows, Side("a", fine), Side("b", floored), "MRE")
        assert finding.holds == UNKNOWN
        assert "b predicts 0 in 1.00% of the rows" in finding.evidence
    assert best_of(TestRows(), "a", {"a": fine, "b": floored}, "MRE").holds == UNKNOWN


def test_evidence_names_both_sides_and_the_side_of_the_means():
    finding = better(TestRows(), Side("a", reports(0.5, 0.9)), Side("b", reports(0.6, 0.9)), "TRE")
    assert finding.evidence.startswith("TRE: a 0.7000, b 0.7500")
    assert finding.evidence.endswith("the means say yes")
    finding = better(TestRows(), Side("a", reports(0.5, 0.5)), Side("b", reports(0.9, 0.9)), "TRE")
    assert "the means" not in finding.evidence


def test_values_below_others_are_tested_over_seeds():
    a, b = [0.5, 0.52, 0.51], [0.6, 0.63, 0.6]
    finding = below(a, b, "TRE 0.51")
    assert finding == Finding(YES, f"TRE 0.51, p = {stats.ttest_rel(a, b).pvalue:.2g} over 3 seeds")
    assert below(b, a, "").holds == NO
    assert below([0.5, 0.9, 0.7], b, "").holds == UNDECIDED
