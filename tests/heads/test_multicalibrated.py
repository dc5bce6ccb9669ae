"""A branch for the log ratio, and how far it is believed: the numbers of a Poisson regression with an offset."""

import pytest
import torch
from sklearn.linear_model import PoissonRegressor

from population import minimise
from transun.heads import GTS, Credible, LogMSE, Multicalibrated, PointHead
from transun.transforms import Identity

Y = torch.tensor([0.5, 1.0, 4.0, 10.5], dtype=torch.float64)  # mean 4


@pytest.mark.parametrize("point", [-1.0, 0.3, 2.0])
def test_the_best_ratio_makes_the_mean_right_whatever_the_inner_head_says(point):
    head = Multicalibrated(LogMSE()).prepare(Y)
    wrong = torch.full((4, 1), point, dtype=torch.float64)

    def cost(z):
        return head.loss((wrong, z.expand(4, 1)), Y)["bias"].mean()

    best = minimise(cost, head.initial_outputs(Y)[1].double() + 0.1).expand(4, 1)
    assert head((wrong, best))[0].item() == pytest.approx(4.0, rel=1e-4)


def ratios(rows=400):
    """Bases and log ratios as raw outputs of a head that predicts both, and targets that follow half of the ratio."""
    generator = torch.Generator().manual_seed(0)
    base = 1.0 + 4.0 * torch.rand(rows, generator=generator, dtype=torch.float64)
    log_ratio = torch.randn(rows, generator=generator, dtype=torch.float64)
    noise = 0.5 + torch.rand(rows, generator=generator, dtype=torch.float64)
    y = 1.7 * base * (0.5 * log_ratio).exp() * noise
    # The prediction of GTS under the default slope is z·(base + 1).
    return (base.unsqueeze(1), (base * log_ratio.exp() / (base + 1.0)).unsqueeze(1)), base, log_ratio, y


@pytest.mark.parametrize("weighted", [False, True])
def test_credibility_is_the_slope_of_a_poisson_regression(weighted):
    """The deviance of y from b·e^(a + c·s) is b times that of y/b from e^(a + c·s)."""
    raw, base, log_ratio, y = ratios()
    weight = torch.linspace(0.5, 2.0, len(y), dtype=torch.float64) if weighted else torch.ones(len(y)).double()
    head = Credible(GTS(PointHead(Identity()))).calibrate(raw, y, weight if weighted else None)
    line = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000)
    line.fit(log_ratio.unsqueeze(1).numpy(), (y / base).numpy(), (weight * base).numpy())
    assert 0.3 < line.coef_[0] < 0.7
    # What is left between two minimisers of one convex function is the tolerance of scikit-learn's.
    assert head.credibility == pytest.approx(line.coef_[0], abs=1e-4)
    expected = base.numpy() * line.predict(log_ratio.unsqueeze(1).numpy())
    assert head(raw).numpy() == pytest.approx(expected, rel=1e-3)
    assert float((weight * head(raw)).sum()) == pytest.approx(float((weight * y).sum()), rel=1e-9)


def test_credibility_ends_at_the_base_and_at_the_whole_ratio():
    raw, base, log_ratio, _ = ratios()
    head = Credible(GTS(PointHead(Identity())))
    opposite, overdone = (base * (power * log_ratio).exp() for power in (-1.0, 3.0))
    assert head.calibrate(raw, opposite).credibility == pytest.approx(0.0, abs=1e-12)
    assert head.calibrate(raw, overdone).credibility == pytest.approx(1.0, abs=1e-12)


def test_full_credibility_predicts_as_the_inner_head():
    raw, *_ = ratios()
    inner = GTS(PointHead(Identity(lower=0.0)))
    torch.testing.assert_close(Credible(inner)(raw), inner(raw))


def test_a_training_forgets_the_credibility():
    head = Credible(Multicalibrated(), credibility=0.2, factor=3.0).prepare(Y)
    assert (head.credibility, head.factor) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Credible(LogMSE()), "the inner head has none"),
        (lambda: Credible(Multicalibrated(), credibility=1.5), "0 <= credibility <= 1"),
        (lambda: Credible(Multicalibrated(), factor=0.0), "a finite factor > 0"),
        (lambda: Credible(GTS(PointHead())).calibrate(ratios()[0], torch.zeros(400)), "some are above 0"),
    ],
)
def test_mistakes_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()
