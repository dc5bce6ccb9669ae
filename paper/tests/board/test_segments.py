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
    measured = {"worst": worst, "worst_errors": errors, "limit": 0.35, "limit_errors": 3.5}
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
    """The limits of chance are an error of 0.35 and 3.5 standard errors."""
    by_chance = [result("as it is", 0.2, 3.4, 1.0, base="c"), result("multicalibrated", 0.2, 3.4, 1.0, base="c")]
    halved = [result("as it is", 0.4, 9.0, 1.0), result("multicalibrated", 0.19, 8.0, 1.0)]
    as_chance = [result("as it is", 0.4, 9.0, 1.0, base="d"), result("multicalibrated", 0.3, 3.4, 1.0, base="d")]
    rivals = [result("MCGrad", 0.3, 3.6, 1.0), result("MCGrad", 0.3, 3.4, 1.0, base="d")]  # neither, and by chance
    claim = segments.claims([*by_chance, *halved, *as_chance, *rivals])[0]
    assert claim["holds"]
    assert claim["evidence"].startswith("halved on 1 of 2 and what chance makes it on 1 more; on the 1 others")
    assert claim["evidence"].endswith("MCGrad does one or the other on 1 of 2")


def test_chance_makes_a_calibrated_model_as_wrong_as_it_says():
    """Of 60 calibrated models about 3 exceed one of two limits that each is exceeded in 1 of 40 cases."""
    rng = np.random.default_rng(0)
    n, beyond, worst, chance = 1_000, 0, [], []
    frame = pd.DataFrame({name: rng.choice(["x", "y", "z"], n) for name in "abc"}).astype("category")
    for _ in range(60):
        pred = rng.uniform(0.5, 2.0, n)
        errors = segments.segment_errors(frame, frame, pred * rng.gamma(1.0, 1.0, n), pred)
        beyond += segments.beyond_chance(errors)
        worst.append(errors["worst"])
        chance.append(errors["chance"])
    # The probability of more than 8 of 60 is 0.3 % at 1 in 20.
    assert beyond <= 8
    assert np.mean(worst) == pytest.approx(np.mean(chance), abs=4 * np.std(worst) / np.sqrt(60))
