import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from population import COLUMNS, MEANS, minimise, population
from transun.backbones import Constant, EmbeddingMLP
from transun.heads import GTS, ZILN, LogNormal, OptDist
from transun.heads.optdist import hard_gate, soft_gate
from transun.models.network import Model, Network
from transun.models.spec import dumps, loads

# paper/methods.md §13.1: the row of ZILN, since a gate that cannot see y cannot make experts differ in it.
EXPECTED = dict(zip(COLUMNS, (-0.0034, -0.2061, -0.0034, 0.0006, 0.1871, 0.1322, 0.0010, 0.2829), strict=True))
Y = torch.tensor([0.0, 0.5, 3.0, 40.0], dtype=torch.float64)


def settle(head, y):
    """The constant outputs (1, width) at the full-batch optimum: first the experts at a gate, then the gate at these.

    The gate's labels are taken from the experts under stop-gradient, so there is no one function of all outputs. The
    costs of the experts are weighted by the gate alone, which is the same for every row here: their optimum does not
    depend on it. At the end the experts are alike, and rounding decides which one the gate takes for the best.
    """
    noise = torch.Generator().manual_seed(0)
    *start, gate = (
        value.double() + 0.1 * torch.randn(len(value), generator=noise) for value in head.initial_outputs(y)
    )
    widths = [len(value) for value in start]

    def cost(experts, gate, names):
        outputs = (*(part.unsqueeze(0) for part in experts.split(widths)), gate.unsqueeze(0))
        with torch.random.fork_rng():  # the same noise in every evaluation, so that it is one function
            torch.manual_seed(0)
            terms = head.loss(tuple(output.expand(len(y), -1) for output in outputs), y)
        return sum(terms[name].mean() for name in names)

    experts = minimise(lambda values: cost(values, gate, ("experts",)), torch.cat(start))
    gate = minimise(lambda values: cost(experts, values, ("experts", "focal", "divergence")), gate)
    return (*(part.unsqueeze(0) for part in experts.split(widths)), gate.unsqueeze(0))


def random_raw(head, rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(rows, b.width, generator=generator, dtype=torch.float64) for b in head.branches)


def each_cost(raw, y):
    """The negative log likelihood (B, K) of each expert of a default OptDist."""
    return torch.stack([sum(ZILN().loss((expert_raw,), y).values()) for expert_raw in raw[:-1]], -1)


@pytest.mark.parametrize("column", COLUMNS)
def test_constant_input_limit(column):
    y = population(column, 2000 if column == "RS-ZIG" else 1000)
    head = OptDist().prepare(y).eval()
    assert head(settle(head, y)).item() / MEANS[column] - 1.0 == pytest.approx(EXPECTED[column], abs=1e-3)


def test_constant_input_limit_under_noise_and_with_a_soft_gate():
    """Noise weighs the rows of an expert unevenly, but not by their targets."""
    y = population("SM-BU", 1000)
    head = OptDist(gate=soft_gate).prepare(y).train()
    assert head(settle(head, y)).item() / MEANS["SM-BU"] - 1.0 == pytest.approx(EXPECTED["SM-BU"], abs=0.05)


def test_experts_weighted_by_responsibilities_would_split_the_targets():
    """The mistake that the limits above exclude: measured, so that they are known to see it.

    Σ sg[ω]·NLL with ω = softmax(-NLL) has the gradient of -ln Σ e^(-NLL), the likelihood of a mixture.
    """
    y = population("SM-BU", 1000)
    head = OptDist().prepare(y)
    noise = torch.Generator().manual_seed(0)
    start = torch.cat([value.double() + torch.randn(3, generator=noise) for value in head.initial_outputs(y)[:-1]])

    def cost(values):
        raw = (*(part.expand(len(y), -1) for part in values.split(3)), None)
        return -(-each_cost(raw, y)).logsumexp(-1).mean()

    for expert in minimise(cost, start).split(3):
        prediction = head.expert((expert.unsqueeze(0),)).item()
        assert abs(prediction / MEANS["SM-BU"] - 1.0 - EXPECTED["SM-BU"]) > 0.3


