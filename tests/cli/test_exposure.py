"""`--exposure` from the training to the prediction."""

import json

import numpy as np
import pytest

pl = pytest.importorskip("polars")


@pytest.fixture
def policies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind, years = rng.choice(["a", "b"], 1_200), rng.uniform(0.1, 1.0, 1_200)
    claims = years * np.where(kind == "a", 100.0, 300.0) * rng.gamma(4.0, 0.25, 1_200)
    frame = pl.DataFrame({"kind": kind, "years": years, "claims": claims})
    frame.with_columns(low=0.5 * pl.col("years") * 200.0).write_csv("policies.csv")
    frame.rename({"years": "duration"}).write_csv("renamed.csv")
    return tmp_path


def test_the_model_remembers_the_column_and_predicts_amounts(policies, run):
    run("fit", "policies.csv", "--target", "claims", "--exposure", "years", "--exclude", "low", "--only", "trees")
    run("predict", "model", "policies.csv", "--keep", "kind", "--keep", "years", "--out", "premiums.csv")
    premiums = pl.read_csv("premiums.csv")
    rate = (premiums["prediction"] / premiums["years"]).to_numpy()
    for kind, expected in (("a", 100.0), ("b", 300.0)):
        # About 480 training rates of a coefficient of variation of ½: 2.3 %.
        assert rate[(premiums["kind"] == kind).to_numpy()] == pytest.approx(expected, rel=0.1)
    run("predict", "model", "renamed.csv", "--exposure", "duration", "--out", "again.csv")
    assert pl.read_csv("again.csv")["prediction"].to_numpy() == pytest.approx(premiums["prediction"].to_numpy())
    assert "column that the data lacks" in run("predict", "model", "renamed.csv", "--out", "x.csv", code=2).err
    values = json.loads(run("evaluate", "model", "renamed.csv", "--exposure", "duration", "--json").out)
    pgr = next(metric for metric in values["assessment"]["metrics"] if metric["name"] == "PGR")
    total = premiums["prediction"].sum() / pl.read_csv("policies.csv")["claims"].sum()
    assert pgr["value"] == pytest.approx(total, rel=1e-5)


def test_columns_of_predictions_are_diagnosed_and_corrected_per_unit(policies, run):
    line = ("policies.csv", "--target", "claims", "--pred", "low", "--exposure", "years")
    run("diagnose", *line, "--fail-if-biased", code=1)
    assert "per unit of years" in (policies / "diagnosis" / "diagnosis.md").read_text()
    run("debias", *line, "--out", "corrected.csv")
    table = pl.read_csv("corrected.csv")
    # The mean of 1,200 amounts is known to 2 %; predictions of one rate are corrected to about one rate.
    assert table["corrected"].sum() / table["claims"].sum() == pytest.approx(1.0, abs=0.08)
    rates = (table["corrected"] / table["years"]).to_numpy()
    assert rates.std() / rates.mean() < 0.1
