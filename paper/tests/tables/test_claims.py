"""The answers of tables and figures, from numbers whose answer is plain."""

import numpy as np
import pytest

from transun_paper.tables import ablations, comparison, curves, debiasing, figures, sgd, techniques
from transun_paper.tables.efficiency import SHARING

BASE = {"TRE": 0.1, "MRE": 0.1, "NRMSE": 1.0, "NMAE": 0.5, "XAUC": 0.70, "NDCG": 0.9, "TopNDCG": 0.6}


def reports(**changed: float) -> list[dict]:
    """Three seeds with little noise around the base values, some of them changed."""
    shift = 1e-5 * np.linspace(-1, 1, 20)
    values = BASE | changed
    return [
        {
            "metrics": {name: value + noise for name, value in values.items()},
            "left_out": {name: (value + noise + shift).tolist() for name, value in values.items()},
            "train": dict(values),
        }
        for noise in (-1e-5, 0.0, 1e-5)
    ]


def holds(claims) -> dict[str, str]:
    return {f"{claim.claim} @ {claim.where}": claim.holds for claim in claims}


def test_the_best_in_every_error_and_the_cost_in_xauc():
    found = {(row.method, row.label): reports() for row in comparison.COMPARISON.rows}
    found["LogSUN", "-"] = reports(TRE=0.05, MRE=0.05, NRMSE=0.9, XAUC=0.69)
    found["SqrtSUN", "-"] = reports(NMAE=0.6, TRE=0.2, XAUC=0.71)
    answers = holds(comparison.error_claims(found, "d"))
    assert answers["LogSUN or SqrtSUN has the best TRE of all methods @ d"] == "yes"
    assert answers["LogSUN or SqrtSUN has the best NMAE of all methods @ d"] == "undecided"
    assert answers["LogSUN has a lower XAUC than LogMSE @ d"] == "yes"
    assert answers["SqrtSUN has a lower XAUC than SqrtMSE @ d"] == "no"


def test_places_by_ndcg_and_xauc():
    found = {(row.method, row.label): reports() for row in comparison.RANKING.rows}
    found["LogSUN", "-"] = reports(NDCG=0.95, XAUC=0.6, TopNDCG=0.7)
    answers = holds(comparison.ranking_claims(found, "d"))
    assert set(answers.values()) == {"yes"}
    found["LogSUN", "-"] = reports(TopNDCG=0.7)  # equal to all others by NDCG and by XAUC
    assert "undecided" in holds(comparison.ranking_claims(found, "d")).values()
    found["LogSUN", "-"] = reports(NDCG=0.8, XAUC=0.9, TopNDCG=0.5)
    assert set(holds(comparison.ranking_claims(found, "d")).values()) == {"no"}


def test_the_extension_has_to_cut_seventy_per_cent():
    found = {("host", host): reports(TRE=1.0, MRE=1.0) for host in ("WLR", "ZILN", "MDME", "OptDist")}
    found |= {("GTS", host): reports(TRE=0.2, MRE=0.4, NRMSE=0.9) for _, host in list(found)}
    found["GTS, κ = 1", "MDME"] = reports()
    answers = holds(debiasing.extension_claims(found, "d"))
    assert answers["GTS cuts the TRE of its host by 70 % or more @ d, WLR"] == "yes"
    assert answers["GTS cuts the MRE of its host by 70 % or more @ d, WLR"] == "no"
    assert answers["GTS lowers the NRMSE of its host @ d, ZILN"] == "yes"
    assert answers["GTS costs its host no more than 0.002 of XAUC @ d, MDME"] == "yes"


