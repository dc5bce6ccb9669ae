"""The promise of a certificate, tested while labelled rows arrive; false alarms are bounded however often one looks."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transun.models.certificate import Certificate, read_certificate
from transun.support.arrays import Floats
from transun.support.counting import counted
from transun.watching.evidence import ChangeWatch, Evidence

__all__ = ["Gauge", "NoPromise", "Promise", "promise_of"]

Gauge = tuple[str, Callable[[], float]]
"""A number that changes: what it is, in a sentence, and a function that returns it."""

# Rows of a block: sums of fewer are too skewed for a normal law, and more take too long to arrive. Within these bounds
# the held-out rows of the certificate make about `_BLOCKS` blocks, which show how much the sums of blocks scatter.
_FEWEST, _MOST, _BLOCKS = 100, 1_000, 15
# Blocks after which a watch begins anew, and blocks between the moments at which a change may have begun.
_HORIZON, _STEP = 365, 7
# Sizes of a breach that are looked for, as shares of the total.
_SIZES = (0.05, 0.1, 0.2)


class Promise:
    """Tests whether predicted over actual totals stay within the interval of PGR that a certificate states.

    The certificate says low ≤ Σŷ/Σy ≤ high. Labelled rows are summed in blocks of as many rows each, in the order in
    which they arrive. If the promise holds, the actual total of a block is expected between Σŷ/high and Σŷ/low, so that

        Σy / (Σŷ/low) - 1  has a mean of at most 0,  and  Σy / (Σŷ/high) - 1  of at least 0.

    Each is watched by the e-process of `transun.watching.ChangeWatch` for a change to the forbidden side, at an unknown
    moment and of an unknown size, at half of the level. How much blocks scatter is known from the errors of the
    certificate's own rows. The probability of an alarm within 365 blocks in which the promise holds is at most `level`,
    and then the watch begins anew; sums of 100 skewed amounts or more are taken for normal. An alarm stays.

    The labelled rows must be a fair sample of the predicted ones: if small amounts are known earlier than large ones,
    feedback of what is known so far breaks any promise.

    Args:
        certificate: of the model; a `ValueError` says why its promise cannot be tested.
        level: the probability of a false alarm within 365 blocks.

    """

    def __init__(self, certificate: Certificate, level: float = 0.05) -> None:
        measured, noise = certificate.whole.metrics.get("PGR"), certificate.noise
        if certificate.weight is not None:
            raise ValueError(f"the certificate counts rows by the weight {certificate.weight!r}, which feedback lacks")
        if measured is None or not 0.0 < measured.low <= measured.high < math.inf:
            raise ValueError("the certificate has no interval of PGR above 0")
        if noise is None or not noise.actual > 0.0 or not noise.squares > 0.0:
            raise ValueError("the certificate does not say how much errors scatter")
        self.low, self.high, self.level = measured.low, measured.high, level
        self.block = min(max(noise.rows // _BLOCKS, _FEWEST), _MOST)
        blocks = min(noise.rows // self.block, noise.units)
        if blocks < 2:
            raise ValueError(f"the certificate is of {counted(noise.rows, 'row')}, and {2 * _FEWEST} are needed")
        # The held-out errors as sums of blocks, relative to the total of a block. A watch needs their number and their
        # sum of squares only, which independent errors have in common with their sums.
        self._history = np.full(blocks, math.sqrt(noise.squares * noise.rows / self.block) / noise.actual)
        above, below = (ChangeWatch(_HORIZON, _STEP, _SIZES, 0.5 * level, (sign,)) for sign in (1.0, -1.0))
        if not above.scatters(self._history):
            raise ValueError("the errors of the certificate scatter by rounding alone, or beyond all numbers")
        self._watches = {"above": (above, measured.low), "below": (below, measured.high)}
        self._waiting = np.empty((2, 0))
        self._blocks: list[tuple[float, float]] = []
        self._evidence: dict[str, Evidence] = {}
        self.broken: str | None = None
        """The side on which actual amounts are beyond the promise, "above" or "below"; None while it is kept."""

    @property
    def log_evidence(self) -> float:
        """The larger of the logarithms of the two e-processes now; an alarm is raised from ln(2 / level) on."""
        return max((float(each.log_e[-1]) for each in self._evidence.values()), default=0.0)

    def update(self, pred: Floats, actual: Floats) -> None:
        """Count labelled rows, in the order of their arrival."""
        rows = np.concatenate([self._waiting, np.stack([pred, actual])], 1)
        whole = rows.shape[1] // self.block * self.block
        self._waiting = rows[:, whole:]
        for sums in rows[:, :whole].reshape(2, -1, self.block).sum(2).T.tolist():
            self._add(*sums)

    @property
    def status(self) -> str:
        """Whether the promise is kept, in two words at most."""
        return "ok" if self.broken is None else "promise broken"

    def gauges(self) -> dict[str, Gauge]:
        """What a monitoring system watches, by name."""
        return {
            "promised_pgr_low": ("Lower end of PGR by the certificate.", lambda: self.low),
            "promised_pgr_high": ("Upper end of PGR by the certificate.", lambda: self.high),
            "promise_log_evidence": (
                f"Evidence against the promise; an alert from {math.log(2.0 / self.level):.2f} on.",
                lambda: self.log_evidence,
            ),
            "promise_broken": (
                f"1 after feedback has contradicted the certificate, falsely with probability {self.level:g} at most.",
                lambda: float(self.broken is not None),
            ),
        }

    def sentence(self) -> str:
        """What the promise is, and whether it is kept, for people."""
        promise = f"the certificate promises a PGR from {self.low:.3f} to {self.high:.3f}"
        if self.broken is None:
            return f"{promise}, and feedback does not contradict it"
        return (
            f"{promise}, and actual amounts are {self.broken} that: diagnose the model on recent rows, then train or "
            "certify it anew"
        )

    def _add(self, pred: float, actual: float) -> None:
        if not pred > 0.0:
            return  # nothing can be compared with a predicted total of 0
        if len(self._blocks) == _HORIZON:
            self._blocks = []
        self._blocks.append((pred, actual))
        if self.broken is not None:
            return
        predicted, came = np.array(self._blocks).T
        for side, (watch, pgr) in self._watches.items():
            self._evidence[side] = watch(self._history, came * pgr / predicted - 1.0)
            if self._evidence[side].alarm is not None:
                self.broken = side


@dataclass(frozen=True)
class NoPromise:
    """Stands where a model has no promise that could be tested: feedback is counted, and nothing is ever broken.

    Args:
        reason: why there is none, in a sentence.

    """

    reason: str = "the model has no certificate"
    status = "ok, no promise is watched"

    def update(self, pred: Floats, actual: Floats) -> None:
        """Labelled rows change nothing."""

    def sentence(self) -> str:
        """Why there is no promise."""
        return self.reason

    def gauges(self) -> Mapping[str, Gauge]:
        """Nothing to watch."""
        return {}


def promise_of(folder: str | Path) -> Promise | NoPromise:
    """The promise of the certificate in the folder of a model; where it cannot be tested, the reason.

    >>> import tempfile
    >>> "certificate.json is not there: certify the model again" in promise_of(tempfile.mkdtemp()).sentence()
    True
    """
    try:
        return Promise(read_certificate(folder))
    except (OSError, ValueError) as error:
        return NoPromise(str(error))
