"""`Dice` in training: its statistics, its gradients by formula, and what padding and precision do to them."""

import copy

import pytest
import torch
from torch import nn

from transun.backbones import Dice


def test_training_equals_batch_norm_and_its_running_statistics():
    x = torch.randn(4, 50, 3, generator=torch.Generator().manual_seed(0)) * 3.0 + 2.0
    dice, norm = Dice(beta=1.0).build(3), nn.BatchNorm1d(3, eps=1e-9, affine=False, momentum=None)
    for rows in x:
        p = torch.sigmoid(norm(rows))
        torch.testing.assert_close(dice(rows), p * rows)
    torch.testing.assert_close(dice.mean, norm.running_mean)
    torch.testing.assert_close(dice.variance, norm.running_var)
    torch.testing.assert_close(dice.eval()(x[0]), torch.sigmoid(norm.eval()(x[0])) * x[0])


def test_running_statistics_forget_the_distant_past():
    dice = Dice().build(1)
    for _ in range(200):
        dice(torch.tensor([[5.0], [7.0]]))
    for _ in range(100):
        dice(torch.tensor([[0.0], [2.0]]))
    # The last hundred batches at a rate of one in a hundred leave 0.99¹⁰⁰ of the mean 6, on top of 1.
    assert dice.mean.item() == pytest.approx(1.0 + 5.0 * 0.99**100, rel=1e-4)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_batch_too_small_for_a_spread_uses_the_running_one(rows):
    dice = Dice(beta=1.0).build(2)
    dice(torch.randn(10, 2, generator=torch.Generator().manual_seed(0)))
    before = copy.deepcopy(dice.state_dict())
    x = torch.full((rows, 2), 3.0, requires_grad=True)
    trained = dice.train()(x)
    trained.sum().backward()
    assert x.grad.isfinite().all()
    torch.testing.assert_close(dict(dice.state_dict()), dict(before), rtol=0, atol=0)
    torch.testing.assert_close(trained, dice.eval()(x))


def test_a_constant_feature_is_finite():
    x = torch.full((8, 1), 1e4, requires_grad=True)
    dice = Dice(beta=1.0).build(1)
    out = dice(x)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_half_precision_keeps_its_statistics():
    x = (torch.randn(4096, 1, generator=torch.Generator().manual_seed(0)) + 100.0).bfloat16()
    dice = Dice(beta=1.0).build(1)
    dice(x)
    assert dice.mean.item() == pytest.approx(x.float().mean().item(), rel=1e-5)


def test_half_precision_in_is_half_precision_out():
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0)).bfloat16()
    dice, wide = Dice(beta=1.0).build(3), Dice(beta=1.0).build(3)
    for mode in (True, False):
        out = dice.train(mode)(x)
        assert out.dtype == torch.bfloat16
        # Rounded once, at the end: half a unit of the last of 8 digits.
        torch.testing.assert_close(out.float(), wide.train(mode)(x.float()), rtol=2.0**-8, atol=0.0)


@pytest.mark.parametrize(("rows", "padding"), [((7,), ()), ((1,), ()), ((7,), (0, 3, 4)), ((3, 4), (0, 1, 2, 9))])
def test_gradients_are_those_of_finite_differences(rows, padding):
    """Of one row, or one that is no padding, the running statistics are used, which are constants."""
    generator = torch.Generator().manual_seed(len(padding))
    x = torch.randn(*rows, 3, generator=generator, dtype=torch.float64) * 2.0 + 5.0
    present = torch.ones(*rows, 1, dtype=torch.bool)
    present.view(-1)[list(padding)] = False

    def trained(x, alpha, beta):
        dice = Dice().build(3).double()
        dice.mean += 1.0
        dice.batches += 3.0
        return torch.func.functional_call(dice, {"alpha": alpha, "beta": beta}, (x, present if padding else None))

    alpha, beta = torch.linspace(-0.5, 0.8, 3).double(), torch.linspace(0.5, 2.0, 3).double()
    assert torch.autograd.gradcheck(trained, tuple(v.requires_grad_() for v in (x, alpha, beta)))


def test_gradients_of_gradients_are_refused():
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (slope,) = torch.autograd.grad(Dice(beta=1.0).build(2)(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


# What torch warns about while it traces, such as its own use of what it has deprecated, differs between its versions.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("masked", [False, True])
def test_compiled_equals_eager(masked):
    """In float64: a compiler may add up in another order, which shows in the last digits of float32."""
    generator = torch.Generator().manual_seed(0)
    batches = torch.randn(3, 6, 5, 4, generator=generator, dtype=torch.float64) * 2.0 + 3.0
    present = torch.rand(6, 5, 1, generator=generator) > 0.3 if masked else None
    results = []
    for build_for in (lambda dice: dice, lambda dice: torch.compile(dice, backend="aot_eager", fullgraph=True)):
        dice = Dice(beta=1.0).build(4).double()
        run, x = build_for(dice), [rows.clone().requires_grad_() for rows in batches]
        out = torch.stack([run(rows, present) for rows in x])
        (out * torch.linspace(-1.0, 1.0, 4, dtype=torch.float64)).sum().backward()
        gradients = [tensor.grad for tensor in (*x, dice.alpha, dice.beta)]
        results.append({"out": out, "gradients": gradients, **dice.state_dict()})
    torch.testing.assert_close(results[1], results[0], rtol=1e-10, atol=1e-10)


def test_what_padding_holds_reaches_nothing_else():
    x = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
    present = torch.ones(3, 4, 1, dtype=torch.bool)
    present[:, 0] = False
    results = []
    for held in (0.0, 1e15):  # its square is still a number
        dice = Dice(beta=1.0).build(2)
        columns = x.masked_fill(~present, held).requires_grad_()
        out = dice(columns, present)[:, 1:]
        out.square().sum().backward()
        results.append([out, columns.grad[:, 1:], dice.beta.grad, *dice.buffers()])
    torch.testing.assert_close(results[0], results[1])


def test_statistics_far_from_zero():
    """In the first batch, when nothing is known about the mean, and later."""
    x = (torch.randn(2, 4096, 1, generator=torch.Generator().manual_seed(0)) + 1e4).requires_grad_()
    dice = Dice(beta=1.0).build(1)
    for batches, rows in enumerate(x, 1):
        dice(rows)
        exact = x[:batches].detach().double().var(1).mean()
        assert dice.variance.item() == pytest.approx(exact.item(), rel=1e-3)
    assert dice.mean.item() == pytest.approx(x.detach().double().mean().item(), rel=1e-7)
