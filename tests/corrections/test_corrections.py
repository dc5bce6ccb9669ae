import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from sklearn.isotonic import IsotonicRegression

from population import COLUMNS, MEANS, population
from registry import TRANSFORMS, name
from transun import corrections
from transun.corrections import (
    BinnedSmearing,
    Correction,
    Multicalibration,
    NormalTheory,
    SecondOrder,
    SlopeByLevel,
    Smearing,
    SmoothIsotonic,
    TotalRatio,
    TotalShift,
)
from transun.corrections.correction import equal_frequency_groups
from transun.corrections.isotonic import pool_adjacent_violators
from transun.models.spec import dumps, loads
from transun.schemes import PowerVariance
from transun.transforms import Affine, Arctan, Asinh, Identity, Log1p, Power, Tanh

# Found by walking the exports, so that a new correction is under these laws at once.
CORRECTIONS = [kind() for kind in map(vars(corrections).get, corrections.__all__) if kind is not Correction] + [
    NormalTheory(8),
    Smearing(16),
    BinnedSmearing(3, 16),
    SmoothIsotonic(7),
    SmoothIsotonic(1),
    BinnedSmearing(1, 1),
]
# Multicalibration takes a thousand rows to learn anything; the others have to learn from few.
FEW, MANY = 200, 1_500


def rows_for(correction):
    """Points and targets from which the correction learns something."""
    if isinstance(correction, Multicalibration):
        # Twice the predictions, with little noise: it changes nothing unless unseen rows are sure.
        u = normal(MANY) + 3.0
        return u, 2.0 * (u + 0.2 * normal(MANY, 1)).exp()
    return normal(FEW) + 3.0, (normal(FEW) + normal(FEW, 1) + 3.0).exp()


MONOTONE = [Smearing(), NormalTheory(), SmoothIsotonic()]


def normal(n, seed=0):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def constant_point(transform, y):
    """The T-MSE optimum without features: u = E T(y) for every row."""
    return transform(y).mean().expand_as(y)


def sre(correction, transform, column, n=20_000):
    y = population(column, n)
    u = constant_point(transform, y)
    return correction.fit(u, y, transform)(u[:1]).item() / MEANS[column] - 1.0


class TestConstantInput:
    """paper/methods.md §13.1."""

    # exp(u + σ²/2) - 1 is the mean before any clamp, so the logarithm is let run to its asymptote.
    UNCLAMPED = Log1p(lower=math.nextafter(-1.0, 0.0))
    ROWS = (
        ("NTE log", NormalTheory(), UNCLAMPED, (-0.0034, -0.2061, -0.1278, 0.0006, 0.1871, 0.1322, 0.0010, 0.2829)),
        ("NTE sqrt", SecondOrder(), Power(0.5), (0.0,) * 8),
        ("NTE arctan", SecondOrder(), Arctan(), (-0.0578, -0.4776, -0.4259, 0.0025, 1.6645, 1.4613, 0.0100, -0.5537)),
        ("smearing log", Smearing(), Log1p(), (0.0,) * 8),
        ("smearing sqrt", Smearing(), Power(0.5), (0.0,) * 8),
        ("smearing arctan", Smearing(), Arctan(), (0.0,) * 8),
        ("binned smearing", BinnedSmearing(), Log1p(), (0.0,) * 8),
        ("SIR", SmoothIsotonic(), Log1p(), (0.0,) * 8),
        ("factor", TotalRatio(), Log1p(), (0.0,) * 8),
        ("shift", TotalShift(), Power(2.0), (0.0,) * 8),
    )

    @pytest.mark.parametrize("column", COLUMNS)
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
    def test_row_of_the_table(self, row, column):
        label, correction, transform, expected = row
        # arctan(y) has its variance from very rare small y, which a coarse grid of quantiles misses.
        n = 300_000 if label == "NTE arctan" else 20_000
        assert sre(correction, transform, column, n) == pytest.approx(expected[COLUMNS.index(column)], abs=1e-3)

    @pytest.mark.parametrize("correction", [Smearing(), BinnedSmearing(), SmoothIsotonic()], ids=name)
    @pytest.mark.parametrize(
        "transform", [Log1p(), Power(0.5), Power(2.0), Arctan(), Asinh(), Affine(0.5, 2.0)], ids=name
    )
    def test_few_rows_give_exactly_the_sample_mean(self, correction, transform):
        y = population("RS-G", 100)
        u = constant_point(transform, y)
        assert correction.fit(u, y, transform)(u[:1]).item() == pytest.approx(y.mean().item(), rel=1e-5)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=name)