def test_schemes_and_instances_compare_with_transuns_own():
    found = {("LogSUN", "S0"): reports(TRE=0.2), ("LogSUN", "S1"): reports(XAUC=0.8), ("LogSUN", "S2"): reports()}
    answers = holds(ablations.scheme_claims(found, "d"))
    assert answers["S2 beats S0 in TRE @ d"] == "yes"
    assert answers["S2 beats S1 in XAUC @ d"] == "no"
    assert answers["S2 beats S0 in NMAE @ d"] == "undecided"
    found = {row.id: reports(TRE=0.2, NRMSE=1.1, XAUC=0.6) for row in ablations.INSTANCE_TABLE.rows}
    found[ablations.INSTANCE_TABLE.rows[0].id] = reports(MRE=0.3)
    answers = holds(ablations.instance_claims(found, "d"))
    assert answers.pop("TranSUN's slope beats κ = |u| in MRE @ d") == "no"
    assert answers["MSE is a better point loss than MSPE (TRE) @ d"] == "yes"
    assert answers["TranSUN's slope beats κ = 1/(|u|+ε) in XAUC @ d"] == "yes"


def test_sharing_hurts_where_it_does():
    none, _, one, two, three = SHARING
    found = {("LogSUN", label): reports() for label in SHARING}
    found["LogSUN", one] = reports(TRE=0.2)
    found["LogSUN", three] = reports(TRE=0.05, NRMSE=1.2)
    answers = holds(ablations.sharing_claims(found, "d"))
    assert answers["Sharing the embedding changes TRE by less than 0.02 and NRMSE by less than 1 % @ d"] == "yes"
    hurts = "Sharing more layers hurts: worse {} than with the embedding alone @ d, {}"
    assert answers[hurts.format("TRE", one)] == "yes"
    assert answers[hurts.format("TRE", two)] == "undecided"
    assert answers[hurts.format("TRE", three)] == "no"
    assert answers[hurts.format("NRMSE", three)] == "yes"
    found["LogSUN", none] = reports(TRE=0.2)
    assert next(iter(holds(ablations.sharing_claims(found, "d")).values())) == "no"


def test_corrections_are_comparable_when_not_worse():
    found = {row.id: reports() for row in debiasing.POSTHOC.rows}
    found["LogMSE", "-"] = reports(TRE=1.0)
    found["LogMSE", "SIR"] = reports(TRE=0.05)
    found["LogMSE", "NTE"] = reports(TRE=0.5)
    answers = list(holds(debiasing.posthoc_claims(found, "d")).values())
    assert answers == ["yes", "yes", "no", "yes"]


def test_epsilon_is_flat_or_not():
    found = {row.label: reports() for row in figures.EPSILON.rows}
    found["1000"] = reports(TRE=0.5)
    assert list(holds(figures.EPSILON.claims(found, "d")).values()) == ["yes", "undecided", "yes"]
    found["0.01"] = reports(NRMSE=1.2)
    assert next(iter(holds(figures.EPSILON.claims(found, "d")).values())) == "no"


def test_epsilon_shows_the_noise_of_seeds():
    (point, *_) = figures.EPSILON.panel({"0.1": reports()})["points"]
    mean, error = point["TRE"]
    assert mean == pytest.approx(0.1)
    assert error == pytest.approx(1e-5 / 3**0.5)


def test_bins_are_means_over_seeds_and_the_worst_one_decides():
    def seeds(*stre: list[float], slope: tuple[float, ...] = ()) -> list[dict]:
        found = []
        for values in stre:
            bins = {"count": [1] * len(values), "stre": values} | ({"slope": list(slope)} if slope else {})
            found.append({"metrics": {}, "bins": {"target": bins, "prediction": bins}})
        return found

    found = {
        "LogMSE": seeds([0.5, -3.0], [0.5, -5.0]),
        "LogSUN": seeds([0.5, -1.0], [0.7, -1.0], slope=(0.3, 0.2)),
    }
    panel = figures.BINS.panel(found)
    assert panel["target"]["LogMSE"]["stre"] == [0.5, -4.0]
    assert [claim.holds for claim in figures.BINS.claims(found, "d")] == ["yes", "yes", "yes"]
    found["LogSUN"] = seeds([0.5, -9.0], slope=(0.2, 0.3))
    assert [claim.holds for claim in figures.BINS.claims(found, "d")] == ["no", "no", "no"]


