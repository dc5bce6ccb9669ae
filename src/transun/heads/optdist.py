"""OptDist: several densities, and a gate that learns from their likelihoods which one suits a row."""

from collections.abc import Callable
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from transun.heads.density import Density
from transun.heads.head import Branch, Raw, Sharing, most_shared
from transun.heads.ziln import ZILN
from transun.support.arguments import require_count
from transun.transforms import Identity

# Experts that start alike and share everything would stay alike. Small even against the least spread of a ZILN.
_APART = 1e-3
# exp(1) noise may come out as exactly 0 in float32, about once in 2²⁴ draws, and its logarithm as -∞.
_LEAST_NOISE = 1e-20


Gate = Callable[[Tensor], Tensor]
"""Logits (B, K) -> weights (B, K) of the experts when predicting; they add up to 1."""


def hard_gate(logits: Tensor) -> Tensor:
    """All weight on the likeliest expert, the first of equals: as in OptDist's paper.

    >>> hard_gate(torch.tensor([[0.0, 2.0, 1.0]])).tolist()
    [[0.0, 1.0, 0.0]]
    """
    return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)


def soft_gate(logits: Tensor) -> Tensor:
    """The softmax of the logits: predictions without jumps, and a law that is a mixture.

    >>> soft_gate(torch.tensor([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    return logits.softmax(-1)


class OptDist(Density):
    """`count` experts and a gate g: Σ πₖ·NLLₖ + focal·CE(h, q) + divergence·KL(ω‖q), with q = softmax(g).

    In training π = softmax((g + Gumbel) / temperature), so that each expert is tried; out of training π = q. The gate
    also learns from the experts: h is the one that explains the row's target best and ω = softmax(-NLL) how
    clearly so, both without gradient. The experts themselves are weighted by π alone, never by h or ω: those know the
    target, and experts trained with them split the range of y instead of the rows, so that the chosen one
    predicts its own part only (a bias of ±88 % on two separate humps). Hence without features every expert learns what
    it would learn alone, and the bias of ZILN stays; `GTS` around it removes that.

    Args:
        expert: the density of each expert, whose loss terms add up to -ln of a likelihood.
        count: number of experts K.
        gate: which expert predicts: `hard_gate`, or `soft_gate` for their average.
        temperature: of π; high spreads the training over all experts, low follows the noisy gate.
        focal: weight of -(1 - q_h)²·ln q_h, the cost of not choosing the best expert. The label h is a hard choice
            between experts that start nearly alike, so rounding can decide it: on 8,000 simulated rows trainings whose
            first weights differed by 1e-7 ended with totals up to 3 % apart (0.2 % without this term, and up to 14 %
            for different seeds).
        divergence: weight of KL(ω‖q).
        shared: leading stages that all later branches reuse from the first. 0 builds count + 1 whole networks,
            embeddings included.

    >>> head = OptDist(LogNormal(), count=2).eval()
    >>> raw = (torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    >>> round(head(raw).item(), 4)  # the second expert: exp(1 + 0.4805/2) - 1
    2.4564
    >>> list(head.loss(raw, torch.tensor([1.0])))
    ['experts', 'focal', 'divergence']

    """

    def __init__(
        self,
        expert: Density = ZILN(),
        count: int = 3,
        gate: Gate = hard_gate,
        temperature: float = 1.0,
        focal: float = 0.1,
        divergence: float = 0.1,
        shared: Sharing = 0,
    ) -> None:
        super().__init__()
        require_count("OptDist", least=2, count=count)
        if not temperature > 0.0:
            raise ValueError(f"OptDist needs temperature > 0, got {temperature}")
        if not (focal >= 0.0 and divergence >= 0.0):
            raise ValueError(f"OptDist needs focal >= 0 and divergence >= 0, got {focal} and {divergence}")
        self.expert, self.count, self.gate = expert, count, gate
        self.temperature, self.focal, self.divergence, self.shared = temperature, focal, divergence, shared
        experts = [replace(branch, shared=most_shared(branch.shared, shared)) for branch in expert.branches * count]
        self.branches = (expert.branches[0], *experts[1:], Branch(count, shared))
        # The experts predict in units of the target already; what remains is their credible range.
        self.transform = Identity(lower=expert.transform.lower, upper=expert.transform.upper)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        cost = torch.stack([_total(self.expert.loss(expert_raw, y)) for expert_raw in self._split(raw)], -1)
        log_q = raw[-1].log_softmax(-1)
        log_omega = (-cost.detach()).log_softmax(-1)
        log_q_best = log_q.gather(-1, log_omega.argmax(-1, keepdim=True)).squeeze(-1)
        return {
            "experts": (self._trial(raw[-1]) * cost).sum(-1),
            "focal": -self.focal * (1.0 - log_q_best.exp()).square() * log_q_best,
            "divergence": self.divergence * (log_omega.exp() * (log_omega - log_q)).sum(-1),
        }

    @property
    def rowwise(self) -> bool:
        """False: training draws random numbers for the gate."""
        return False

    def point(self, raw: Raw) -> Tensor:
        return self._average(raw, [self.expert(expert_raw) for expert_raw in self._split(raw)])

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        return self._average(raw, [self.expert.cdf(expert_raw, v) for expert_raw in self._split(raw)])

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        lows, highs = zip(*(self.expert.support(expert_raw) for expert_raw in self._split(raw)), strict=True)
        return torch.stack(lows).amin(0), torch.stack(highs).amax(0)

    def prepare(self, y: Tensor) -> Self:
        return self.replace(expert=self.expert.prepare(y))

    def initial_outputs(self, y: Tensor) -> Raw:
        alone = self.expert.initial_outputs(y)
        # The gate starts even, so that the first expert, which starts at the optimum, predicts.
        experts = (value + _APART * index for index in range(self.count) for value in alone)
        return (*experts, torch.zeros(self.count, dtype=y.dtype))

    def _trial(self, logits: Tensor) -> Tensor:
        """π (B, K), the weights of the experts' losses. They may depend on the row, but not on its target."""
        if self.training:
            noise = torch.empty_like(logits, dtype=torch.float32).exponential_().clamp(min=_LEAST_NOISE).log()
            logits = (logits - noise) / self.temperature  # -ln of an exponential is a Gumbel
        return logits.softmax(-1)

    def _split(self, raw: Raw) -> list[Raw]:
        """The raw outputs of each expert; the gate's come last."""
        width = len(self.expert.branches)
        return [raw[index * width : (index + 1) * width] for index in range(self.count)]

    def _average(self, raw: Raw, values: list[Tensor]) -> Tensor:
        """Values of the experts, K of (B,), weighted by the gate: (B,)."""
        return (self.gate(raw[-1]) * torch.stack(values, -1)).sum(-1)


def _total(terms: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum(0)
