"""`transun total`: page, terminal and JSON say the same, and mistakes end in a sentence."""

import json

import pytest

from shop import orders

pytest.importorskip("polars")


@pytest.fixture
def rows(here):
    orders(1200, 7).drop("gmv").write_csv(here / "new.csv")
    orders(900, 8).write_csv(here / "labelled.csv")
    return here


def test_the_example_of_the_help_runs_and_says_the_same_everywhere(rows, run):
    found = run("total", "model", "new.csv", "--labelled", "labelled.csv", "--by", "country", "--out", "total")
    values = json.loads((rows / "total" / "total.json").read_text())
    whole = values["totals"]["whole"]
    actual = orders(1200, 7)["gmv"].sum()
    # The noise of 900 labelled and 1200 new rows whose amounts vary by their mean is 5 % of the total.
    assert whole["value"] == pytest.approx(actual, rel=0.2)
    for text in (found.out, (rows / "total" / "total.html").read_text(), (rows / "total" / "total.md").read_text()):
        assert "The total is" in text
    assert "country" in found.out
    helped = " ".join(run("total", "--help").out.split())
    assert "Exit codes" in helped
    assert "transun total model new.csv" in helped.replace(" │ ", " ")


def test_json_is_what_the_file_holds(rows, run):
    found = run("total", "model", "new.csv", "--labelled", "labelled.csv", "--level", 0.9, "--cap", 500, "--json")
    assert json.loads(found.out) == json.loads((rows / "total" / "total.json").read_text())
    assert json.loads(found.out)["totals"]["whole"]["level"] == 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labelled", "orders.csv"], "are training rows of the model"),
        (["--labelled", "new.csv"], "gmv"),
        (["--labelled", "labelled.csv", "--cluster", "person"], "person"),
        (["--labelled", "labelled.csv", "--level", 95], "strictly between 0 and 1"),
        (["--labelled", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_mistakes_end_in_a_sentence_and_write_nothing(rows, run, options, message):
    found = run("total", "model", "new.csv", *options, code=2)
    assert message in found.err
    assert not (rows / "total").exists()


def test_predict_adds_up_by_the_certificate(rows, run):
    found = run("predict", "model", "new.csv", "--out", "predictions.csv")
    assert "The total is" in found.out
    assert "This holds for rows like those of the certificate" in found.out
    values = json.loads(run("predict", "model", "new.csv", "--out", "predictions.csv", "--json").out)
    assert values["total"]["low"] < values["total"]["value"] < values["total"]["high"]


def test_predict_without_a_certificate_says_nothing_about_the_total(rows, run):
    import shutil

    shutil.copytree(rows / "model", rows / "bare")
    (rows / "bare" / "certificate.json").unlink()
    assert "The total is" not in run("predict", "bare", "new.csv", "--out", "predictions.csv").out


def test_terminal_page_and_certificate_say_how_well_the_total_can_be_known(rows, run):
    words = "rows held out know the total to ±"
    assert words in (rows / "model" / "report.html").read_text()
    assert words in run("info", "model").out
    assert words in run("evaluate", "model", "--certificate", "--require", "noise < 10").out
    assert "values of 'order' held out know" in run("evaluate", "model", "labelled.csv", "--cluster", "order").out
