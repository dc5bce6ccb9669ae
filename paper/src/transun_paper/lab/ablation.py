"""What AutoSUN is made of, taken out piece by piece."""

from dataclasses import replace

from transun.heads import GTS, TPM, AutoSUN, Blend, Head, PointHead, QuantileMean, RankPreserving, Scaled
from transun.heads.bins import leaf_means
from transun.schemes import PoissonOffset, ReciprocalTarget, Scheme
from transun.transforms import Affine, Compose, Log1p
from transun_paper.lab.boards import FULL, QUICK, Board
from transun_paper.lab.methods import Method

_LOG = PointHead(Compose(Affine(100.0), Log1p()))
_QUANTILES, _BINS = QuantileMean(), TPM(leaf=leaf_means)
_OFFSET = PoissonOffset(0.01)


def _debiased(inner: Head, scheme: Scheme = _OFFSET) -> Head:
    return GTS(inner, scheme, shared=1)


def _two(first: Head, second: Head, share: float = 0.5) -> Head:
    return Scaled(Blend(first, second, share, shared=0))


def _three(first: Head, second: Head, third: Head) -> Head:
    return _two(first, Blend(second, third, shared=0), share=2.0 / 3.0)


# A fifth of the whole keeps the order where this is three fifths of it.
_ORDERED = RankPreserving(_debiased(_LOG), share=1.0 / 3.0)
WHOLE = "AutoSUN"
PIECES: tuple[Method, ...] = (
    Method("one embedding for all", AutoSUN(shared=1), balanced=True),
    Method("no balance at the end", AutoSUN()),
    Method(
        "no ordered share",
        _three(_debiased(_LOG), _debiased(_QUANTILES), _debiased(_BINS)),
        balanced=True,
    ),
    Method("no log target", _two(_debiased(_QUANTILES), _debiased(_BINS)), balanced=True),
    Method("no quantiles", _two(_ORDERED, _debiased(_BINS), share=0.4), balanced=True),
    Method("no bins", _two(_ORDERED, _debiased(_QUANTILES), share=0.4), balanced=True),
    Method("no bias branches", _three(_LOG, _QUANTILES, _BINS), balanced=True),
    Method(
        "no ordered share, the paper's slope for the offset",
        _three(*(_debiased(inner, ReciprocalTarget()) for inner in (_LOG, _QUANTILES, _BINS))),
        balanced=True,
    ),
)


def ablation_board(quick: bool) -> Board:
    """AutoSUN and what it is without each piece, by the leaderboard's protocol; three seeds, as differences pair."""
    board = QUICK if quick else FULL
    protocol = replace(board.protocol, seeds=min(board.protocol.seeds, 3))
    return replace(board, protocol=protocol, methods=(Method(WHOLE, AutoSUN(), balanced=True), *PIECES))