class TestCorrection:
    @pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
    def test_unfitted_corrects_nothing(self, correction, transform):
        u = torch.linspace(-1.0, 3.0, 9, dtype=torch.float64)
        torch.testing.assert_close(correction.on(transform)(u), transform.inverse(u), rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
    def test_stays_in_the_credible_range(self, correction, transform):
        y = population("RS-G", 400)
        transform = transform.prepare(y)
        u = transform(y) + 0.5 * normal(400)
        fitted = correction.fit(u, y, transform)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            pred = fitted(torch.tensor([-1e4, -1.0, 0.0, 1e-9, 0.5, 3.0, 1e4], dtype=dtype))
            assert pred.isfinite().all()
            assert (pred >= max(transform.lower, -transform.upper_limit)).all()
            assert (pred <= transform.bounds[1] * (1.0 + torch.finfo(dtype).eps)).all()

    @pytest.mark.parametrize("rows", [0, 1, 7])
    def test_shapes(self, correction, rows):
        fitted = correction.fit(normal(300) + 3.0, normal(300, 1).exp(), Log1p())
        pred = fitted(torch.zeros(rows))
        assert pred.shape == (rows,)
        assert pred.dtype == torch.float32

    def test_one_row(self, correction):
        fitted = correction.fit(torch.tensor([1.0]), torch.tensor([1.0]).expm1(), Log1p())
        assert fitted(torch.tensor([1.0])).item() == pytest.approx(math.expm1(1.0), rel=1e-5)

    def test_fit_leaves_the_original_alone_and_can_be_undone(self, correction):
        u, y = rows_for(correction)
        before = {key: value.clone() for key, value in correction.state_dict().items()}
        fitted = correction.fit(u, y, Log1p())
        assert fitted.transform == Log1p()
        assert correction.transform == Identity()
        for key, value in correction.state_dict().items():
            assert torch.equal(value, before[key])
        assert not torch.allclose(fitted(u), correction.on(Log1p())(u))
        torch.testing.assert_close(fitted.unfitted()(u), correction.on(Log1p())(u))

    def test_state_travels_by_text_and_state_dict(self, correction):
        u, y = rows_for(correction)
        fitted = correction.fit(u, y, Log1p())
        again = loads(dumps(fitted)).on(Log1p())
        again.load_state_dict(fitted.state_dict())
        assert torch.equal(again(u), fitted(u))

    def test_weight_two_is_the_row_twice(self, correction):
        u, y = normal(60) + 3.0, (normal(60) + normal(60, 1) + 3.0).exp()
        weight = torch.ones(60)
        weight[::3] = 2.0
        twice = torch.arange(60).repeat_interleave(weight.long())
        if isinstance(correction, Multicalibration):
            pytest.skip("its folds are drawn by row, so that a row twice is two rows and not one of weight two")
        # Grouped residuals are the one place where two half rows may fall apart; without grouping all is exact.
        exact = {"Smearing": Smearing(), "BinnedSmearing": BinnedSmearing(3)}.get(type(correction).__name__, correction)
        weighted, repeated = exact.fit(u, y, Log1p(), weight), exact.fit(u[twice], y[twice], Log1p())
        torch.testing.assert_close(weighted(u), repeated(u), rtol=1e-5, atol=0.0)

    def test_rows_of_weight_zero_do_not_count(self, correction):
        u, y = rows_for(correction)
        kept = 2 * len(u) // 3
        weight = (torch.arange(len(u)) < kept).double()
        weighted, without = correction.fit(u, y, Log1p(), weight), correction.fit(u[:kept], y[:kept], Log1p())
        assert torch.equal(weighted(u), without(u))

    def test_export_equals_eager(self, correction):
        y = population("SM-BU", 1000)
        fitted = correction.fit(Log1p()(y) + normal(1000), y, Log1p())
        batch = torch.export.Dim("batch")
        exported = torch.export.export(fitted, (torch.zeros(5),), dynamic_shapes=({0: batch},)).module()
        u = torch.linspace(-1.0, 6.0, 40)
        torch.testing.assert_close(exported(u), fitted(u), rtol=0, atol=0)
        assert fitted(u).unique().numel() > 10

    @pytest.mark.parametrize(
        ("u", "y", "weight", "message"),
        [
            ([[1.0]], [1.0], None, r"points and targets \(n,\), got \(1, 1\) and \(1,\)"),
            ([1.0, 2.0], [1.0], None, r"got \(2,\) and \(1,\)"),
            ([], [], None, "no rows"),
            ([1.0, 2.0], [1.0, 2.0], [0.0, 0.0], "no rows"),
            ([1.0, 2.0], [1.0, 2.0], [1.0, -1.0], "not negative"),
            ([1.0, 2.0], [1.0, 2.0], [1.0], r"2 weights .* got \(1,\)"),
            ([1.0, math.nan], [1.0, 2.0], None, "point nan in row 1"),
            ([1.0, 2.0], [math.inf, 2.0], None, "target inf in row 0"),
            ([1.0, 2.0], [1.0, -3.0], None, r"T\(target\) nan in row 1 .* y = -3"),
        ],
    )
    def test_mistakes_are_named(self, correction, u, y, weight, message):
        tensors = [None if value is None else torch.tensor(value) for value in (u, y, weight)]
        with pytest.raises(ValueError, match=message):
            correction.fit(tensors[0], tensors[1], Log1p(), tensors[2])


class TestNormalTheory:
    @pytest.mark.parametrize("transform", [Log1p(upper=1e6), Asinh(2.0), Tanh(50.0)], ids=name)
    def test_is_the_mean_under_a_normal(self, transform):
        correction = NormalTheory().on(transform)
        correction.sigma.fill_(0.1)
        for u in (0.0, 0.4, 0.5):
            expected, _ = integrate.quad(
                lambda v, u=u: transform.inverse(torch.tensor(u + 0.1 * v)).item() * stats.norm.pdf(v),
                -8,
                8,
                limit=200,
                points=(-10.0 * u,),  # the kink of the clamp
            )
            # On the kink the quadrature is a per cent off, four σ away it has its digits back.
            tolerance = 0.02 if u == 0.0 and transform.lower == 0.0 else 1e-4
            assert correction(torch.tensor([u])).item() == pytest.approx(expected, rel=tolerance, abs=1e-7)

    def test_recovers_a_log_normal_mean(self):
        """y = exp(N(u, 0.5²)) - 1 has mean exp(u + 0.125) - 1; σ is learned to 4 standard errors of its own."""
        n = 200_000
        u = 4.0 + normal(n)
        y = (u + 0.5 * normal(n, 1)).expm1()
        transform = Log1p(upper=1e9)
        pred = NormalTheory().fit(u, y, transform)(torch.tensor([3.0, 5.0]))
        # d ln ŷ = σ dσ, and σ has standard error σ/√(2n).
        error = 4 * 0.5 * 0.5 / math.sqrt(2 * n)
        np.testing.assert_allclose(pred.numpy() + 1.0, np.exp([3.125, 5.125]), rtol=error + 1e-6)


# g'' of paper/methods.md §0.1.
SECOND = {
    Log1p(upper=1e9): lambda u: np.exp(u),
    Power(0.5): lambda u: 2.0 + 0.0 * u,
    Power(2.0): lambda u: -0.25 * u**-1.5,
    Arctan(2.0): lambda u: 2 * 2.0 * np.tan(u) / np.cos(u) ** 2,
    Tanh(3.0): lambda u: 2 * 3.0 * u / (1 - u**2) ** 2,
    Asinh(2.0, upper=1e9): lambda u: 2.0 * np.sinh(u),
    Affine(0.5, 2.0): lambda u: 0.0 * u,
}


@pytest.mark.parametrize("transform", SECOND, ids=name)
@pytest.mark.parametrize("sigma", [1e-3, 0.05, 0.4])
def test_second_order_is_the_delta_method(transform, sigma):
    correction = SecondOrder().on(transform)
    correction.sigma.fill_(sigma)
    u = torch.linspace(0.3, 0.9, 7, dtype=torch.float64)
    base = transform.inverse(u)
    expected = base.numpy() + 0.5 * SECOND[transform](u.numpy()) * correction.sigma.item() ** 2
    pred = correction(u).numpy()
    low, high = transform.bounds
    np.testing.assert_allclose(pred, expected.clip(low, high), rtol=1e-7)
    # Single precision loses nothing, though a second difference in float32 would have no digit left.
    np.testing.assert_allclose(correction(u.float()).numpy(), expected.clip(low, high), rtol=1e-6)


def test_second_order_has_no_spike_at_the_clamp():
    """A difference across the kink of the clamped T⁻¹ would be ½g'σ/step: thousands where ½g''σ² is 0.125."""
    correction = SecondOrder().on(Log1p())
    correction.sigma.fill_(0.5)
    pred = correction(torch.tensor([-5.0, -1e-6, 0.0, 1e-6, 1e-4], dtype=torch.float64))
    np.testing.assert_allclose(pred.numpy(), [0.125, 0.125, 0.125, 0.125, 0.125 + 1.125e-4], atol=1e-4)


class TestSmearing:
    @pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
    @pytest.mark.parametrize("transform", [Log1p(upper=1e30), Power(0.5)], ids=name)
    def test_condensed_residuals_keep_the_mean_of_a_heavy_tail(self, sigma, transform):
        residual = sigma * normal(200_000)
        u = torch.full_like(residual, 20.0)
        correction = Smearing().fit(u, transform.inverse(u + residual), transform)
        at = torch.tensor([12.0, 25.0], dtype=torch.float64)
        every = transform.inverse(at.unsqueeze(1) + residual).mean(1)
        torch.testing.assert_close(correction(at), every, rtol=3e-4, atol=0.0)

    def test_a_gap_between_residuals_is_kept(self):
        residual = torch.cat((normal(9000), 40.0 + normal(1000)))
        u = torch.full_like(residual, 50.0)
        correction = Smearing(64).fit(u, (u + residual).square(), Power(0.5))
        used = correction.residuals[correction.shares > 0.0]
        assert ((used < 10.0) | (used > 30.0)).all()
        assert correction.shares[correction.residuals > 30.0].sum().item() == pytest.approx(0.1, rel=1e-5)

    def test_wrong_where_the_noise_depends_on_the_level_and_right_in_bins(self):
        """σ is 0.2 in the lower half and 1 in the upper; totals of each half on fresh rows, to sampling error."""
        transform = Log1p(upper=1e9)

        def draw(n, seed):
            u = 3.0 + 3.0 * torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            high = u > 4.5
            return u, (u + torch.where(high, 1.0, 0.2) * normal(n, seed + 1)).expm1(), high

        def errors(correction):
            """Signed relative error of either half's total, and the standard error of that total's own noise."""
            u, y, high = draw(40_000, 0)
            fitted = correction.fit(u, y, transform)
            u, y, high = draw(40_000, 10)
            gap = fitted(u) - y
            return [
                (float(gap[half].sum() / y[half].sum()), float(gap[half].std() * half.sum().sqrt() / y[half].sum()))
                for half in (~high, high)
            ]

        (low, low_noise), (high, high_noise) = errors(Smearing())
        assert low > max(0.2, 10 * low_noise)
        assert high < -max(0.1, 10 * high_noise)
        for error, noise in errors(BinnedSmearing(bins=20)):
            # √2 for the calibration rows, as many as the test's; the bin around the step mixes both kinds.
            assert abs(error) < 4 * math.sqrt(2) * noise + 0.01

    def test_bins_hold_their_own_residuals(self):
        u = torch.tensor([1.0, 1.0, 2.0, 2.0, 7.0, 7.0])
        y = torch.tensor([1.0, 3.0, 2.0, 6.0, 7.0, 15.0])
        correction = BinnedSmearing(bins=3).fit(u, y, Identity())
        assert correction.edges.tolist() == [1.5, 4.5]
        assert correction(torch.tensor([0.0, 1.4, 1.6, 4.4, 4.6, 9.0])).tolist() == pytest.approx(
            [1.0, 2.4, 3.6, 6.4, 8.6, 13.0]
        )


class TestIsotonic:
    @pytest.mark.parametrize("seed", range(5))
    def test_pooling_equals_scikit_learn(self, seed):
        rng = np.random.default_rng(seed)
        values, weight = np.linspace(0, 2, 80) + rng.normal(size=80), rng.uniform(0.1, 3.0, 80)
        block = pool_adjacent_violators(torch.from_numpy(values), torch.from_numpy(weight)).numpy()
        means = np.bincount(block, weight * values) / np.bincount(block, weight)
        expected = IsotonicRegression().fit_transform(np.arange(80), values, sample_weight=weight)
        assert 1 < block.max() < 79
        np.testing.assert_allclose(means[block], expected)

    def test_with_a_bin_for_each_row_it_passes_through_the_isotonic_regression(self):
        """Centroids of scikit-learn's constant pieces are where the smooth one must be."""
        x, y = normal(200).exp().sort().values, (normal(200).exp().sort().values + normal(200, 1).abs())
        pieces = IsotonicRegression().fit_transform(x.numpy(), y.numpy())
        levels, piece = np.unique(pieces, return_inverse=True)
        centres = np.bincount(piece, x.numpy()) / np.bincount(piece)
        correction = SmoothIsotonic(bins=200).fit(x, y, Identity())
        assert 5 < len(levels) < 150
        np.testing.assert_allclose(correction(torch.from_numpy(centres)).numpy(), levels, rtol=1e-5)
        between = 0.5 * (centres[1:] + centres[:-1])
        np.testing.assert_allclose(
            correction(torch.from_numpy(between)).numpy(), 0.5 * (levels[1:] + levels[:-1]), rtol=1e-5
        )

    def test_calibrates_totals_in_every_range(self):
        """Targets 3x² of predictions x in [1, 3]: bin means follow the parabola to the width of a bin."""
        x = 1.0 + 2.0 * torch.rand(50_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        y = 3.0 * x.square() * normal(50_000, 1).exp() / math.exp(0.5)
        correction = SmoothIsotonic().fit(Log1p()(x), y, Log1p())
        for low in (1.0, 1.5, 2.0, 2.5):
            in_bin = (x >= low) & (x < low + 0.5)
            noise = y[in_bin].std() / in_bin.sum().sqrt() / y[in_bin].mean()
            assert correction(Log1p()(x[in_bin])).mean() / y[in_bin].mean() - 1 == pytest.approx(
                0.0, abs=4 * noise.item()
            )
        torch.testing.assert_close(
            correction(Log1p()(torch.tensor([2.0], dtype=torch.float64))),
            torch.tensor([12.0]).double(),
            rtol=0.1,
            atol=0,
        )

    def test_scaling_outside(self):
        correction = SmoothIsotonic().fit(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 12.0]), Identity())
        assert correction(torch.tensor([-2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 8.0])).tolist() == pytest.approx(
            [-1.0, 0.0, 0.5, 1.0, 6.5, 12.0, 24.0]
        )

    @pytest.mark.parametrize("y", [[5.0, 6.0], [-5.0, 6.0], [-6.0, -5.0], [0.0, 0.0]])
    @pytest.mark.parametrize("x", [[-2.0, 3.0], [0.0, 1.0], [-1.0, 0.0], [-3.0, -2.0]])
    def test_signed_predictions_keep_their_order_outside(self, x, y):
        correction = SmoothIsotonic().fit(torch.tensor(x), torch.tensor(y), Identity())
        assert correction(torch.tensor(x)).tolist() == pytest.approx(y)
        assert (correction(torch.linspace(-10.0, 10.0, 101)).diff() >= 0.0).all()

    def test_ties_stay_in_one_bin(self):
        values = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0])
        group = equal_frequency_groups(values, torch.ones(8), 4)
        assert group.tolist() == [0, 0, 0, 0, 0, 1, 2, 2]

    def test_bins_have_equal_frequency(self):
        group = equal_frequency_groups(normal(1000), torch.ones(1000), 8)
        assert group.bincount().tolist() == [125] * 8


