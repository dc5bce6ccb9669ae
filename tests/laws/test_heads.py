from itertools import pairwise

import pytest
import torch

from population import draw, minimise, settle
from registry import all_heads, leaf_heads, name, raw_for
from transun.heads import GTS, Corrected, Head, LogMSE, LogSUN, Scaled
from transun.models.spec import dumps
from transun.schemes import InverseRatio

TARGETS = draw("RS-G", 2000, seed=3)  # Gamma(2, 1)


def prepare_or_skip(head: Head, y: torch.Tensor) -> Head:
    """A classifier may refuse targets that are all of one class, if it says so."""
    try:
        return head.prepare(y)
    except ValueError as error:
        if "only one class" not in str(error):
            raise
        pytest.skip(str(error))


def representable(head: Head, y: torch.Tensor) -> torch.Tensor:
    """Targets whose squared transform still fits in float32: y² of 1e12 does not."""
    inner = head
    while hasattr(inner, "inner"):
        inner = inner.inner
    return inner.transform(y).abs() < 1e18


@pytest.mark.parametrize("head", all_heads(), ids=name)
class TestHead:
    @pytest.mark.parametrize("rows", [0, 1, 7])
    def test_shapes(self, head, rows):
        head = head.prepare(TARGETS)
        raw, y = raw_for(head, rows), TARGETS[:rows].float()
        assert head(raw).shape == (rows,)
        assert head.point(raw).shape == (rows,)
        assert head.undebiased(raw).shape == (rows,)
        for term in head.loss(raw, y).values():
            assert term.shape == (rows,)
        for score, label in head.ranking_pairs(raw, y).values():
            assert score.shape == label.shape == (rows,)

    def test_has_no_parameters(self, head):
        assert not list(head.parameters())

    def test_gradients_are_finite_at_the_edges(self, head):
        prepared = head.prepare(TARGETS)
        y = torch.tensor([0.0, 1e-30, 1.0, float(TARGETS.max()), 1e6, 1e12])
        y = y[representable(prepared, y)]
        for dtype in (torch.float32, torch.bfloat16):
            for scale in (0.0, 1.0, 1e4, -1e4):
                raw = tuple(r.to(dtype).requires_grad_() for r in raw_for(prepared, len(y), scale=scale))
                terms = prepared.loss(raw, y)
                assert all(term.isfinite().all() for term in terms.values())
                gradients = torch.autograd.grad(sum(term.sum() for term in terms.values()), raw, allow_unused=True)
                assert all(g is None or g.isfinite().all() for g in gradients)
                assert prepared(raw).isfinite().all()

    def test_every_branch_learns(self, head):
        prepared = head.prepare(TARGETS)
        raw = tuple(r.requires_grad_() for r in raw_for(prepared, 32))
        total = sum(term.mean() for term in prepared.loss(raw, TARGETS[:32].float()).values())
        assert all((g != 0).any() for g in torch.autograd.grad(total, raw))

    def test_prepare_leaves_the_original_alone(self, head):
        before = dumps(head)
        prepared = head.prepare(TARGETS)
        assert dumps(head) == before
        assert type(prepared) is type(head)
        assert prepared.branches == head.branches

    def test_start_has_the_width_of_its_branches(self, head):
        start = head.prepare(TARGETS).initial_outputs(TARGETS)
        assert [tuple(value.shape) for value in start] == [(branch.width,) for branch in head.branches]
        assert all(value.isfinite().all() for value in start)

    def test_start_is_no_worse_than_zero(self, head):
        prepared = head.prepare(TARGETS)
        start = prepared.initial_outputs(TARGETS)

        def total(raw):
            wide = tuple(value.expand(len(TARGETS), -1) for value in raw)
            terms = prepared.loss(wide, TARGETS).items()
            # The labels of a bias branch and of a ratio move with the inner outputs: their costs cannot be compared.
            return sum(term.mean() for name, term in terms if "bias" not in name and "ratio" not in name)

        assert total(start) <= total(tuple(map(torch.zeros_like, start))) + 1e-9

    def test_kappa_is_the_slope_of_the_label_of_the_bias_branch(self, head):
        prepared = head.prepare(TARGETS)
        raw = tuple(value.double() for value in raw_for(prepared, 9))
        pairs = [prepared.ranking_pairs(raw, torch.full((9,), float(y), dtype=torch.float64)) for y in (0, 1, 2)]
        kappa = prepared.kappa(raw)
        if "bias" not in pairs[0]:
            assert kappa is None
            return
        rise, more = (above["bias"][1] - below["bias"][1] for below, above in pairwise(pairs))
        if torch.allclose(rise, more, rtol=1e-3):
            torch.testing.assert_close(kappa, rise, rtol=1e-6, atol=1e-12)
        else:
            assert kappa is None

    def test_debiased_heads_have_a_bias_branch(self, head):
        prepared = head.prepare(TARGETS)
        pairs = prepared.ranking_pairs(raw_for(prepared, 1), TARGETS[:1].float())
        assert head.debiased == prepared.debiased == any(name.split(".")[-1] == "bias" for name in pairs)

    def test_rowwise_heads_have_the_same_loss_for_a_row_alone(self, head):
        prepared = head.prepare(TARGETS).train()
        raw, y = raw_for(prepared, 12), TARGETS[:12].float()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            together = prepared.loss(raw, y)
            rows = [prepared.loss(tuple(value[[row]] for value in raw), y[[row]]) for row in range(12)]
        alone = {name: torch.cat([terms[name] for terms in rows]) for name in together}
        same = all(torch.allclose(together[name], alone[name], rtol=1e-4, atol=1e-6) for name in together)
        assert prepared.rowwise == head.rowwise == same

    def test_distribution_has_quantiles_or_is_none(self, head):
        prepared = head.prepare(TARGETS)
        law, raw = prepared.distribution, raw_for(prepared, 7)
        assert (law is None) == (head.distribution is None)
        shown = head if not isinstance(head, Corrected) else head.inner
        assert (law is None) != callable(getattr(shown, "quantile", None))
        if law is not None:
            low, high = law.quantile(raw, 0.2), law.quantile(raw, 0.8)
            assert low.shape == high.shape == (7,)
            assert (low <= high).all()

    def test_all_zero_targets(self, head):
        zeros = torch.zeros(20, dtype=torch.float64)
        prepared = prepare_or_skip(head, zeros)
        prediction = prepared(tuple(value.unsqueeze(0) for value in prepared.initial_outputs(zeros)))
        assert prediction.item() == pytest.approx(0.0, abs=1e-2)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_targets_that_are_not_finite_are_named(self, head, bad):
        with pytest.raises(ValueError, match="row 2 is not finite"):
            head.prepare(torch.tensor([1.0, 2.0, bad]))

    def test_no_targets(self, head):
        with pytest.raises(ValueError, match="empty"):
            head.prepare(torch.zeros(0))

    def test_one_and_constant_targets(self, head):
        for y in (torch.tensor([3.0]), torch.full((20,), 3.0)):
            prepared = prepare_or_skip(head, y.double())
            start = tuple(value.unsqueeze(0) for value in prepared.initial_outputs(y.double()))
            # A bounded T answers to its own resolution near the asymptote.
            assert prepared(start).item() == pytest.approx(3.0, rel=1e-3)

    def test_tiny_targets_are_learned_or_refused(self, head):
        """A head without a unit of its own says so; any other starts as it does on targets of order one."""
        tiny, ordinary = 1e-30 * TARGETS, head.prepare(TARGETS)
        try:
            prepared = head.prepare(tiny)
        except ValueError as error:
            assert "put `Scaled` around it" in str(error)  # noqa: PT017 - either outcome is right
            return
        starts = [
            tuple(value.unsqueeze(0) for value in part.initial_outputs(y))
            for part, y in ((ordinary, TARGETS), (prepared, tiny))
        ]
        before, after = ordinary(starts[0]).item(), prepared(starts[1]).item()
        assert before / 2.0 < after / 1e-30 < 2.0 * before

    def test_scaled_heads_take_targets_of_any_size(self, head):
        for size in (1e-30, 1e20):
            prepared = Scaled(head).prepare(size * TARGETS)
            start = tuple(value.unsqueeze(0) for value in prepared.initial_outputs(size * TARGETS))
            same = Scaled(head).prepare(TARGETS)
            expected = same(tuple(value.unsqueeze(0) for value in same.initial_outputs(TARGETS))).item()
            assert prepared(start).item() / size == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("leaf", leaf_heads(), ids=name)