class TestLoss:
    def test_terms(self):
        head = OptDist(focal=0.3, divergence=0.7).eval()
        raw = random_raw(head, 4)
        terms = head.loss(raw, Y)
        cost = each_cost(raw, Y).numpy()
        q = special.softmax(raw[-1].numpy(), -1)
        np.testing.assert_allclose(terms["experts"].numpy(), (q * cost).sum(-1), rtol=1e-12)
        chosen = q[np.arange(4), cost.argmin(-1)]
        np.testing.assert_allclose(terms["focal"].numpy(), -0.3 * (1 - chosen) ** 2 * np.log(chosen), rtol=1e-10)
        known = special.softmax(-cost, -1)
        expected = 0.7 * special.rel_entr(known, q).sum(-1)
        np.testing.assert_allclose(terms["divergence"].numpy(), expected, rtol=1e-10)

    def test_experts_get_the_gates_weight_of_their_own_gradient_and_nothing_else(self):
        head = OptDist().eval()
        raw = tuple(value.requires_grad_() for value in random_raw(head, 4))
        gradients = torch.autograd.grad(sum(term.sum() for term in head.loss(raw, Y).values()), raw)
        q = raw[-1].softmax(-1)
        for index, expert_raw in enumerate(raw[:-1]):
            (alone,) = torch.autograd.grad(
                sum(term.sum() for term in ZILN().loss((expert_raw,), Y).values()), expert_raw
            )
            torch.testing.assert_close(gradients[index], q[:, index : index + 1] * alone)

    def test_labels_of_the_gate_are_detached(self):
        head = OptDist().eval()
        raw = tuple(value.requires_grad_() for value in random_raw(head, 4))
        terms = head.loss(raw, Y)
        labels = (terms["focal"] + terms["divergence"]).sum()
        *experts, gate = torch.autograd.grad(labels, raw, allow_unused=True)
        assert experts == [None] * 3
        assert (gate != 0).all()

    def test_the_gate_learns_which_expert_is_best(self):
        head = OptDist(LogNormal()).eval()
        y = torch.full((1,), math.exp(2.0) - 1.0)
        experts = tuple(torch.tensor([[mu, 0.0]]) for mu in (0.0, 2.0, 5.0))
        gate = torch.zeros(1, 3, requires_grad=True)
        for name, term in head.loss((*experts, gate), y).items():
            (gradient,) = torch.autograd.grad(term.sum(), gate, retain_graph=True)
            assert gradient.argmin().item() == 1, name

    def test_raw_parameters_are_not_averaged(self):
        """A mean of parameters is no mixture: two experts at the ends would look like one in the middle."""
        head = OptDist(LogNormal(), count=2, gate=soft_gate).eval()
        raw = (torch.tensor([[0.0, 0.0]]), torch.tensor([[4.0, 0.0]]), torch.zeros(1, 2))
        means = [math.exp(mu + math.log(2.0) ** 2 / 2) - 1.0 for mu in (0.0, 4.0)]
        assert head(raw).item() == pytest.approx(sum(means) / 2, rel=1e-6)
        y = torch.tensor([1.0])
        each = [LogNormal().loss((expert_raw,), y)["amount"].item() for expert_raw in raw[:2]]
        assert head.loss(raw, y)["experts"].item() == pytest.approx(sum(each) / 2, rel=1e-6)


