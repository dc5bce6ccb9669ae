"""The recommended default for amounts: three unbiased ways to learn the mean in one network."""

from transun.heads.blend import Blend
from transun.heads.deviance import Poisson
from transun.heads.gts import GTS
from transun.heads.head import Head
from transun.heads.point import MSE, PointHead
from transun.heads.wrappers import Scaled
from transun.schemes import PoissonOffset
from transun.transforms import Affine, Compose, Log1p


def OffsetSUN(shared: int = 1) -> Head:  # noqa: N802 - named like the paper's instances
    """Least squares on ln(1 + 100·y/mean), and beside it the factor by which that is off, by Poisson deviance of y.

    The log-trained point keeps the order, the factor makes the totals right; see `PoissonOffset`.

    Args:
        shared: leading stages that the two branches share; 1 is the embedding.

    >>> len(OffsetSUN().branches)
    2

    """
    return Scaled(GTS(PointHead(Compose(Affine(100.0), Log1p())), PoissonOffset(0.01), shared))


def AutoSUN(shared: int = 0) -> Head:  # noqa: N802
    """The mean of three unbiased predictions: squares, Poisson deviance, and a debiased log target (`OffsetSUN`).

    None of the three is best everywhere: squares follow the largest amounts, Poisson deviance the middle, the log
    target the order. Their errors differ, so their mean is better than each on most data, and it is unbiased because
    they are. For y ≥ 0. Costs four branches.

    Args:
        shared: leading stages that branches share; 1 shares the embedding and costs little more than one branch, 0
            gives each method its own network, which is more accurate and four times as large.

    >>> [branch.shared for branch in AutoSUN(shared=1).branches]
    [0, 1, 1, 1]

    """
    return Blend(Blend(Scaled(MSE()), Poisson(), shared=shared), OffsetSUN(shared), share=1.0 / 3.0, shared=shared)