@pytest.mark.parametrize("correction", MONOTONE, ids=name)
@pytest.mark.parametrize("transform", [Log1p(), Power(0.5), Arctan(10.0), Identity(lower=0.0)], ids=name)
def test_order_is_kept(correction, transform):
    y = population("RS-BU", 1000)
    transform = transform.prepare(y)
    u = transform(y * (0.5 * normal(1000)).exp())
    pred = correction.fit(u, y, transform)(u.sort().values)
    assert (pred.diff() >= -1e-9 * pred[1:]).all()
    # Clamping at the ends may make ties; within, distinct points stay distinct.
    assert pred.unique().numel() > 0.9 * u.unique().numel()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Smearing(0), "Smearing needs points >= 1"),
        (lambda: BinnedSmearing(0), "BinnedSmearing needs bins >= 1"),
        (lambda: BinnedSmearing(3, 0), "BinnedSmearing needs points >= 1"),
        (lambda: SmoothIsotonic(0), "SmoothIsotonic needs bins >= 1"),
        (lambda: NormalTheory(0), "1 <= nodes <= 100"),
    ],
)
def test_bad_arguments(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_slope_by_level_with_one_bin_is_weighted_least_squares():
    """z = mean y·κ minimises Σκ²(ŷ - y)² over ŷ = z/κ: numpy's fit of y on 1/κ with weights κ²."""
    rng = np.random.default_rng(1)
    pred, y = rng.uniform(1.0, 3.0, 200), rng.gamma(2.0, 1.0, 200)
    base = pred + 0.5
    correction = SlopeByLevel(PowerVariance(2.0, eps=0.5), bins=1)
    fitted = correction.fit(torch.from_numpy(pred), torch.from_numpy(y), Identity())
    (z,), *_ = np.linalg.lstsq((base / base)[:, None], y / base, rcond=None)
    np.testing.assert_allclose(fitted(torch.from_numpy(pred)).numpy(), z * base, rtol=1e-5)


def test_arrays_are_refused_with_the_way_to_tensors():
    with pytest.raises(TypeError, match=r"a correction needs tensors, got ndarray and ndarray: torch.from_numpy"):
        Smearing().fit(np.ones(3), np.ones(3), Log1p())
