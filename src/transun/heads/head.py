"""The concept of a head: which raw outputs a method needs, what they cost and what they mean."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import Tensor, nn

from transun.support.text_form import arguments
from transun.transforms import Identity, Transform

if TYPE_CHECKING:
    from transun.heads.density import Density

Raw = tuple[Tensor, ...]
"""The raw outputs of a network: one (B, width) tensor per branch of the head."""

# Adam adds 1e-8 to the size of a gradient, and float32 has seven digits beside a constant of 1. Measured: networks
# learn targets of 1e-6 on average as they learn targets of 1, and nothing of targets of 1e-8.
_LEAST_MEAN = 1e-6

RankingPairs = dict[str, tuple[Tensor, Tensor]]
"""Named pairs of a score (B,) and the label (B,) that it should be ordered like."""


Sharing = int | Literal["all"]
"""How many leading stages of a network a branch shares; "all" of them leave the branch only its output layer."""


@dataclass(frozen=True)
class Branch:
    """A group of raw outputs that a network computes with one stack of layers.

    Args:
        width: raw outputs in this branch.
        shared: leading stages reused from an earlier branch, a number or "all", which leaves the branch only its output
            layer. More sharing costs less and couples the branches: their losses then train the same weights.
        shares_with: the branch whose stages are reused, by its index among the head's branches.
        trains_shared: whether its loss trains the shared stages too. If not it only reads them, and the branch they
            belong to is trained as if there were no other.

    """

    width: int = 1
    shared: Sharing = 0
    shares_with: int = 0
    trains_shared: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.shared, str) and self.shared != "all":
            raise ValueError(f'Branch needs shared to be a number of stages or "all", got {self.shared!r}')


def most_shared(first: Sharing, second: Sharing) -> Sharing:
    """The larger of two numbers of shared stages; "all" is the largest.

    >>> most_shared(1, 2), most_shared("all", 2)
    (2, 'all')
    """
    return "all" if first == "all" or second == "all" else max(first, second)


class Head(nn.Module, ABC):
    """A regression method: raw outputs in `branches`, per-sample `loss`, and a prediction.

    The prediction is `transform.inverse(point(raw))`. A subclass declares `branches` and writes `point` and `loss`;
    `prepare` and `initial_outputs` where it learns constants from the training targets. A head may keep buffers and has
    no parameters: those belong to the network. A head that wraps a head is a head.

    Every constructor argument is stored under its own name, so that a head can be printed, rebuilt and compared.
    """

    branches: tuple[Branch, ...] = (Branch(),)
    transform: Transform = Identity()

    @abstractmethod
    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        """Named per-sample terms, each (B,). The training loss is the sum of their (weighted) means."""

    @abstractmethod
    def point(self, raw: Raw) -> Tensor:
        """The estimate u (B,) in the space of `transform`."""

    def forward(self, raw: Raw) -> Tensor:
        """The prediction (B,), in units of the target."""
        return self.transform.inverse(self.point(raw))

    def undebiased(self, raw: Raw) -> Tensor:
        """The prediction (B,) before any debiasing: that of the innermost head; for a plain head its own."""
        return self.forward(raw)

    @property
    def distribution(self) -> "Density | None":
        """The head to ask for quantiles of y|x, with the same raw outputs; None where the method has no quantiles."""
        return None

    @property
    def bias_branches(self) -> tuple[int, ...]:
        """The branches that learn by how much the others are off, by their index among `branches`."""
        return ()

    @property
    def debiased(self) -> bool:
        """Whether this head, or a head inside it, has a bias branch."""
        return bool(self.bias_branches)

    def kappa(self, raw: Raw) -> Tensor | None:
        """The slope κ(u) (B,) of the bias branch: how much its label grows per unit of the target.

        None where there is no bias branch, or where its label is not linear in the target.
        """
        return None

    @property
    def rowwise(self) -> bool:
        """Whether the training loss of a row depends on that row alone: on no other row and on no random number."""
        return True

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        """The scores that a ranking loss may order, each with its label: here the point and the target."""
        return {"point": (self.point(raw), y)}

    def prepare(self, y: Tensor) -> Self:
        """A copy of the head with its constants learned from the training targets y (n,).

        Raises a `ValueError` that names the first target the method cannot use. The outputs of a head that does not
        override this are in units of the target, so that targets far below 1 are refused too.
        """
        check_targets(y)
        check_unit(y)
        self.transform.check(y)
        return self.replace()

    def initial_outputs(self, y: Tensor) -> Raw:
        """The constant raw outputs, (width,) per branch, at which training on y begins.

        They should be the best constants: a network whose output biases start there spends its first steps on
        differences between rows instead of on the mean.
        """
        return tuple(torch.zeros(branch.width, dtype=y.dtype) for branch in self.branches)

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        """As `initial_outputs`, where the first branches are trained already.

        A bias branch then starts at what these branches say about each row, not at what their best constants would.

        Args:
            trained: the raw outputs of the branches that are trained, (n, width) each; none where all start afresh.
            y: the targets (n,) of the same rows.

        """
        return self.initial_outputs(y)

    def wrap(self, base: "Head") -> "Head":
        """The same wrappers around `base`, a prepared head that replaces the innermost one."""
        if base.branches != self.branches:
            raise ValueError(f"a base with branches {base.branches} cannot stand where {self.branches} are needed")
        return base

    def replace(self, **changes: Any) -> Self:
        """The same head, built again with some constructor arguments changed."""
        return type(self)(**arguments(self) | changes)


class Wrapper(Head):
    """A head around a head: everything is delegated to `inner`, unless a subclass overrides it.

    A wrapper that adds branches overrides `outputs_beside`, of which `initial_outputs` is the case without a base.
    """

    def __init__(self, inner: Head) -> None:
        super().__init__()
        if not isinstance(inner, Head):
            raise TypeError(f"{type(self).__name__} wraps a head, such as LogMSE(), got {inner!r}")
        self.inner = inner
        self.branches = inner.branches
        self.transform = inner.transform

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return self.inner.loss(raw, y)

    def point(self, raw: Raw) -> Tensor:
        return self.inner.point(raw)

    def undebiased(self, raw: Raw) -> Tensor:
        return self.inner.undebiased(raw)

    @property
    def bias_branches(self) -> tuple[int, ...]:
        return self.inner.bias_branches

    def kappa(self, raw: Raw) -> Tensor | None:
        return self.inner.kappa(raw)

    @property
    def rowwise(self) -> bool:
        return self.inner.rowwise

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        return self.inner.ranking_pairs(raw, y)

    def prepare(self, y: Tensor) -> Self:
        prepared = self.replace(inner=self.inner.prepare(y))
        prepared.transform.check(y)  # a wrapper may accept fewer targets than the head inside it
        return prepared

    def initial_outputs(self, y: Tensor) -> Raw:
        return self.outputs_beside((), y)

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        return self.inner.outputs_beside(trained, y)

    def wrap(self, base: Head) -> Self:
        return self.replace(inner=self.inner.wrap(base))


def rows_at_start(constants: Raw, trained: Raw) -> Raw:
    """The raw outputs (n, width) with which training begins: those of trained branches, then constants.

    Where no branch is trained all rows are alike, and one row (1, width) stands for all of them.

    >>> [raw.tolist() for raw in rows_at_start((torch.zeros(1), torch.ones(1)), (torch.tensor([[5.0], [6.0]]),))]
    [[[5.0], [6.0]], [[1.0], [1.0]]]
    """
    rows = len(trained[0]) if trained else 1
    return (*trained, *(constant.expand(rows, -1) for constant in constants[len(trained) :]))


def check_targets(y: Tensor) -> None:
    """Raise a `ValueError` for targets that no method can learn from: none, not (n,), NaN or infinite."""
    if y.ndim != 1:
        raise ValueError(f"targets must have shape (n,), got {tuple(y.shape)}")
    if len(y) == 0:
        raise ValueError("there are no targets: the training data is empty")
    wrong = ~y.isfinite()
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(f"target {y[row].item()} in row {row} is not finite; drop or repair such rows first")


def check_unit(y: Tensor) -> None:
    """Raise a `ValueError` for targets far below 1, of which a head with outputs in units of the target learns nothing.

    Targets that are all zero have no unit and pass. Targets that are too large need no check: their loss is infinite,
    and training says so.

    >>> check_unit(torch.tensor([0.0, 2e-9]))
    Traceback (most recent call last):
    ValueError: the targets are 1e-09 on average, too far below 1 for this head, whose outputs have their unit: ...
    """
    mean = float(y.abs().double().mean())
    if 0.0 < mean < _LEAST_MEAN:
        raise ValueError(
            f"the targets are {mean:.3g} on average, too far below 1 for this head, whose outputs have their unit: "
            "put `Scaled` around it, as in Scaled(LogSUN()), or multiply the targets by a constant"
        )
