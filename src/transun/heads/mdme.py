"""MDME: the group of the target, its bucket within the group, its position within the bucket."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, pad

from transun.heads.bins import (
    Binned,
    Binning,
    equal_frequency,
    leaf_means,
    leaf_of,
    leaf_sizes,
    log_shares,
    odds,
)
from transun.heads.density import widen
from transun.heads.head import Branch, Raw
from transun.support.arguments import require_count

Choice = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(log P(group) (B, S), log P(bucket | group) (B, S, K), values (B, S, K)) -> the prediction (B,)."""


def most_likely_bucket(group: Tensor, bucket: Tensor, value: Tensor) -> Tensor:
    """The value of the likeliest bucket of the likeliest group, as published: jumps where the winner changes.

    Learns the mean within one bucket, so totals can be far off: on skewed targets it forgets the tail. Buckets of equal
    frequency all but tie where features say little, and there rounding picks the winner.

    >>> group, bucket = torch.tensor([[0.6, 0.4]]).log(), torch.tensor([[[0.3, 0.7], [1.0, 0.0]]]).log()
    >>> most_likely_bucket(group, bucket, torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [2.0]
    """
    winner = group.argmax(-1)
    best = _of_group(bucket, winner).argmax(-1, keepdim=True)
    return _of_group(value, winner).gather(-1, best).squeeze(-1)


def expected_bucket(group: Tensor, bucket: Tensor, value: Tensor) -> Tensor:
    """Σ P(group)·P(bucket | group)·value: all buckets count, and the mean is kept.

    >>> group, bucket = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[[0.5, 0.5], [1.0, 0.0]]]).log()
    >>> expected_bucket(group, bucket, torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [2.25]
    """
    return ((group.unsqueeze(-1) + bucket).exp() * value).sum((-2, -1))


