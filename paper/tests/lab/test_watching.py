"""Simulated years: the data is what it says, and the report counts."""

import numpy as np

from transun_paper.lab.store import Store
from transun_paper.lab.watching import DELAY, HISTORY, Simulation, simulate, summarise


def test_simulated_years_have_their_means():
    quiet, changed = (simulate(0, 0.5, kind, 100, 0.2) for kind in ("nothing", "amounts"))
    # 80,000 orders of a coefficient of variation below 1: 0.4 %.
    assert abs(quiet.amount.sum() / quiet.pred.sum() - 1.0) < 0.02
    assert abs(quiet.delay.mean() - DELAY) < 0.1
    late = changed.period >= HISTORY + 100
    assert abs(changed.amount[late].sum() / changed.pred[late].sum() - 1.2) < 0.03
    np.testing.assert_array_equal(quiet.pred, changed.pred)


def test_the_report_counts_years(tmp_path):
    simulation, store = Simulation(2, 2, 2), Store(tmp_path)
    for name, work in simulation.parts.items():
        changed = {"quiet": [], "delay": ["delay", "total"], "inputs": ["inputs"]}.get(name, ["total"])
        year = {"changed": changed, "days": 10 if "total" in changed else None, "variance": 0.0025}
        for each in work:
            store.keep(each.text, [year] * each.arguments["years"])
    report = summarise(simulation, store)
    assert report["quiet"]["alarms"] == 0
    # σ = 5 %: the fixed test needs 13 days, and five more until labels arrive.
    assert [round(line["fixed_days"], 1) for line in report["found"]] == [18.0, 18.0]
    assert report["apart"]["delay"] == {"total": 2, "segment": 0, "delay": 2, "inputs": 0, "years": 2}
    assert [claim["holds"] for claim in report["claims"]] == [True, True, True]
