"""`transun watch`: what it writes, prints and returns, and what it says to mistakes."""

import json

import numpy as np
import pytest

from transun.models.certificate import read_certificate

pl = pytest.importorskip("polars")
ARGUMENTS = ("--time", "day", "--id", "order", "--arrived", "paid", "--since", "2026-03-01")
DAYS = 120


@pytest.fixture
def log(tmp_path, monkeypatch, shop):
    """predictions.csv, and payments.csv, changed.csv of which a quarter is lacking from day 80 on; known by the end."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(shop / "model")
    rng = np.random.default_rng(0)
    period = np.repeat(np.arange(DAYS), 40)
    day = np.datetime64("2026-01-01") + period
    pred = rng.uniform(5.0, 15.0, len(day))
    paid = day + rng.integers(0, 5, len(day))
    amount = pred * rng.gamma(25.0, 0.04, len(day))
    frame = pl.DataFrame({"order": np.arange(len(day)), "day": day, "prediction": pred})
    frame = frame.with_columns(country=pl.Series(rng.choice(["FR", "IT"], len(day))))
    frame.write_csv("predictions.csv")
    known = paid < np.datetime64("2026-01-01") + np.timedelta64(DAYS, "D")
    for name, factor in (("payments", 1.0), ("changed", np.where(period >= 80, 0.75, 1.0))):
        table = pl.DataFrame({"order": np.arange(len(day)), "paid": paid, "gmv": amount * factor})
        table.filter(pl.Series(known)).write_csv(f"{name}.csv")
    return tmp_path


def test_a_quiet_log_is_called_quiet(log, run):
    found = run("watch", "model", "predictions.csv", "--actual", "payments.csv", *ARGUMENTS, "--by", "country")
    assert "NO CHANGE FOUND" in found.out
    assert sorted(path.name for path in (log / "watch").iterdir()) == ["watch.html", "watch.json", "watch.md"]
    certified = read_certificate(log / "model").whole.metrics["PGR"]
    assert f"certified predicted / actual {certified.value:.3f}" in (log / "watch" / "watch.md").read_text()


def test_a_change_ends_in_an_exit_code_of_one_and_says_what_and_since_when(log, run):
    line = ("watch", "model/certificate.json", "predictions.csv", "--actual", "changed.csv", *ARGUMENTS, "--json")
    values = json.loads(run(*line, code=1).out)
    assert values["alarm"]
    (total,) = [series for series in values["series"] if series["what"] == "total"]
    assert total["changed"]
    assert "2026-03-15" <= total["probably_since"] <= "2026-03-30"  # a quarter is lacking from 22 March on
    assert total["ratio"] == pytest.approx(0.75, abs=0.05)
    assert not any(series["changed"] for series in values["series"] if series["what"] in ("delay", "inputs"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time", "date", "--id", "order"), "there is no column 'date'"),
        (("--time", "day", "--id", "order", "--every", "hour"), "--every is day, week or month, got 'hour'"),
        (("--time", "day", "--id", "order", "--since", "March"), "--since is a day as 2026-01-31, got 'March'"),
        (("--time", "day", "--id", "order", "--since", "2026-01-05"), "4 periods before the watch are too few"),
        (
            ("--time", "day", "--id", "order", "--since", "2001-01-05"),
            "--since 2001-01-05 is not within the predictions",
        ),
        (("--time", "day", "--id", "order", "--by", "order"), "these name rows, not segments"),
        (("--time", "day", "--id", "country"), "predicted more than once"),
    ],
)
def test_mistakes_are_one_line(log, run, arguments, message):
    if "country" in arguments:
        pl.read_csv("payments.csv").with_columns(country=pl.lit("FR")).write_csv("payments.csv")
    assert message in run("watch", "model", "predictions.csv", "--actual", "payments.csv", *arguments, code=2).err


def test_two_tables_from_one_pipe_are_refused(log, run):
    assert "cannot both come from standard input" in run("watch", "model", "-", "--actual", "-", *ARGUMENTS, code=2).err