class MDME(Binned):
    """Classifies the group of y, then its bucket in that group, and learns its position σ(ρ) in [0, 1] in the bucket.

    Minimises the cross-entropy of the group, that of the bucket among those of the **true** group, and
    (σ(ρ) - (y - e_j) / (e_{j+1} - e_j))² in the true bucket, so that its value e_j + σ(ρ)·(e_{j+1} - e_j) is the mean
    of the targets there. `choice` makes one prediction of all buckets. Those without training rows never learn.

    Args:
        groups: S sub-distributions; each owns neighbouring buckets.
        buckets: K buckets a group.
        binning: where the S·K buckets end: `equal_frequency` on real data, `equal_width` in the synthetic table.
        choice: `expected_bucket` keeps the mean; `most_likely_bucket` is the published inference, to compare with the
            paper.
        ordinal: weight of binary terms 1[group > m] and 1[bucket > m] on outputs of their own, which know that the
            classes are ordered. 0 leaves those outputs out.
        distillation: weight of KL(ordinal ‖ classes), by which they teach the classes; needs `ordinal` > 0. The public
            re-implementation has 0.5.
        temperature: of both sides of that KL. Small ones teach the winner alone.

    >>> head = MDME(1, 2).prepare(torch.tensor([0.0, 1.0, 2.0, 3.0, 6.0]))  # buckets [0, 2] and (2, 6]
    >>> raw = (torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0]]),)  # one group, two buckets, the middle of each: 1 and 4
    >>> round(head(raw).item(), 4)  # (1 + 4e) / (1 + e)
    3.1932
    >>> head.replace(choice=most_likely_bucket).prepare(torch.tensor([0.0, 2.0, 6.0]))(raw).item()
    4.0
    >>> terms = head.loss(raw, torch.tensor([3.0]))  # ln(1 + 1/e), and (1/2 - 1/4)²
    >>> round(terms["bucket"].item(), 4), round(terms["within"].item(), 4)
    (0.3133, 0.0625)

    """

    def __init__(
        self,
        groups: int = 4,
        buckets: int = 4,
        binning: Binning = equal_frequency,
        choice: Choice = expected_bucket,
        ordinal: float = 0.0,
        distillation: float = 0.0,
        temperature: float = 0.1,
    ) -> None:
        require_count("MDME", groups=groups, buckets=buckets)
        if not (ordinal >= 0.0 and distillation >= 0.0 and temperature > 0.0):
            raise ValueError(
                "MDME needs ordinal >= 0, distillation >= 0 and temperature > 0, "
                f"got {ordinal}, {distillation} and {temperature}"
            )
        if distillation > 0.0 and ordinal == 0.0:
            raise ValueError("MDME: distillation teaches from the ordinal outputs; set ordinal > 0 as well")
        super().__init__(groups * buckets, binning)
        self.groups, self.buckets, self.choice = groups, buckets, choice
        self.ordinal, self.distillation, self.temperature = ordinal, distillation, temperature
        # Group logits, bucket logits, positions; then, if there are any, the ordinal logits of groups and of buckets.
        ordered = (groups - 1, groups * (buckets - 1)) if ordinal else ()
        self._widths = [groups, groups * buckets, groups * buckets, *ordered]
        self.branches = (Branch(sum(self._widths)),)

    def shares(self, raw: Raw) -> Tensor:
        group, bucket, *_ = self._logits(raw)
        return (group.log_softmax(-1).unsqueeze(-1) + bucket.log_softmax(-1)).exp().flatten(1)

    def point(self, raw: Raw) -> Tensor:
        group, bucket, position, *_ = self._logits(raw)
        edges = self.edges.to(position)
        value = (edges[:-1] + position.sigmoid() * edges.diff()).reshape(bucket.shape)
        return self.choice(group.log_softmax(-1), bucket.log_softmax(-1), value)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        group, bucket, position, *ordered = self._logits(raw)
        edges = self.edges.to(position.device)
        leaf = leaf_of(y, edges)
        true_group, true_bucket = leaf // self.buckets, leaf % self.buckets
        # The buckets of the true group, whichever group is predicted: only there does the label mean anything.
        bucket_logits = _of_group(bucket, true_group)
        guess = position.gather(1, leaf.unsqueeze(1)).squeeze(1).sigmoid()
        terms = {
            "group": cross_entropy(group, true_group, reduction="none"),
            "bucket": cross_entropy(bucket_logits, true_bucket, reduction="none"),
            "within": (guess - _position(y, edges, leaf).to(guess.dtype)).square(),
        }
        if ordered:
            group_order, bucket_order = ordered[0], _of_group(ordered[1], true_group)
            terms["ordinal"] = self.ordinal * (_ordinal(group_order, true_group) + _ordinal(bucket_order, true_bucket))
            if self.distillation:
                of_group = self._distillation_cost(group_order, group)
                of_bucket = self._distillation_cost(bucket_order, bucket_logits)
                terms["distillation"] = self.distillation * (of_group + of_bucket)
        return terms

    def initial_outputs(self, y: Tensor) -> Raw:
        edges = self.edges.to(y.device)
        sizes = leaf_sizes(y, edges).reshape(self.groups, self.buckets)
        leaf = torch.arange(len(edges) - 1, device=y.device)
        # The mean's position: the clamp keeps the logit of a bucket whose targets all lie at one end finite.
        position = _position(leaf_means(y, edges), edges, leaf).double()
        parts = [log_shares(sizes.sum(1)), log_shares(sizes).flatten(), odds(position, torch.ones_like(position))]
        if self.ordinal:
            parts += [_start_ordinal(sizes.sum(1)), _start_ordinal(sizes).flatten()]
        return (torch.cat(parts).to(y.dtype),)

    def _logits(self, raw: Raw) -> list[Tensor]:
        """Groups (B, S), buckets (B, S, K), positions (B, S·K), and the ordinal ones (B, S-1), (B, S, K-1) if any."""
        group, bucket, position, *ordered = torch.split(widen(raw[0]), self._widths, dim=1)
        rows = bucket.shape[0]  # len() would freeze the batch size of an exported graph
        logits = [group, bucket.reshape(rows, self.groups, self.buckets), position]
        if ordered:
            logits += [ordered[0], ordered[1].reshape(rows, self.groups, self.buckets - 1)]
        return logits

    def _distillation_cost(self, ordered: Tensor, classes: Tensor) -> Tensor:
        """KL (B,) from the classes that the ordinal logits imply, detached, to the predicted classes.

        Class s is above the thresholds below s and not above the rest; up to a constant its log-probability is the sum
        of their logits.
        """
        teacher = (pad(ordered, (1, 0)).cumsum(-1) / self.temperature).log_softmax(-1).detach()
        student = (classes / self.temperature).log_softmax(-1)
        return (teacher.exp() * (teacher - student)).sum(-1)


def _of_group(values: Tensor, group: Tensor) -> Tensor:
    """The row (B, K) of values (B, S, K) that belongs to each group (B,)."""
    return values.gather(1, group[:, None, None].expand(-1, 1, values.shape[-1])).squeeze(1)


def _position(y: Tensor, edges: Tensor, leaf: Tensor) -> Tensor:
    """Where in its bucket a target lies, in [0, 1]; the middle of a bucket without width."""
    low, width = edges[leaf], edges.diff()[leaf]
    position = (y.to(edges) - low) / width.where(width > 0.0, 1.0)
    return torch.where(width > 0.0, position.clamp(0.0, 1.0), 0.5)


def _ordinal(logits: Tensor, label: Tensor) -> Tensor:
    """Σ_m of the cross-entropies of 1[label > m], (B,)."""
    above = label.unsqueeze(-1) > torch.arange(logits.shape[-1], device=label.device)
    return binary_cross_entropy_with_logits(logits, above.to(logits.dtype), reduction="none").sum(-1)


def _start_ordinal(sizes: Tensor) -> Tensor:
    """Logits of P(class > m) for the class sizes along the last axis."""
    total = sizes.sum(-1, keepdim=True)
    return odds((total - sizes.cumsum(-1))[..., :-1], total)
