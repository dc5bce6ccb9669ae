"""Several backbones in one network, each of which supplies some of the branches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Self

from torch import nn

from transun.backbones.backbone import Backbone

__all__ = ["Beside"]


@dataclass(frozen=True)
class Beside(Backbone):
    """Backbones side by side: the first supplies the first branches, the second the next ones, and so on.

    With a `Blend` of heads this is a mixture of models of different kinds, such as trees and a network, in one model:
    it predicts, is saved, exported and corrected like any other. A branch shares stages only with branches of the
    same backbone. Where one backbone has several members, the others count as that many equal members.

    Args:
        parts: the backbones.
        branches: how many branches each supplies.

    >>> beside = Beside((Constant(), EmbeddingMLP(numeric=("a",))), branches=(1, 2))
    >>> [type(beside.of_branch(index)).__name__ for index in range(3)]
    ['Constant', 'EmbeddingMLP', 'EmbeddingMLP']

    """

    parts: Sequence[Backbone]
    branches: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "branches", tuple(self.branches))
        if not self.parts or len(self.parts) != len(self.branches) or min(self.branches) < 1:
            raise ValueError(f"Beside needs a number of branches >= 1 for every part, got {self.branches}")
        if wrong := {part.members for part in self.parts} - {1, self.members}:
            raise ValueError(f"Beside needs parts of one member or of {self.members}, not of {min(wrong)}")

    @property
    def out_features(self) -> int:
        """Width of the last stage of the first part."""
        return self.parts[0].out_features

    @property
    def members(self) -> int:
        return max(part.members for part in self.parts)

    def stages(self) -> list[Callable[[], nn.Module]]:
        return self.parts[0].stages()

    def of_branch(self, index: int) -> Backbone:
        for part, count, end in zip(self.parts, self.branches, accumulate(self.branches), strict=True):
            if index < end:
                return part.of_branch(index - end + count)
        raise ValueError(f"the head has more branches than the {sum(self.branches)} that Beside supplies")

    def grow(self, sizes: Mapping[str, int]) -> Self:
        """The same parts with room for more ids."""
        parts: list[Any] = list(self.parts)
        return replace(self, parts=tuple(part.grow(sizes) for part in parts))