class TestNoise:
    RAW = random_raw(OptDist(), 4)

    def loss(self, head, seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return head.loss(self.RAW, Y)["experts"]

    def test_is_there_in_training_and_seeded(self):
        head = OptDist().train()
        assert not torch.equal(self.loss(head, 0), self.loss(head, 1))
        assert torch.equal(self.loss(head, 0), self.loss(head, 0))

    def test_is_gone_in_evaluation(self):
        head = OptDist().eval()
        assert torch.equal(self.loss(head, 0), self.loss(head, 1))

    @pytest.mark.parametrize("gate", [hard_gate, soft_gate])
    def test_never_reaches_a_prediction(self, gate):
        head = OptDist(gate=gate)
        first = head.train()(self.RAW)
        assert torch.equal(first, head(self.RAW))
        assert torch.equal(first, head.eval()(self.RAW))

    def test_follows_the_mode_of_a_model_also_inside_a_wrapper(self):
        model = Model(Constant(), GTS(OptDist())).prepare(Y)
        batch, y = torch.zeros(4, 1), Y.float()
        model.network.outputs[0].bias.data += 1.0  # experts that differ, so that the noise shows

        def cost(seed):
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                return model.loss(batch, y)["inner.experts"]

        model.train()
        assert not torch.equal(cost(0), cost(1))
        model.eval()
        assert torch.equal(cost(0), cost(1))

    def test_follows_the_gate_on_average_at_a_low_temperature(self):
        """The Gumbel maximum: the share of rows in which an expert is tried is its probability."""
        head = OptDist(LogNormal(), temperature=1e-3)
        logits = torch.tensor([0.5, -0.5, 1.0]).expand(20_000, -1)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            trial = head._trial(logits)
        torch.testing.assert_close(trial.mean(0), logits[0].softmax(-1), atol=0.015, rtol=0.0)
        assert (trial.amax(-1) > 0.99).double().mean() > 0.98

    def test_temperature_spreads_the_trials(self):
        logits = torch.tensor([[0.5, -0.5, 1.0]])
        torch.testing.assert_close(
            OptDist(temperature=1e6)._trial(logits), torch.full((1, 3), 1 / 3), atol=1e-4, rtol=0
        )


class TestLaw:
    RAW = (*(torch.tensor([[a, mu, 0.0]], dtype=torch.float64) for a, mu in ((0.0, 1.0), (1.0, 2.0), (-1.0, 0.5))),)

    def cdf(self, index, v):
        a, mu, _ = self.RAW[index][0].tolist()
        zero = 1 / (1 + math.exp(a))
        return zero + (1 - zero) * stats.lognorm(s=math.log(2.0), loc=-1.0, scale=math.exp(mu)).cdf(v)

    def test_of_the_chosen_expert(self):
        raw = (*self.RAW, torch.tensor([[0.0, 2.0, 1.0]], dtype=torch.float64))
        v = torch.tensor([4.0], dtype=torch.float64)
        assert OptDist().cdf(raw, v).item() == pytest.approx(self.cdf(1, 4.0), rel=1e-10)
        assert OptDist()(raw).item() == pytest.approx(ZILN()((self.RAW[1],)).item())

    def test_of_the_mixture_and_its_quantiles(self):
        head = OptDist(gate=soft_gate, expert=ZILN(upper=1e4))
        raw = (*self.RAW, torch.tensor([[0.0, 2.0, 1.0]], dtype=torch.float64))
        q = special.softmax([0.0, 2.0, 1.0])
        v = torch.tensor([4.0], dtype=torch.float64)
        expected = sum(share * self.cdf(index, 4.0) for index, share in enumerate(q))
        assert head.cdf(raw, v).item() == pytest.approx(expected, rel=1e-10)
        assert head.quantile(raw, expected).item() == pytest.approx(4.0, rel=1e-6)
        assert head.quantile(raw, 0.05).item() == pytest.approx(0.0, abs=1e-9)  # less than the share of zeros


class TestStart:
    def test_predicts_what_one_expert_would(self):
        y = population("RS-ZIG", 2000)
        head, alone = OptDist().prepare(y), ZILN().prepare(y)
        start = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
        assert head(start).item() == alone((start[0],)).item()
        torch.testing.assert_close(start[0][0], alone.initial_outputs(y)[0], rtol=0.0, atol=0.0)

    @pytest.mark.parametrize("y", [[3.0, 3.0], [0.0, 0.0], [0.0, 1.0, 30.0]])
    def test_experts_differ_a_little(self, y):
        y = torch.tensor(y)
        head = OptDist().prepare(y)
        *experts, gate = head.initial_outputs(y)
        assert (gate == 0).all()
        for expert, previous in zip(experts[1:], experts, strict=False):
            assert (expert != previous).all()
        costs = [
            sum(t.mean() for t in head.expert.loss((expert_raw.expand(len(y), -1),), y).values())
            for expert_raw in experts
        ]
        assert max(costs) - min(costs) < 3.0


class TestArguments:
    def test_bounds_are_those_of_the_prepared_expert(self):
        head = OptDist().prepare(torch.tensor([0.0, 2.0]))
        assert head.expert.upper == head.transform.upper == 20.0
        raw = (*(torch.tensor([[9.0, 50.0, 0.0]]),) * 3, torch.zeros(1, 3))
        assert head(raw).item() == pytest.approx(20.0)

    def test_negative_targets_are_named(self):
        with pytest.raises(ValueError, match="-2 in row 0 is negative"):
            OptDist().prepare(torch.tensor([-2.0, 1.0]))

    def test_experts_may_share_what_the_first_has(self):
        backbone = EmbeddingMLP({"user": 50}, dim=4, hidden=(8,))
        tables = [
            sum(p.shape == (50, 4) for p in Network(backbone, OptDist(shared=shared).branches).parameters())
            for shared in (0, 1)
        ]
        assert tables == [4, 1]

    def test_comes_back_from_text(self):
        head = OptDist(LogNormal(shift=0.0), 4, soft_gate, temperature=0.5, shared=1)
        text = "OptDist(LogNormal(0.0), 4, soft_gate, 0.5, shared=1)"
        assert dumps(head) == dumps(loads(text)) == text
        assert [branch.width for branch in head.branches] == [2, 2, 2, 2, 4]
        assert [branch.shared for branch in head.branches] == [0, 1, 1, 1, 1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"count": 1}, "count >= 2"),
            ({"temperature": 0.0}, "temperature > 0"),
            ({"focal": -1.0}, "focal >= 0"),
            ({"divergence": math.nan}, "divergence >= 0"),
        ],
    )
    def test_mistakes_are_named(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            OptDist(**arguments)
