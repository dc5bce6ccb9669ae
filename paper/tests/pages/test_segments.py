"""The page of segments says of the trial of powers what its numbers say."""

from transun_paper.pages.segments import segments_page


def entry(base, worst, errors):
    return {"table": "t", "base": base, "worst": {"before": 0.5} | worst, "NRMSE": errors}


TRIAL = {
    "how": "By hand.",
    "entries": [
        entry(
            "Poisson", {"p = 1": 0.2, "p = 1.5": 0.1, "p = 2": 0.3}, {"p = 1": 0.0, "p = 1.5": -0.015, "p = 2": 0.02}
        ),
        entry("Poisson", {"p = 1": 0.2, "p = 1.5": 0.3}, {"p = 1": 0.01, "p = 1.5": 0.0}),
        entry("ln(1 + y)", {"p = 1": 0.2, "p = 1.5": 0.3}, {"p = 1": 0.01, "p = 1.5": 0.0}),
    ],
}
REPORT = {"command": "a command", "claims": [], "missing": [], "trial": TRIAL, "entries": []}


def test_the_trial_of_powers_is_told_by_its_numbers():
    page = segments_page(REPORT)
    assert "By hand." in page
    assert "| t, Poisson | 0.500 | 0.200 | 0.100 | 0.300 | +0.0 % | -1.5 % | +2.0 % |" in page
    assert "| t, ln(1 + y) | 0.500 | 0.200 | 0.300 | – | +1.0 % | +0.0 % | – |" in page
    assert "on 1 of 2 tables with the base Poisson and on 0 of 1 tables with the base ln(1 + y)" in page
    assert "NRMSE is higher than with p = 1.5 on 1 of 1:" in page
