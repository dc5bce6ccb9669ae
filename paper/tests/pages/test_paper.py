from transun_paper.pages.paper import claim_parts, ours, paper_page, printed


def report(**changed):
    rows = [
        {"method": "T-MSE", "label": "ln(y+1)", "cells": {"TRE": [0.5, 0.01], "Var": [12345.6, 0.0]}},
        {
            "method": "TranSUN",
            "label": "ln(y+1)",
            "cells": {"TRE": [0.0123, 0.001], "Var": [45.678, 1.0]},
            "against": ["T-MSE", "ln(y+1)"],
            "p": {"TRE": 0.01, "Var": 0.2},
        },
        {"method": "S1", "label": "-", "failed": "the loss became nan"},
    ]
    claim = {"claim": "It helps", "where": "globo", "holds": "no", "evidence": "κ = |u| loses"}
    return {
        "title": "A table",
        "protocol": "By hand.",
        "command": "transun-paper reproduce a",
        "version": "0",
        "torch": "2",
        "columns": ["TRE", "Var"],
        "noise": "of seeds",
        "tables": [{"dataset": "globo", "rows": rows}],
        "claims": [claim, claim | {"where": "lastfm", "holds": "undecided"}],
        "paper": [
            {
                "table": "t",
                "metric": "test rows",
                "columns": ["TRE"],
                "rows": [{"method": "a", "label": "-", "values": [None]}],
            }
        ],
        "notes": ["A note."],
    } | changed


def test_numbers_carry_intervals_and_stars_only_where_tested():
    lines = ours(report()["tables"][0], ["TRE", "Var"]).splitlines()
    assert lines[0] == "| method |  | TRE | Var | tested against |"
    assert lines[2] == "| T-MSE | ln(y+1) | 0.5000 ± 0.0196 | 12,346 ± 0.0000 |  |"
    assert lines[3] == "| TranSUN | ln(y+1) | 0.0123 ± 0.0020 * | 45.68 ± 1.9600 | T-MSE ln(y+1) |"
    assert len(lines) == 4


def test_a_page_names_what_failed_and_quotes_the_paper():
    page = paper_page(report())
    assert "- S1 -: the loss became nan" in page
    assert "standard errors, of seeds. A star" in page
    assert "| a | - | – |" in page
    assert "- A note.\n" in page


def test_a_page_opens_with_a_verdict_and_the_numbers():
    page = paper_page(report())
    order = ["Of 2 checks", "## Ours", "## The paper", "## Does the claim hold?", "## How it was made"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert page.index("Of 2 checks") < 100
    assert "A star" not in paper_page(report(tables=[]))


def test_answers_are_counted_and_listed():
    counts, _, _, details = claim_parts(report()["claims"])[1:]
    assert counts.splitlines()[0] == "| claim, and in how many places it holds | no | undecided |"
    assert counts.splitlines()[2] == "| It helps | 1 | 1 |"
    assert "| It helps | globo | **no** | κ = \\|u\\| loses |" in details
    assert claim_parts([]) == []


def test_causes_are_counted_and_stand_beside_the_evidence():
    base = {"claim": "It helps", "evidence": "numbers"}
    claims = [
        base | {"where": "a", "holds": "no", "cause": {"kind": "metric", "evidence": "medians win"}},
        base | {"where": "b", "holds": "undecided", "cause": {"kind": "size", "evidence": "2.0 times as many rows"}},
        base | {"where": "c", "holds": "no", "cause": None},
        base | {"where": "d", "holds": "yes", "cause": None},
    ]
    *_, counts, details = claim_parts(claims)
    assert [line.split(" | ")[:2] for line in counts.splitlines()[2:]] == [
        ["| size", "1"],
        ["| metric", "1"],
        ["| not shown", "1"],
    ]
    assert "| It helps | a | **no** | numbers | metric: medians win |" in details
    assert "| It helps | c | **no** | numbers | not shown |" in details
    assert "| It helps | d | yes | numbers |  |" in details
    assert len(claim_parts(claims[-1:])) == 3  # where all hold, nothing is explained


def test_printed_numbers_keep_their_digits():
    row = {"method": "m", "label": "-", "values": [461790.3, 0.0123, 100.0]}
    shown = printed({"table": "t", "metric": "rows", "columns": ["a", "b", "c"], "rows": [row]})
    assert shown.endswith("| m | - | 461,790.3 | 0.0123 | 100 |")


def test_costs_follow_the_metrics():
    costs = [{"label": "T-MSE", "MFLOPS": 1.0}, {"label": "shared", "MFLOPS": 2.0, "MFLOPS OH (%)": 100.0}]
    page = paper_page(report(costs=costs))
    assert "| T-MSE | 1.00 | – |" in page
    assert "| shared | 2.00 | 100.00 |" in page
