"""`transun abtest`: what it writes and prints, and what it says to mistakes."""

import json
import shlex

import numpy as np
import pytest

from transun.cli.abtest import abtest as command

pytest.importorskip("tea_tasting")
pd = pytest.importorskip("pandas")


@pytest.fixture
def visits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 3_000
    arm = np.where(np.arange(n) % 2 == 0, "control", "new")
    taste = rng.lognormal(size=n)
    frame = pd.DataFrame(
        {
            "user": [f"u{number:04d}" for number in range(n)],
            "arm": arm,
            "gmv": (rng.random(n) < 0.5) * taste * rng.exponential(10.0, n) * np.where(arm == "new", 1.5, 1.0),
            "impressions": rng.poisson(5.0, n) + 1,
            "gmv_before": taste * rng.exponential(10.0, n),
            "country": rng.choice(["IT", "FR"], n),
        }
    )
    frame.to_csv("visits.csv", index=False)
    frame.assign(arm=np.where(np.arange(n) % 3 == 0, "control", "new")).to_csv("lost.csv", index=False)
    return frame


WHO = ("--user", "user", "--value", "gmv")


def test_the_example_of_the_help_runs(visits, run, tmp_path):
    (line,) = [line for line in (command.__doc__ or "").splitlines() if "Example:" in line]
    told = run(*shlex.split(line.split("Example: transun ")[1]))
    assert "new raises gmv per user by" in told.out
    assert "gmv per impressions" in told.out
    assert sorted(path.name for path in (tmp_path / "abtest").iterdir()) == ["abtest.html", "abtest.json", "abtest.md"]
    assert "Exit codes" in run("abtest", "--help").out


def test_json_is_all_that_is_printed(visits, run, tmp_path):
    told = run("abtest", "visits.csv", *WHO, "--arm", "arm", "--by", "country", "--json", "--out", "out")
    values = json.loads(told.out)
    assert values == json.loads((tmp_path / "out" / "abtest.json").read_text(encoding="utf-8"))
    sides = [visits.gmv[visits.arm == arm].mean() for arm in ("control", "new")]
    assert values["effects"][0]["change"]["value"] == pytest.approx(sides[1] / sides[0] - 1.0)
    assert {line["segment"] for line in values["segments"]} == {"IT", "FR"}


def test_a_plan_needs_no_arms(visits, run):
    told = run("abtest", "visits.csv", *WHO, "--plan", 0.05, "--power", 0.9, "--json")
    plan = json.loads(told.out)["plans"][0]
    spread = visits.gmv.std() / visits.gmv.mean()
    assert plan["spread"] == pytest.approx(spread)
    assert plan["users_needed"] == pytest.approx(2 * (1 + 1.05**2) * (spread * 3.2415 / 0.05) ** 2, rel=1e-3)


MISTAKES = {
    "no arm": ("visits.csv --user user --value gmv", "--arm, or plan a test with --plan"),
    "no such column": ("visits.csv --user user --value gvm --arm arm", "did you mean 'gmv'"),
    "no such control": ("visits.csv --user user --value gmv --arm arm --control contrl", "did you mean 'control'"),
    "lost users": ("lost.csv --user user --value gmv --arm arm", "sample-ratio mismatch"),
    "one purpose": ("visits.csv --user user --value gmv --arm arm --per gmv", "two purposes"),
    "bad share": ("visits.csv --user user --value gmv --arm arm --share half", "--share is ARM=SHARE"),
    "some shares": ("visits.csv --user user --value gmv --arm arm --share new=1", "the share of every arm"),
    "no change": ("visits.csv --user user --value gmv --plan 0", "such as 0.01 for 1 %"),
    "segments by user": ("visits.csv --user user --value gmv --arm arm --by gmv_before --per user", "two purposes"),
    "text as value": ("visits.csv --user user --value country --arm arm", "is text, not a number"),
    "blocked output": ("visits.csv --user user --value gmv --arm arm --out visits.csv/x", "name another with --out"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_get_one_line(visits, run, case):
    line, message = MISTAKES[case]
    told = run("abtest", *line.split(), code=2)
    assert message in told.err
    assert len(told.err.strip().splitlines()) == 1


def test_planned_shares_are_what_users_are_compared_with(visits, run):
    shares = ("--share", "control=1", "--share", "new=2")
    assert "control" in run("abtest", "lost.csv", *WHO, "--arm", "arm", *shares).out
