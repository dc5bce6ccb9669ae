import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from transun_paper.datasets.component import Point, Uniform
from transun_paper.datasets.distributions import DISTRIBUTIONS, Distribution

LOW, HIGH = stats.uniform(1, 10), stats.uniform(90, 10)
GAMMA = stats.gamma(a=2, scale=1)

# (weight, scipy law) of each, from the paper's listing; None is the point mass at zero.
REFERENCE: dict[str, list[tuple[float, object]]] = {
    "RS-G": [(1.0, GAMMA)],
    "RS-BU": [(0.9, LOW), (0.1, HIGH)],
    "RS-ZIG": [(0.8, None), (0.2, GAMMA)],
    "LS-B": [(1.0, stats.beta(3, 1.5))],
    "LS-BU": [(0.1, LOW), (0.9, HIGH)],
    "SM-U": [(1.0, stats.uniform(0, 100))],
    "SM-TN": [(1.0, stats.truncnorm(-5, 5, loc=50, scale=10))],
    "SM-BU": [(0.5, LOW), (0.5, HIGH)],
}
each = pytest.mark.parametrize("law", DISTRIBUTIONS, ids=lambda law: law.name)


def reference(name: str, g: Callable[[float], float]) -> float:
    total = 0.0
    for weight, law in REFERENCE[name]:
        if law is None:
            total += weight * g(0.0)
            continue
        low, high = law.support()
        value, _ = integrate.quad(lambda v, law=law: g(v) * law.pdf(v), low, min(high, 100), epsabs=1e-12, limit=400)
        total += weight * value
    return total


def cdf(name: str, v: np.ndarray) -> np.ndarray:
    return sum(weight * (v >= 0 if law is None else law.cdf(v)) for weight, law in REFERENCE[name])


def test_names_and_order_are_the_papers() -> None:
    assert [law.name for law in DISTRIBUTIONS] == list(REFERENCE)


@each
def test_moments(law: Distribution) -> None:
    first, second, third = (
        sum(weight * (0 if part is None else part.moment(order)) for weight, part in REFERENCE[law.name])
        for order in (1, 2, 3)
    )
    variance = second - first**2
    assert law.mean == pytest.approx(first, rel=1e-10)
    assert law.variance == pytest.approx(variance, rel=1e-9)
    assert law.skewness == pytest.approx((third - 3 * first * second + 2 * first**3) / variance**1.5, abs=1e-6)


def test_truncated_normal_variance_is_not_the_papers() -> None:
    # Erratum E13: the listing reports the 833.3 of the uniform law before it.
    assert DISTRIBUTIONS[6].variance == pytest.approx(100, abs=0.01)


@each
@pytest.mark.parametrize("name", ["log1p", "sqrt", "square", "arctan"])
def test_expect_equals_scipy_quadrature(law: Distribution, name: str) -> None:
    ours = law.expect(getattr(torch, name))
    assert ours == pytest.approx(reference(law.name, getattr(np, name)), rel=1e-7)


def test_expect_in_closed_form() -> None:
    gamma, beta, uniform = DISTRIBUTIONS[0], DISTRIBUTIONS[3], DISTRIBUTIONS[5]
    assert gamma.expect(torch.sqrt) == pytest.approx(math.gamma(2.5), abs=1e-9)
    assert gamma.expect(torch.reciprocal) == pytest.approx(1.0, abs=1e-9)
    assert beta.expect(torch.reciprocal) == pytest.approx(3.5 / 2, abs=1e-9)
    assert uniform.expect(torch.log1p) == pytest.approx((101 * math.log(101) - 100) / 100, abs=1e-9)
    assert uniform.expect(lambda v: v, low=20, high=30) == pytest.approx(2.5, abs=1e-9)


def test_expect_asks_nothing_outside_its_interval() -> None:
    # ln 0 is infinite, but RS-ZIG's zeros are excluded: 0.2·E[ln Gamma(2, 1)] = 0.2·(1 - Euler's constant).
    assert DISTRIBUTIONS[2].expect(torch.log, low=0) == pytest.approx(0.2 * (1 - np.euler_gamma), abs=1e-8)
    assert DISTRIBUTIONS[5].expect(torch.log, low=100) == 0


# paper/methods.md §13.1, in the order of DISTRIBUTIONS.
BIAS = {
    "log1p": [-0.1409, -0.5106, -0.4465, -0.0192, -0.1626, -0.2418, -0.0207, -0.5323],
    "sqrt": [-0.1164, -0.3536, -0.8233, -0.0271, -0.0576, -0.1111, -0.0104, -0.2739],
    "square": [0.2247, 1.0612, 1.7386, 0.0445, 0.0475, 0.1547, 0.0198, 0.3341],
    "arctan": [-0.2784, -0.6774, -0.5115, -0.0271, -0.6389, -0.6436, -0.0442, -0.8339],
}
INVERSE: dict[str, Callable[[float], float]] = {
    "log1p": math.expm1,
    "sqrt": lambda u: u * u,
    "square": math.sqrt,
    "arctan": math.tan,
}


