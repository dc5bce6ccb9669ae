from dataclasses import asdict

from transun_paper.lab.default_vs_rivals import dataset_verdict, default_claims
from transun_paper.pages.default_vs_rivals import default_vs_rivals_page


def seeds(nrmse, stre, xauc):
    metrics = {"NRMSE": nrmse, "STRE": stre, "XAUC": xauc}
    left_out = {name: [value + 1e-4 * (block % 2) for block in range(20)] for name, value in metrics.items()}
    return [{"metrics": metrics, "left_out": left_out}] * 2


GAP = {"value": 0.0012, "error": 0.0004, "p": 0.01}
FOUND = {"AutoSUN": seeds(1.25, 0.001, 0.72), "MSE": seeds(1.0, 0.002, 0.7), "LogMSE": seeds(2.0, -0.9, 0.71)}
VERDICTS = [dataset_verdict("here", FOUND)]
REPORT = {
    "command": "transun-paper reproduce ahead",
    "version": "1",
    "torch": "2",
    "protocol": "By one protocol.",
    "verdicts": VERDICTS,
    "claims": [asdict(claim) for claim in default_claims(VERDICTS)],
    "pieces": [{"dataset": "here", "piece": "no bins", "total": -0.05, "NRMSE": GAP, "XAUC": GAP | {"p": 0.6}}],
    "convergence": [
        {"dataset": "here", "method": "MSE", "steps": 120.0, "spread": 14.1, "all": 700, "last": 1.0},
        {"dataset": "there", "method": "AutoSUN", "steps": 80.0, "spread": 0.0, "all": 500, "last": 2.0},
    ],
    "small": [{"dataset": "here", "method": "MSE", "NRMSE": 1.5}],
}


def test_says_where_the_aim_is_missed():
    page = default_vs_rivals_page(REPORT)
    missed = [line for line in page.splitlines() if "more than one standard error" in line]
    assert missed == [
        "| NRMSE is not above the best rival's by more than one standard error, everywhere | **no** "
        "| on 0 of 1, not on here |"
    ]
    assert "| here | +0.001 ± 0.000 | yes | 1.2500 | +0.2500 ± 0.0000 (MSE) |" in page


def test_pieces_are_in_thousandths_with_a_star_for_what_noise_does_not_explain():
    page = default_vs_rivals_page(REPORT)
    assert "| no bins | +1.2 ± 0.4 * |" in page
    assert "| no bins | +1.2 ± 0.4 |" in page
    assert "| no bins | -0.050 |" in page


def test_cells_that_were_not_run_are_dashes():
    page = default_vs_rivals_page(REPORT)
    assert "| here | 700 | 120 ± 14 (1.000) | – |" in page
    assert "| there | 500 | – | 80 ± 0 (2.000) |" in page
