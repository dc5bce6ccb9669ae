"""Rows are held out singly, by time or by group, and validation rows are chosen by the same rule."""

import numpy as np
import pytest

from transun.data import HoldOutGroups, HoldOutRows, HoldOutTime, read_table
from transun.data.holdout import parse_hold_out, recommend_hold_out

ROWS = 4000
RNG = np.random.default_rng(0)
TABLE = read_table(
    {
        "user": RNG.integers(0, 300, ROWS),
        "day": RNG.permutation(ROWS).astype("M8[h]").astype("M8[us]"),
        "week": RNG.integers(1, 11, ROWS),
        "gmv": RNG.lognormal(size=ROWS),
    }
)


def test_the_last_rows_are_held_out():
    train, test = HoldOutTime("day").split(TABLE, 0.2, seed=0)
    assert len(test) == ROWS // 5
    assert max(train["day"].to_pylist()) < min(test["day"].to_pylist())
    assert f"from {min(test['day'].to_pylist())} on" in HoldOutTime("day").description(test, 0)


def test_moments_stay_together_and_the_nearest_share_is_taken():
    """Of ten equal weeks, the last two are the fifth."""
    _, test = HoldOutTime("week").split(TABLE, 0.2, seed=0)
    assert set(test["week"].to_pylist()) == {9, 10}


@pytest.mark.parametrize(("early", "held_out"), [(900, 100), (500, 500), (100, 900)])
def test_two_moments_are_always_parted(early, held_out):
    table = read_table({"year": [2023] * early + [2024] * (1000 - early)})
    train, test = HoldOutTime("year").split(table, 0.2, seed=0)
    assert (len(train), len(test)) == (early, held_out)
    assert set(test["year"].to_pylist()) == {2024}


def test_groups_are_held_out_whole():
    train, test = HoldOutGroups("user").split(TABLE, 0.2, seed=0)
    assert not set(train["user"].to_pylist()) & set(test["user"].to_pylist())
    users = len(set(test["user"].to_pylist()))
    assert abs(users - 60) < 4 * (300 * 0.2 * 0.8) ** 0.5
    assert f"{users} values of 'user'" in HoldOutGroups("user").description(test, 0)
    assert HoldOutGroups("user").useless == ("user",)


@pytest.mark.parametrize("rule", [HoldOutTime("day"), HoldOutGroups("user")])
def test_validation_rows_follow_the_same_rule(rule):
    rest, _ = rule.split(TABLE, 0.2, seed=0)
    train, valid = rule.validation_split(rest, 0.1, seed=0)
    assert len(train) + len(valid) == len(rest)
    assert 0.03 * len(rest) < len(valid) < 0.2 * len(rest)
    if rule == HoldOutTime("day"):
        assert max(train["day"].to_pylist()) < min(valid["day"].to_pylist())
    else:
        assert not set(train["user"].to_pylist()) & set(valid["user"].to_pylist())


@pytest.mark.parametrize("rule", [HoldOutTime("day"), HoldOutGroups("day"), HoldOutRows()])
def test_where_the_rule_cannot_choose_validation_rows_it_chooses_none(rule):
    table = read_table({"day": [1] * 50})
    assert rule.validation_split(table, 0.1, seed=0) == (table, None)
    assert rule.validation_split(TABLE, 0.0, seed=0) == (TABLE, None)


def test_a_row_without_a_time_is_named():
    with pytest.raises(ValueError, match=r"column 'day', row 1 has no time: .* by rows or groups"):
        HoldOutTime("day").validation_split(read_table({"day": [1, None, 3]}), 0.5, seed=0)


@pytest.mark.parametrize("text", ["rows", "time:day", "group:user", "time:a:b"])
def test_a_rule_comes_back_from_its_text(text):
    assert str(parse_hold_out(text)) == text


@pytest.mark.parametrize("text", ["", "day", "time", "time:", "group:", "week:day", "Rows", "rows:day"])
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match="rows, time:COLUMN or group:COLUMN"):
        parse_hold_out(text)


def test_times_and_ids_that_repeat_are_recommended():
    advice = recommend_hold_out(TABLE, {"user": 300, "week": 10})
    assert [str(rule) for rule in advice] == ["time:day", "group:user"]
    assert "300 ids that repeat" in advice[HoldOutGroups("user")]


@pytest.mark.parametrize(
    ("column", "recommended"),
    [
        (["2024-01-01", "2024-01-02"], True),
        (np.array(["2024-01-01", "2024-01-02"], "M8[D]"), True),
        (["soon", "later"], False),
        ([1.5, 2.5], False),
        ([None, None], False),
    ],
)
def test_times_are_recognised_by_their_values(column, recommended):
    assert bool(recommend_hold_out(read_table({"when": column, "y": [1.0, 2.0]}), {})) == recommended


@pytest.mark.parametrize(
    ("name", "recommended"), [("year", True), ("cut_week", True), ("Week", True), ("weekday", False), ("age", False)]
)
def test_whole_numbers_that_count_time_are_recognised_by_their_name(name, recommended):
    assert bool(recommend_hold_out(read_table({name: [40, 41]}), {})) == recommended
