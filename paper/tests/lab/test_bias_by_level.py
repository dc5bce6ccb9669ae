import numpy as np
import pytest

from transun_paper.lab import bias_by_level
from transun_paper.lab.bias_by_level import Simulation, bias_by_level_table, draw, level_claims
from transun_paper.lab.progress import silent
from transun_paper.lab.store import Store


def centre(x):
    return 2.0 + 0.5 * x[:, 0] - 0.3 * x[:, 1]


class Oracle:
    """Knows the law: predicts `factor` times the true mean, or what a log-trained model tends to."""

    def __init__(self, factor=1.0, retransformed=False):
        self.factor, self.retransformed = factor, retransformed

    def fit(self, x, y):
        return self

    def predict(self, x):
        spread = 0.3 + 0.18 * x[:, 1]
        return self.factor * np.exp(centre(x) + (0.0 if self.retransformed else spread**2 / 2.0))


def test_draws_follow_the_stated_law():
    x, y, mean = draw(200_000, seed=0)
    cell = (x[:, 0] == 3) & (x[:, 1] == 4)
    logs = np.log(y[cell])
    spread = 0.3 + 0.18 * 4
    assert logs.mean() == pytest.approx(2.0 + 1.5 - 1.2, abs=4 * spread / np.sqrt(len(logs)))
    assert logs.std() == pytest.approx(spread, rel=4 / np.sqrt(2 * len(logs)))
    assert mean[cell] == pytest.approx(np.exp(2.3 + spread**2 / 2))
    assert all(np.array_equal(a, b) for a, b in zip(draw(100, 7), draw(100, 7), strict=True))


@pytest.fixture
def table(tmp_path, monkeypatch):
    methods = {
        "GTS, p = 1": lambda base: Oracle(),
        "GTS, p = 2": lambda base: Oracle(1.1),
        "smearing": lambda base: Oracle(1.1),
        "log target": lambda base: Oracle(retransformed=True),
    }
    monkeypatch.setattr(bias_by_level, "METHODS", methods)
    entries = bias_by_level_table(Store(tmp_path), Simulation(repeats=3, rows=10), silent)
    return {entry["method"]: entry for entry in entries}


def test_the_bias_of_a_known_prediction(table):
    assert table["GTS, p = 1"]["bias"] == pytest.approx([0.0] * 10, abs=1e-9)
    assert table["smearing"]["bias"] == pytest.approx([0.1] * 10)


def test_the_bias_of_a_log_trained_model_has_a_closed_form(table):
    """Over rows of one part, Σ exp(centre) / Σ exp(centre + spread²/2) - 1, here recomputed from the same draws."""
    biases = []
    for seed in range(3):
        x, _, mean = draw(36_000, 10_000 + seed)
        order = np.argsort(mean, kind="stable").reshape(10, 3_600)
        biases.append(np.exp(centre(x))[order].sum(1) / mean[order].sum(1) - 1.0)
    entry = table["log target"]
    assert entry["bias"] == pytest.approx(np.mean(biases, axis=0), rel=1e-4)
    assert entry["error"] == pytest.approx(np.std(biases, axis=0, ddof=1) / np.sqrt(3), rel=1e-4)
    assert max(entry["bias"]) < 0


def test_claims_need_every_level_inside_the_interval():
    def entry(method, largest):
        return {"method": method, "bias": [0.0, largest], "error": [0.01, 0.01]}

    good = [entry("GTS, p = 1", 0.02), entry("GTS, p = 2", -0.03), entry("smearing", 0.5), entry("log target", -0.5)]
    # 0.02 is 2 standard errors and inside 2.807, -0.03 is 3 and outside.
    assert [claim.holds for claim in level_claims(good)] == [True, False, True, True]
    assert level_claims(good)[1].evidence == "largest bias is 3.0 standard errors; the interval ends at 2.807"
