"""EGMN against scipy's exponential and normal laws, and the total at a stationary point of its likelihood."""

import numpy as np
import pytest
import torch
from scipy import optimize, stats
from torch.nn.functional import softplus

from transun.heads import EGMN

UNIT = 3.0
# Outputs of two normal laws: three logits, the exponential mean, two means, two widths.
OUTPUTS = torch.tensor([[0.2, -0.4, 0.7, 0.3, 1.5, 4.0, -0.5, 0.9]], dtype=torch.float64)


def scipy_laws():
    weight = torch.softmax(OUTPUTS[0, :3], 0).numpy()
    theta, *widths = (softplus(OUTPUTS[0, [3, 6, 7]]) + 1e-3).tolist()
    normal = [stats.norm(UNIT * mean, UNIT * width) for mean, width in zip((1.5, 4.0), widths, strict=True)]
    return weight, [stats.expon(scale=UNIT * theta), *normal]


def test_likelihood_mean_and_distribution_are_those_of_the_laws():
    head = EGMN(components=2, entropy=0.0, regression=0.0, unit=UNIT)
    weight, laws = scipy_laws()
    y = np.array([0.0, 0.4, 2.0, 9.0, 30.0])
    raw = (OUTPUTS.expand(len(y), -1),)
    terms = head.loss(raw, torch.from_numpy(y))
    assert set(terms) == {"nll"}
    density = sum(w * law.pdf(y) for w, law in zip(weight, laws, strict=True))
    np.testing.assert_allclose(terms["nll"], -np.log(density), rtol=1e-10)
    distribution = sum(w * law.cdf(y) for w, law in zip(weight, laws, strict=True))
    np.testing.assert_allclose(head.cdf(raw, torch.from_numpy(y)), distribution, rtol=1e-10)
    mean = sum(w * law.mean() for w, law in zip(weight, laws, strict=True))
    np.testing.assert_allclose(head((OUTPUTS,)), [mean], rtol=1e-12)


def test_the_other_terms_are_entropy_and_absolute_error_in_units_of_the_mean():
    head = EGMN(components=2, entropy=0.5, regression=2.0, unit=UNIT)
    weight, _ = scipy_laws()
    y = torch.tensor([1.0], dtype=torch.float64)
    terms = head.loss((OUTPUTS,), y)
    assert terms["entropy"].item() == pytest.approx(-0.5 * stats.entropy(weight))
    assert terms["regression"].item() == pytest.approx(2.0 * abs(head((OUTPUTS,)).item() - 1.0) / UNIT)


def test_the_likelihood_alone_has_the_total_of_the_sample():
    """At a stationary point of a mixture of laws that are matched by their means, the mean is that of the sample."""
    y = torch.from_numpy(stats.lognorm(1.0).ppf((np.arange(400) + 0.5) / 400))
    head = EGMN(components=2, entropy=0.0, regression=0.0).prepare(y)

    def value_and_slope(outputs):
        raw = torch.from_numpy(outputs).requires_grad_()
        value = head.loss((raw.expand(len(y), -1),), y)["nll"].mean()
        return value.item(), torch.autograd.grad(value, raw)[0].numpy()

    start = head.initial_outputs(y)[0].numpy()
    best = optimize.minimize(value_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    assert head((torch.from_numpy(best).unsqueeze(0),)).item() == pytest.approx(y.mean().item(), rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"components": 0}, "components >= 1, a whole number, got 0"),
        ({"entropy": -1.0}, "entropy >= 0"),
        ({"unit": 0.0}, "finite unit > 0, got 0.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        EGMN(**arguments)