def test_curves_are_tested_over_seeds():
    levels = {"LogMSE": {"PGR": [0.5, 0.52, 0.51]}, "LogSUN": {"PGR": [1.01, 0.99, 1.02]}, "MSE": {"PGR": [1.0] * 3}}
    assert [claim.holds for claim in curves.TRAINING.claims(levels, "d")] == ["yes", "yes"]
    levels = {"LogMSE": {"PGR": [0.5, 1.2, 0.9]}, "LogSUN": {"PGR": [1.3, 1.31, 0.7]}}
    assert [claim.holds for claim in curves.TRAINING.claims(levels, "d")] == ["undecided", "no"]
    levels["LogSUN"]["trained"] = [1.01, 0.99, 1.02]
    (_, answer) = curves.TRAINING.claims(levels, "d")
    assert answer.cause.kind == "protocol"
    assert answer.cause.evidence.startswith(
        "after the longer training of the leaderboard the claim holds: PGR of LogSUN"
    )
    levels = {"S0": {"TRE": [0.1, 0.12]}, "S1": {"TRE": [0.01, 0.011]}, "S2": {"TRE": [0.05, 0.0501]}}
    assert [claim.holds for claim in curves.SCHEME_CURVES.claims(levels, "d")] == ["undecided", "no"]
    assert {claim.holds for claim in curves.SCHEME_CURVES.claims({}, "d")} == {"unknown"}


def test_ranking_losses_and_fusion_have_to_gain_what_the_paper_says():
    found = {row.id: reports() for row in techniques.TECHNIQUES.rows}
    found["LogSUN", "f by y"] = reports(XAUC=0.715)
    found["LogSUN", "both"] = reports(XAUC=0.705)
    found["LogSUN", "fusion"] = reports(XAUC=0.7045, TRE=0.2)
    found["LogSUN", "z finished"] = reports(TRE=0.02)
    answers = holds(techniques.technique_claims(found, "d"))
    assert answers["A ranking loss lifts the XAUC of LogSUN by more than 0.01 @ d, f by y"] == "yes"
    assert answers["A ranking loss lifts the XAUC of LogSUN by more than 0.01 @ d, both"] == "no"
    assert answers["Fusion lifts the XAUC of LogSUN by more than 0.003 @ d"] == "yes"
    assert answers["Two epochs of z alone lower the TRE of LogSUN @ d"] == "yes"
    assert answers["The remedy changes the TRE of LogSUN by less than 0.02 @ d, fusion"] == "no"
    assert answers["The remedy changes the TRE of LogSUN by less than 0.02 @ d, both"] == "yes"


def test_a_scheme_that_diverges_by_sgd_is_named():
    found = {row.id: reports() for row in sgd.BY_SGD.rows}
    found["LogSUN", "S0"] = [*reports()[:2], {"failed": "bias became nan in step 182"}]
    (first, *_) = sgd.sgd_claims(found, "d")
    assert first.holds == "unknown"
    assert first.evidence == "S0 failed with 1 of 3 seeds: bias became nan in step 182"


def test_iterations_to_the_same_error():
    slow = [[(step, 3.0 - 0.1 * step) for step in range(1, 21)] for _ in range(3)]
    fast = [[(step, 3.0 - 0.2 * step) for step in range(1, 11 + seed)] for seed in range(3)]
    # Both reach 1.0, the faster one after half of the steps; within 2 % a step earlier is not enough.
    (answer,) = curves.ITERATIONS.claims({"LogSUN": {"path": fast}, "OptDist": {"path": slow}}, "d")
    assert answer.holds == "yes"
    assert "steps: LogSUN 10, OptDist 20, ratio 2.00" in answer.evidence