@pytest.mark.parametrize("name", BIAS)
def test_bias_of_transformed_mse(name: str) -> None:
    ours = [INVERSE[name](law.expect(getattr(torch, name))) / law.mean - 1 for law in DISTRIBUTIONS]
    assert ours == pytest.approx(BIAS[name], abs=5e-4)


def test_median_is_the_bias_of_mae() -> None:
    table = [-0.1608, -0.5600, -1, 0.0396, 0.0969, 0, 0]  # SM-BU: any point of [11, 90]
    assert [law.quantile(0.5) / law.mean - 1 for law in DISTRIBUTIONS[:7]] == pytest.approx(table, abs=5e-4)
    assert DISTRIBUTIONS[7].quantile(0.5) == pytest.approx(11, abs=1e-6)


@each
def test_cdf_density_and_quantile(law: Distribution) -> None:
    points = np.array([-1.0, 0.0, 0.3, 0.9, 2.0, 7.5, 11.0, 50.0, 95.0, 101.0])
    assert [law.cdf(float(v)) for v in points] == pytest.approx(cdf(law.name, points).tolist(), abs=1e-8)
    pdf = sum(weight * part.pdf(points) for weight, part in REFERENCE[law.name] if part is not None)
    np.testing.assert_allclose(law.density(torch.from_numpy(points)).numpy(), pdf, atol=1e-9)
    for share in (0.05, 0.4, 0.85, 0.99):
        v = law.quantile(share)
        assert law.cdf(v) >= share - 1e-9
        assert law.cdf(v - 1e-6) < share


@each
def test_sample_follows_the_law(law: Distribution) -> None:
    draws = law.sample(50_000, seed=1)
    assert draws.dtype == torch.float64
    # Of RS-ZIG the Kolmogorov statistic is that of its positive part: the test needs a continuous law.
    values = draws[draws > 0].numpy()
    zero = float(cdf(law.name, np.array(0.0)))
    assert stats.kstest(values, lambda v: (cdf(law.name, v) - zero) / (1 - zero)).pvalue > 1e-3
    assert float(draws.mean()) == pytest.approx(law.mean, abs=4 * (law.variance / 50_000) ** 0.5)


@each
def test_sample_is_a_function_of_name_and_seed(law: Distribution) -> None:
    assert torch.equal(law.sample(100, seed=5), law.sample(100, seed=5))
    assert not torch.equal(law.sample(100, seed=5), law.sample(100, seed=6))


def test_distributions_do_not_share_random_numbers() -> None:
    rsg, zig = DISTRIBUTIONS[0].sample(1000, 0), DISTRIBUTIONS[2].sample(1000, 0)
    assert not np.isin(zig[zig > 0].numpy(), rsg.numpy()).any()


@pytest.mark.parametrize(("index", "low"), [(1, 0.9), (4, 0.1), (7, 0.5)])
def test_mixtures_have_exact_shares_and_are_shuffled(index: int, low: float) -> None:
    is_low = DISTRIBUTIONS[index].sample(10_000, seed=0) < 50
    assert int(is_low.sum()) == round(low * 10_000)
    # The first half of a shuffled sample has the same share, up to four standard deviations.
    assert abs(float(is_low[:5000].double().mean()) - low) < 4 * (low * (1 - low) / 10_000) ** 0.5


def test_zero_inflation_is_exact_and_every_size_is_met() -> None:
    assert int((DISTRIBUTIONS[2].sample(1000, seed=0) == 0).sum()) == 800
    assert [len(DISTRIBUTIONS[1].sample(n, seed=0)) for n in range(1, 30)] == list(range(1, 30))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Distribution("a", "A", (1.0,), ()), "a: 1 weights for 0 components"),
        (lambda: Distribution("a", "A", (0.5, 0.6), (Point(0.0), Point(1.0))), "must be positive and add up to 1"),
        (lambda: Distribution("a", "A", (1.5, -0.5), (Point(0.0), Point(1.0))), "must be positive"),
        (lambda: Distribution("a", "A", (), ()), "must be positive"),
        (lambda: DISTRIBUTIONS[0].sample(0, seed=0), "sample of 0 draws"),
        (lambda: DISTRIBUTIONS[0].quantile(1.0), "quantile share 1.0"),
    ],
)
def test_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_new_mixture_needs_no_new_code() -> None:
    law = Distribution("new", "New", (0.25, 0.75), (Point(2.0), Uniform(0.0, 4.0)))
    assert law.mean == pytest.approx(2.0)
    assert law.cdf(2.0) - law.cdf(2.0 - 1e-9) == pytest.approx(0.25, abs=1e-6)
