"""The eight distributions as a table of quantiles, and the full-batch optimum of a head on it.

A grid of n mid-quantiles represents the population to about 1/n, so what a head converges to on it is the population
value of paper/methods.md §13.1 without sampling error. References come from scipy.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from scipy import optimize, stats

from transun.heads import Head, Raw, Scaled, Wrapper

COLUMNS = ("RS-G", "RS-BU", "RS-ZIG", "LS-B", "LS-BU", "SM-U", "SM-TN", "SM-BU")
_LOW, _HIGH, _GAMMA = stats.uniform(1, 10), stats.uniform(90, 10), stats.gamma(2)
_PARTS = {
    "RS-G": [(1.0, _GAMMA)],
    "RS-BU": [(0.9, _LOW), (0.1, _HIGH)],
    "RS-ZIG": [(0.8, None), (0.2, _GAMMA)],  # None: zeros
    "LS-B": [(1.0, stats.beta(3, 1.5))],
    "LS-BU": [(0.1, _LOW), (0.9, _HIGH)],
    "SM-U": [(1.0, stats.uniform(0, 100))],
    "SM-TN": [(1.0, stats.truncnorm(-5, 5, 50, 10))],
    "SM-BU": [(0.5, _LOW), (0.5, _HIGH)],
}
MEANS = dict(zip(COLUMNS, (2.0, 14.9, 0.4, 2 / 3, 86.1, 50.0, 50.0, 50.5), strict=True))
# paper/methods.md §13.1: the largest of N draws, on which binned methods depend.
MAXIMA = {"RS-G": 17.2, "RS-ZIG": 15.5}


@cache
def population(name: str, n: int = 20_000, largest: bool = False) -> torch.Tensor:
    """About n targets (float64, ascending) that represent the law; `largest` moves the top one to §13.1's maximum."""
    parts = []
    for share, law in _PARTS[name]:
        count = round(share * n)
        levels = (np.arange(count) + 0.5) / count
        parts.append(np.zeros(count) if law is None else law.ppf(levels))
    y = np.sort(np.concatenate(parts))
    if largest and name in MAXIMA:
        y[-1] = MAXIMA[name]
    return torch.from_numpy(y)


def draw(name: str, n: int, seed: int) -> torch.Tensor:
    """A random sample (n,) of the law in float64; its parts have their exact shares, rounded to rows."""
    rng = np.random.default_rng(seed)
    counts = [round(share * n) for share, _ in _PARTS[name]]
    counts[0] += n - sum(counts)
    parts = [
        np.zeros(count) if law is None else law.rvs(count, random_state=rng)
        for count, (_, law) in zip(counts, _PARTS[name], strict=True)
    ]
    return torch.from_numpy(rng.permutation(np.concatenate(parts)))


def minimise(cost: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor) -> torch.Tensor:
    """The minimiser (n,), float64, of a differentiable function of a vector, searched for from `start`.

    Both methods compare values of the function, so that rounding or the choice of a processor cannot lead them astray:
    Brent's for one number, which has no trouble with the kink of a median, and L-BFGS with a line search for several.
    """

    def value(x: np.ndarray) -> float:
        return cost(torch.as_tensor(x, dtype=torch.float64).reshape(-1)).item()

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        at = torch.as_tensor(x, dtype=torch.float64).requires_grad_()
        total = cost(at)
        (gradient,) = torch.autograd.grad(total, at)
        return total.item(), gradient.numpy()

    if len(start) == 1:
        with torch.no_grad():
            best = optimize.minimize_scalar(value, bracket=(start.item() - 0.1, start.item() + 0.1))
        return torch.tensor([best.x], dtype=torch.float64)
    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
    best = optimize.minimize(value_and_gradient, start.double().numpy(), jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(best.x)


def settle(head: Head, y: torch.Tensor, perturb: float = 0.1) -> Raw:
    """Free constant outputs (1, width) at the full-batch optimum of a prepared head, searched for off its start.

    Under stop-gradient the sum of the losses is not the function that training minimises: the gradient of each branch
    is that of its own terms, with the inner head's outputs as constants. So the optimum is found from the inside out,
    first the inner head, then the branches that a wrapper adds to it.
    """
    if isinstance(head, Scaled):
        return settle(head.inner, y / head.scale, perturb)
    inner = settle(head.inner, y, perturb) if isinstance(head, Wrapper) else ()
    added = head.initial_outputs(y)[len(inner) :]
    widths = [len(value) for value in added]

    def cost(values: torch.Tensor) -> torch.Tensor:
        outputs = (*inner, *(part.unsqueeze(0) for part in values.split(widths)))
        terms = head.loss(tuple(output.expand(len(y), -1) for output in outputs), y)
        return sum(term.mean() for term in terms.values())

    best = minimise(cost, torch.cat(added).double() + perturb) if added else torch.zeros(0)
    return (*inner, *(part.unsqueeze(0) for part in best.split(widths)))


def optimum(head: Head, y: torch.Tensor, perturb: float = 0.1) -> float:
    """The prediction at the full-batch optimum of free constant outputs."""
    prepared = head.prepare(y).eval()  # without the noise that some heads add in training
    return prepared(settle(prepared, y, perturb)).item()


# paper/methods.md §13.1 also takes the whole range of these thin-tailed laws, which no sample reaches.
ENDS = {"LS-B": (0.0, 1.0), "SM-TN": (0.0, 100.0)}


def whole_range(column: str, n: int = 20_000) -> torch.Tensor:
    """The population with the ends that §13.1 assumes: stated maxima, and the whole range of a thin-tailed law."""
    y = population(column, n, largest=True).clone()
    if column in ENDS:
        y[0], y[-1] = ENDS[column]
    return y


def stationary(head: Head, y: torch.Tensor, level: float = 1e-8) -> float:
    """The prediction where the head starts, once its loss is seen to be level there.

    For heads whose loss has one minimum, this is the optimum, without a descent.
    """
    prepared = head.prepare(y)
    outputs = [value.double().requires_grad_() for value in prepared.initial_outputs(y)]
    terms = prepared.loss(tuple(output.expand(len(y), -1) for output in outputs), y)
    gradients = torch.autograd.grad(sum(term.mean() for term in terms.values()), outputs)
    assert all(gradient.abs().max() < level for gradient in gradients)
    return prepared(tuple(output.detach().unsqueeze(0) for output in outputs)).item()


def sre(head: Head, name: str, n: int = 20_000, largest: bool = False, **arguments) -> float:
    """The signed relative error of a head's full-batch optimum on a distribution."""
    return optimum(head, population(name, n, largest), **arguments) / MEANS[name] - 1.0
