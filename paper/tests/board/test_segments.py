"""Errors by segment, by hand."""

import numpy as np
import pandas as pd
import pytest

from transun_paper.board import segments


def test_the_worst_segment_of_one_column_and_of_two():
    rng = np.random.default_rng(0)
    n = 8_000
    frame = pd.DataFrame({"a": rng.choice(["x", "y"], n), "b": rng.choice(["u", "v"], n)}).astype("category")
    mean = np.where((frame.a == "x") & (frame.b == "u"), 1.5, 1.0)
    y = mean * rng.gamma(100.0, 0.01, n)
    errors = segments.segment_errors(frame, frame, y, np.ones(n))
    # Two values of each column and four pairs; 2,000 rows of noise 0.15 are known to 0.3 %.
    assert errors["count"] == 8
    assert errors["worst"] == pytest.approx(0.5, abs=0.02)  # |1 - 1.5|
    right = segments.segment_errors(frame, frame, y, mean)
    assert right["worst"] < 0.02
    assert right["worst_errors"] < 5.0


def test_small_segments_and_noisy_ones_do_not_count():
    frame = pd.DataFrame({"a": [0.0] * 50 + [1.0] * 200})
    y = np.concatenate([np.full(50, 9.0), np.full(200, 1.0)])
    y[-1] = 1_000.0  # which alone decides the larger segment
    assert segments.segment_errors(frame, frame, y, np.ones(250))["count"] == 0.0


def result(method, worst, errors, nrmse, details="", base="b"):
    measured = {"worst": worst, "worst_errors": errors, "excess": 0.0, "count": 100.0}
    return {"table": "t", "base": base, "method": method, "NRMSE": nrmse, "details": details, "segments": measured}


def test_claims_report_losses():
    results = [
        result("as it is", 0.4, 9.0, 1.0),
        result("multicalibrated", 0.3, 8.0, 1.01, "multicalibrated by 9 rows"),
        result("MCGrad", 0.1, 3.0, 1.0),
    ]
    assert [claim["holds"] for claim in segments.claims(results)] == [False, False, False]
    results[1] = result("multicalibrated", 0.15, 3.5, 1.0005, "multicalibrated by 9 rows")
    assert [claim["holds"] for claim in segments.claims(results)] == [True, True, True]


def test_what_chance_explains_needs_no_halving():
    """Of 100 segments the worst is 3.5 standard errors off in 1 of 20 cases, by the quantile of the normal law."""
    by_chance = [result("as it is", 0.2, 3.4, 1.0, base="c"), result("multicalibrated", 0.2, 3.4, 1.0, base="c")]
    halved = [result("as it is", 0.4, 9.0, 1.0), result("multicalibrated", 0.19, 8.0, 1.0)]
    as_chance = [result("as it is", 0.4, 9.0, 1.0, base="d"), result("multicalibrated", 0.3, 3.4, 1.0, base="d")]
    claim = segments.claims([*by_chance, *halved, *as_chance])[0]
    assert claim["holds"]
    assert claim["evidence"].startswith("halved on 1 of 2 and what chance makes it on 1 more; on the 1 others")