class TestGTS:
    @pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
    def test_recovers_the_sample_mean_whatever_the_inner_outputs_are(self, leaf, noise):
        """The theorem: the z of least cost predicts the mean, also where the inner head has learned nothing yet."""
        head = GTS(leaf).prepare(TARGETS).eval()  # without the noise that some heads add in training
        generator = torch.Generator().manual_seed(0)
        *inner, z = (value.double() for value in head.initial_outputs(TARGETS))
        inner = [value + noise * torch.randn(len(value), generator=generator) for value in inner]

        def bias(z):
            raw = tuple(output.expand(len(TARGETS), -1) for output in (*inner, z))
            return head.loss(raw, TARGETS)["bias"].mean()

        best = (*inner, minimise(bias, z + 0.1))
        prediction = head(tuple(output.unsqueeze(0) for output in best))
        assert prediction.item() == pytest.approx(TARGETS.mean().item(), rel=1e-4)

    def test_starts_at_the_sample_mean(self, leaf):
        head = GTS(leaf).prepare(TARGETS)
        start = tuple(value.unsqueeze(0) for value in head.initial_outputs(TARGETS))
        assert head(start).item() == pytest.approx(TARGETS.mean().item(), rel=1e-6)

    def test_bias_term_leaves_the_inner_branch_alone(self, leaf):
        head = GTS(leaf).prepare(TARGETS)
        raw = tuple(r.requires_grad_() for r in raw_for(head, 16))
        bias = head.loss(raw, TARGETS[:16].float())["bias"].sum()
        *inner, of_z = torch.autograd.grad(bias, raw, allow_unused=True, materialize_grads=True)
        assert all((g == 0).all() for g in inner)
        assert (of_z != 0).any()

    def test_inner_loss_is_the_loss_without_gts(self, leaf):
        leaf = leaf.prepare(TARGETS).eval()
        raw, y = raw_for(GTS(leaf), 16), TARGETS[:16].float()
        with_gts = GTS(leaf).loss(raw, y)
        for term_name, term in leaf.loss(raw[:-1], y).items():
            torch.testing.assert_close(with_gts[f"inner.{term_name}"], term)

    def test_base_is_the_prediction_without_gts(self, leaf):
        leaf = leaf.prepare(TARGETS)
        raw = raw_for(GTS(leaf), 16)
        torch.testing.assert_close(GTS(leaf).undebiased(raw), leaf(raw[:-1]))


def test_nested_gts_recovers_the_mean():
    head = GTS(LogSUN()).prepare(TARGETS)
    outputs = settle(head, TARGETS)
    assert head.inner(outputs[:-1]).item() == pytest.approx(TARGETS.mean().item(), rel=1e-4)
    assert head(outputs).item() == pytest.approx(TARGETS.mean().item(), rel=1e-4)


def test_inverse_ratio_learns_the_harmonic_mean():
    """S1 with ε → 0 learns 1 / E[1/y]: half the mean of a Gamma(2, 1) in the population."""
    head = GTS(LogMSE(), InverseRatio(eps=1e-9)).prepare(TARGETS)
    start = tuple(value.unsqueeze(0) for value in head.initial_outputs(TARGETS))
    assert head(start).item() == pytest.approx(1.0 / (1.0 / TARGETS).mean().item(), rel=1e-6)
