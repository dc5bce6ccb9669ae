import numpy as np
import pytest
import torch
from scipy import stats

from population import COLUMNS, population, sre
from registry import raw_for
from transun.heads import GaussianMixture, LogNormalMixture

Y = torch.tensor([0.0, 0.2, 1.0, 3.0, 7.0, 40.0], dtype=torch.float64)
HEADS = [GaussianMixture, LogNormalMixture]


def prepared(build, zeros=0.3):
    return build(2, zeros=zeros, centre=0.7, scale=1.6, upper=1e6)


def raws(rows, seed=0):
    return tuple(r.double() for r in raw_for(GaussianMixture(2), rows, seed=seed))


def parts(head, raw):
    """Weights, locations and spreads of the components on the axis, in numpy, and the share of positives."""
    logit, logits, mean, rho = np.split(raw[0].numpy(), [1, 3, 5], axis=1)
    weight = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    width = 1e-2 + np.log1p(np.exp(rho))
    p = 1 / (1 + np.exp(-logit[:, 0])) if head.zeros else np.ones(len(logit))
    return weight, 0.7 + 1.6 * mean, 1.6 * width, p


def law(head, location, spread):
    """The component in units of y: scipy's lognorm is the law of 1 + y."""
    if isinstance(head, GaussianMixture):
        return stats.norm(location, spread)
    return stats.lognorm(s=spread, scale=np.exp(location), loc=-1.0)


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("build", HEADS)
class TestAgainstScipy:
    def test_loss_is_the_negative_log_likelihood(self, build, zeros):
        head, raw = prepared(build, zeros), raws(len(Y))
        weight, location, spread, p = parts(head, raw)
        density = (weight * law(head, location, spread).pdf(Y.numpy()[:, None])).sum(1)
        expected = -np.log(p * density)
        if zeros:
            expected[0] = -np.log(1 - p[0])
        total = sum(head.loss(raw, Y).values())
        np.testing.assert_allclose(total.numpy(), expected, rtol=1e-9)

    def test_cdf(self, build, zeros):
        head, raw = prepared(build, zeros), raws(len(Y))
        weight, location, spread, p = parts(head, raw)
        for v in (Y - 0.5, Y):
            rest = (weight * law(head, location, spread).cdf(v.numpy()[:, None])).sum(1)
            expected = p * rest + (1 - p) * (v.numpy() >= 0)
            np.testing.assert_allclose(head.cdf(raw, v).numpy(), expected, atol=1e-9)

    def test_prediction_is_the_mean(self, build, zeros):
        head, raw = prepared(build, zeros), raws(50)
        weight, location, spread, p = parts(head, raw)
        expected = p * (weight * law(head, location, spread).mean()).sum(1)
        np.testing.assert_allclose(head.point(raw).numpy(), expected, rtol=1e-9)

    @pytest.mark.parametrize("level", [0.02, 0.4, 0.97])
    def test_quantile_inverts_the_cdf(self, build, zeros, level):
        head, raw = prepared(build, zeros), raws(50)
        v = head.quantile(raw, level)
        below = head.cdf(raw, v)
        jumps = v == 0
        assert (below[jumps] >= level).all()
        assert (head.cdf(raw, v - 1e-9)[jumps] <= level + 1e-6).all()
        torch.testing.assert_close(below[~jumps], torch.full_like(below[~jumps], level), atol=1e-6, rtol=0)

    def test_draws(self, build, zeros):
        head = prepared(build, zeros)
        raw = tuple(r[:1].expand(4000, -1) for r in raws(1, seed=4))
        draws = head.sample(raw, torch.Generator().manual_seed(0))
        _, _, _, p = parts(head, raw)
        assert (draws == 0).double().mean().item() == pytest.approx(1 - p[0], abs=0.02)
        rest = draws[draws != 0].numpy()
        weight, location, spread, _ = (value[0] for value in parts(head, raw))
        cdf = np.vectorize(lambda v: (weight * law(head, location, spread).cdf(v)).sum())
        assert stats.kstest(rest, cdf).pvalue > 1e-3


@pytest.mark.parametrize("column", COLUMNS)
def test_gaussian_mixture_is_unbiased(column):
    """paper/methods.md §13.1: any stationary point of the likelihood has the sample mean."""
    assert sre(GaussianMixture(), column, n=5000) == pytest.approx(0.0, abs=1e-3)


def test_lognormal_mixture_is_nearly_unbiased():
    """paper/methods.md §9: -2e-4 on RS-G with three components."""
    assert sre(LogNormalMixture(), "RS-G", n=5000) == pytest.approx(-2e-4, abs=5e-4)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("build", HEADS)
def test_start_is_a_mixture_of_different_components(build, column):
    y = population(column, 5000)
    head = build().prepare(y)
    (start,) = head.initial_outputs(y)
    means = start[4:7]
    assert means.unique().numel() == 3
    single = build(1).prepare(y)

    def cost(head, start):
        return sum(term.mean() for term in head.loss((start.expand(len(y), -1),), y).values())

    # SM-TN is nearly normal: there the second and third component find next to nothing to gain.
    assert cost(head, start) < cost(single, single.initial_outputs(y)[0]) + 1e-4


def test_no_component_collapses_onto_a_repeated_value():
    """Half the targets are exactly 5: the narrowest component is a hundredth of the spread, not a spike."""
    y = torch.cat((torch.full((500,), 5.0), population("RS-G", 500).float()))
    head = GaussianMixture().prepare(y)
    (start,) = head.initial_outputs(y)
    width = torch.nn.functional.softplus(start[7:]) + 1e-2
    assert 1e-2 < width.min() < 2e-2
    assert head.loss((start.expand(len(y), -1),), y)["nll"].isfinite().all()


def test_zeros_are_counted_only_when_there_are_some():
    y = population("RS-ZIG", 1000)
    assert GaussianMixture().prepare(y).zeros == pytest.approx(0.8)
    assert set(GaussianMixture(2).prepare(y).loss(raws(6), Y)) == {"occurrence", "nll"}
    without = GaussianMixture(2).prepare(population("RS-G", 1000))
    assert without.zeros == 0.0
    assert set(without.loss(raws(6), Y)) == {"nll"}
    idle = raws(3)[0].clone()
    idle[:, 0] += 5.0
    torch.testing.assert_close(without((idle,)), without(raws(3)))


def test_all_zero_targets_predict_zero():
    head = LogNormalMixture().prepare(torch.zeros(4))
    assert head((head.initial_outputs(torch.zeros(4))[0].unsqueeze(0),)).item() == pytest.approx(0.0, abs=1e-5)


def test_signed_targets():
    y = torch.tensor([-3.0, -1.0, 2.0, 6.0])
    head = GaussianMixture(2).prepare(y)
    assert head((head.initial_outputs(y)[0].unsqueeze(0),)).item() == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(ValueError, match="target -3 in row 0"):
        LogNormalMixture().prepare(y)


def test_what_is_refused():
    with pytest.raises(ValueError, match="LogNormalMixture needs components >= 1"):
        LogNormalMixture(0)
    with pytest.raises(ValueError, match="GaussianMixture needs a finite scale > 0"):
        GaussianMixture(scale=0.0)
