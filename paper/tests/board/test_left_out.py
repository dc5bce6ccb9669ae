import math

import pytest

from transun_paper.board.left_out import Candidates, left_out_summary


def rows(errors, seeds=1):
    """Rows from (valid, test) by config and table."""
    return [
        {
            "config": config,
            "table": table,
            "seed": seed,
            "valid_nrmse": valid,
            "test_nrmse": test,
            "pgr": 1.0 + seed,
            "seconds": 2.0,
        }
        for (config, table), (valid, test) in errors.items()
        for seed in range(seeds)
    ]


# b is best on validation rows of x and y alone, a on those of z by far: only z, left out, is judged by b.
ERRORS = {
    ("a", "x"): (1.0, 1.0),
    ("a", "y"): (1.0, 1.0),
    ("a", "z"): (1.0, 1.0),
    ("b", "x"): (0.9, 0.8),
    ("b", "y"): (0.9, 1.0),
    ("b", "z"): (4.0, 2.0),
}


def test_a_table_has_no_part_in_the_choice_for_itself():
    summary = left_out_summary(rows(ERRORS))
    assert [(line["table"], line["config"]) for line in summary["tables"]] == [("x", "a"), ("y", "a"), ("z", "b")]
    assert summary["chosen"] == "a"  # 0.9 · 0.9 · 4 > 1


def test_means_are_over_the_tables_left_out():
    """To a, the reference: ratios 1, 1 and 2; to the best of each table: 1/0.8, 1 and 2."""
    summary = left_out_summary(rows(ERRORS))
    assert summary["to_reference"]["value"] == pytest.approx(2 ** (1 / 3))
    assert summary["to_best"]["value"] == pytest.approx((2 / 0.8) ** (1 / 3))
    logs = [0.0, 0.0, math.log(2.0)]
    spread = math.sqrt(sum((log - math.log(2.0) / 3) ** 2 for log in logs) / 2 / 3)
    # 4.303 is the 97.5 % quantile of Student's t with 2 degrees of freedom.
    assert summary["to_reference"]["high"] == pytest.approx(math.exp(math.log(2.0) / 3 + 4.302653 * spread))


def test_the_reference_may_be_named():
    summary = left_out_summary(rows(ERRORS), "b")
    assert summary["reference"] == "b"
    by_config = {line["config"]: line["to_reference"]["value"] for line in summary["configs"]}
    assert by_config == {"a": pytest.approx((1 / 1.6) ** (1 / 3)), "b": pytest.approx(1.0)}
    assert {line["config"]: line["chosen"] for line in summary["configs"]} == {"a": 2, "b": 1}


def test_seeds_are_averaged_and_paired():
    both = rows(ERRORS, seeds=2)
    for row in both:
        row["test_nrmse"] *= 1.0 + row["seed"]  # twice the error with the second seed, whatever the setting
    (x, _, z) = left_out_summary(both)["tables"]
    assert x["test"] == pytest.approx(math.sqrt(2.0))
    assert (z["to_reference"]["value"], z["to_reference"]["error"]) == pytest.approx((math.log(2.0), 0.0), abs=1e-12)
    assert x["pgr"] == 1.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[1:], "'a' has \\[\\]"),
        (lambda r: r[:-1], "config 'b' on table 'z' has seeds \\[\\] and 'a' has \\[0\\]: run every config"),
        (lambda r: [row for row in r if row["table"] == "x"], "two tables or more, got 1"),
        (lambda r: [{"config": "a"}], "row 0 has no 'table'"),
    ],
)
def test_incomplete_rows_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Candidates(change(rows(ERRORS)))


def test_an_unknown_reference_is_refused():
    with pytest.raises(ValueError, match="no row has the reference 'c'"):
        Candidates(rows(ERRORS), "c")
