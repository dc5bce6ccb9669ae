"""What training records about itself."""

from dataclasses import dataclass, field

__all__ = ["Check", "History", "Step"]


@dataclass(frozen=True)
class Step:
    """What one optimiser step saw: the mean of every loss term over its batch."""

    step: int
    epoch: int
    rate: float
    terms: dict[str, float]

    @property
    def loss(self) -> float:
        """The sum of the terms."""
        return sum(self.terms.values())


@dataclass(frozen=True)
class Check:
    """One look at the validation data after `step` steps."""

    step: int
    value: float


@dataclass
class History:
    """What happened during `fit`: about a thousand points of the learning curve, and every validation check."""

    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    best: Check | None = None
    stopped_early: bool = False
    seconds: float = 0.0
    rows: int = 0
