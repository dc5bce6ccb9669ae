"""The recommended default for amounts: three descriptions of y|x, each made unbiased, in one network."""

from transun.heads.bins import leaf_means
from transun.heads.blend import Blend
from transun.heads.gts import GTS
from transun.heads.head import Head, Sharing
from transun.heads.point import PointHead
from transun.heads.quantiles import QuantileMean
from transun.heads.rank_preserving import RankPreserving
from transun.heads.tpm import TPM
from transun.heads.wrappers import Scaled
from transun.schemes import PoissonOffset
from transun.transforms import Affine, Compose, Log1p

# In units of the mean target: smaller amounts are practically zero.
_LEAST = 0.01


def PoissonSUN(shared: Sharing = 1) -> Head:  # noqa: N802 - named like the paper's instances
    """Least squares on ln(1 + 100·y/mean), and beside it the factor by which that is off, by Poisson deviance of y.

    The log-trained point keeps the order, the factor makes the totals right; see `PoissonOffset`.

    Args:
        shared: leading stages that the two branches share; 1 is the embedding.

    >>> len(PoissonSUN().branches)
    2

    """
    return Scaled(_offset(_log(), shared))


def AutoSUN(shared: Sharing = 0, order: float = 0.2) -> Head:  # noqa: N802
    """The mean of three unbiased predictions: from a log target, from quantiles and from a tree of bins.

    Each describes y|x in its own way, is trained by its own loss, and has a branch for the factor by which its mean is
    off (`GTS` with `PoissonOffset`). A log target follows the order, quantiles the middle of the distribution, bins its
    shape; none is best everywhere and their errors differ, so their mean is better than each on most data. It is
    unbiased because they are. For y ≥ 0.

    Args:
        shared: leading stages that the three share. 1 shares the embedding and costs little more than dense layers; 0
            gives each a network of its own, which is more accurate and needs three tables instead of one.
        order: share of the prediction that keeps the order of the log target; see `RankPreserving`. More ranks as
            the log target does, mostly better, and costs squared error; paper/reports has both on six data sets.

    >>> len(AutoSUN().branches)
    7

    """
    rest = 1.0 - order  # a third of it for each
    first = RankPreserving(_offset(_log()), share=order / (order + rest / 3.0))
    parts = first, _offset(QuantileMean()), _offset(TPM(leaf=leaf_means))
    return Scaled(Blend(parts, (1.0 - 2.0 * rest / 3.0, rest / 3.0, rest / 3.0), shared=shared))


def _log() -> Head:
    return PointHead(Compose(Affine(1.0 / _LEAST), Log1p()))


def _offset(inner: Head, shared: Sharing = 1) -> Head:
    return GTS(inner, PoissonOffset(_LEAST), shared)
