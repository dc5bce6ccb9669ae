import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from registry import raw_for
from transun.heads import MSE, LogMSE, LogSUN, Ranked, Scaled, ThresholdFusion
from transun.heads.wrappers import pairwise_logistic

Y = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0])


def brute_force(score, label):
    pairs = [(i, j) for i in range(len(label)) for j in range(len(label)) if label[i] > label[j]]
    return sum(softplus(score[j] - score[i]) for i, j in pairs) / len(pairs)


def test_pairwise_logistic_is_the_mean_over_ordered_pairs():
    score = torch.randn(5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(pairwise_logistic(score, Y).mean(), brute_force(score, Y))


def test_pairwise_logistic_is_as_exact_as_its_scores():
    rng = np.random.default_rng(0)
    score, label = rng.normal(size=37), rng.normal(size=37)
    above = label[:, None] > label[None, :]
    exact = np.log1p(np.exp(score[None, :] - score[:, None]))[above].mean()
    cost = pairwise_logistic(torch.from_numpy(score), torch.from_numpy(label))
    assert cost.dtype == torch.float64
    assert cost.mean().item() == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("label", [torch.ones(4), torch.ones(1), torch.ones(0)])
def test_no_pair_costs_exactly_nothing(label):
    """Errata E6: where(NaN) still sends NaN gradients."""
    score = torch.randn(len(label)).requires_grad_()
    cost = pairwise_logistic(score, label)
    assert (cost == 0).all()
    (gradient,) = torch.autograd.grad(cost.sum(), score)
    assert (gradient == 0).all()


def test_ranked_chooses_its_scores():
    inner = LogSUN().prepare(Y)
    raw = raw_for(inner, 5)
    both = Ranked(inner).loss(raw, Y)
    assert set(both) == {"inner.point", "bias", "rank.inner.point", "rank.bias"}
    bias_only = Ranked(inner, on=("bias",), strength=0.5).loss(raw, Y)
    assert set(bias_only) == {"inner.point", "bias", "rank.bias"}
    torch.testing.assert_close(bias_only["rank.bias"], 0.5 * both["rank.bias"])
    u = inner.inner.point(raw[:1])
    z, label = raw[1].squeeze(1), inner.scheme.encode(Y, u, inner.inner.transform)
    torch.testing.assert_close(both["rank.bias"].mean(), brute_force(z, label))
    torch.testing.assert_close(both["rank.inner.point"].mean(), brute_force(u, Y))


def test_ranking_on_z_leaves_f_alone():
    inner = LogSUN().prepare(Y)
    raw = tuple(r.requires_grad_() for r in raw_for(inner, 5))
    term = Ranked(inner, on=("bias",)).loss(raw, Y)["rank.bias"].sum()
    f, z = torch.autograd.grad(term, raw, materialize_grads=True, allow_unused=True)
    assert (f == 0).all()
    assert (z != 0).any()


def test_ranked_predicts_like_its_inner_head():
    raw = raw_for(LogSUN(), 5)
    torch.testing.assert_close(Ranked(LogSUN())(raw), LogSUN()(raw))


def test_ranked_names_what_it_cannot_find():
    with pytest.raises(ValueError, match=r"'z' is not a score of the inner head; it has inner\.point, bias"):
        Ranked(LogSUN(), on=("z",)).loss(raw_for(LogSUN(), 5), Y)
    with pytest.raises(ValueError, match="strength >= 0"):
        Ranked(LogSUN(), strength=-1.0)


def test_fused_switches_at_the_threshold():
    inner = LogSUN().prepare(Y)
    raw = raw_for(inner, 50, scale=2.0)
    base, debiased = inner.undebiased(raw), inner(raw)
    fused = ThresholdFusion(inner, 1.5)(raw)
    assert (base < 1.5).any()
    assert (base >= 1.5).any()
    torch.testing.assert_close(fused[base < 1.5], base[base < 1.5])
    torch.testing.assert_close(fused[base >= 1.5], debiased[base >= 1.5])


def test_scaled_trains_in_its_own_unit():
    head = Scaled(MSE()).prepare(1e6 * Y)
    assert head.scale == pytest.approx(1e6 * Y.mean().item())
    raw = (torch.ones(5, 1),)
    torch.testing.assert_close(head(raw), torch.full((5,), head.scale))
    torch.testing.assert_close(head.loss(raw, 1e6 * Y)["point"], (1 - Y / Y.mean()) ** 2)


def test_scaled_is_equivariant():
    """y ↦ c·y changes the constants, not the raw outputs, and multiplies predictions by c."""
    raw = raw_for(LogSUN(), 5)
    unit, thousand = Scaled(LogSUN()).prepare(Y), Scaled(LogSUN()).prepare(1000 * Y)
    torch.testing.assert_close(thousand(raw), 1000 * unit(raw))
    torch.testing.assert_close(torch.cat(thousand.initial_outputs(1000 * Y)), torch.cat(unit.initial_outputs(Y)))
    torch.testing.assert_close(thousand.undebiased(raw), 1000 * unit.undebiased(raw))


def test_all_zero_targets_have_unit_scale():
    assert Scaled(LogMSE()).prepare(torch.zeros(3)).scale == 1.0


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf")])
def test_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match="scale > 0"):
        Scaled(MSE(), scale)
