"""The rows of the leaderboard: every method under the name a person knows it by."""

from collections.abc import Callable
from dataclasses import dataclass, field

from transun.corrections import Correction, NormalTheory, Smearing, SmoothIsotonic
from transun.heads import (
    CLTM,
    CREAD,
    CTM,
    GTS,
    MAE,
    MDME,
    MSE,
    TPM,
    WLR,
    ZILN,
    AutoSUN,
    Gamma,
    Head,
    LogMAE,
    LogMSE,
    LogNormalMixture,
    LogSUN,
    OptDist,
    PointHead,
    Poisson,
    PoissonSUN,
    PriorWLR,
    QuantileMean,
    Ranked,
    Scaled,
    SoftWLR,
    SplineFlow,
    SqrtSUN,
    TranSUN,
    Tweedie,
)
from transun.heads.bins import leaf_means
from transun.schemes import PowerVariance
from transun.transforms import Arctan, Power
from transun_paper.lab.encoded_dataset import Frozen
from transun_paper.lab.measures import Predictions


@dataclass(frozen=True)
class Method:
    """A head, perhaps with a correction or balanced at the end, under a name."""

    name: str
    head: Head = field(compare=False)
    correction: Correction | None = field(default=None, compare=False)
    balanced: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Foreign:
    """A row that is not a network of ours: anything that can predict, such as boosted trees.

    Args:
        name: of the row.
        text: what is computed, completely: parameters and versions; results are kept under it.
        predict: predictions for frozen data with a seed. It must choose by the validation rows alone, as others do.
        seeds: how many of them to try; 1 for what has none.

    """

    name: str
    text: str
    predict: Callable[[Frozen, int], Predictions] = field(compare=False)
    seeds: int = 5


# Heads of several branches share the embedding, as the paper does at scale, except those of the paper's own method.
_SHARED = 1
METHODS: tuple[Method, ...] = (
    Method("MSE", Scaled(MSE())),
    Method("MAE", Scaled(MAE())),
    Method("LogMSE", LogMSE()),
    Method("LogMAE", LogMAE()),
    Method("SqrtMSE", Scaled(PointHead(Power(0.5)))),
    Method("ArctanMSE", PointHead(Arctan())),
    Method("LogMSE + smearing", LogMSE(), Smearing()),
    Method("LogMSE + normal theory", LogMSE(), NormalTheory()),
    Method("LogMSE + isotonic", LogMSE(), SmoothIsotonic()),
    Method("Poisson", Poisson()),
    Method("Gamma", Gamma()),
    Method("Tweedie 1.5", Tweedie()),
    Method("WLR", Scaled(WLR())),
    Method("PriorWLR", Scaled(PriorWLR(shared=_SHARED))),
    Method("SoftWLR", Scaled(SoftWLR())),
    Method("ZILN", ZILN()),
    Method("MDME", MDME()),
    Method("TPM", TPM()),
    Method("TPM, means of bins", TPM(leaf=leaf_means)),
    Method("CREAD", CREAD()),
    Method("OptDist", OptDist(shared=_SHARED)),
    Method("QuantileMean", QuantileMean()),
    Method("LogNormalMixture", LogNormalMixture()),
    Method("SplineFlow", SplineFlow()),
    Method("CTM", CTM()),
    Method("CLTM", CLTM()),
    Method("LogSUN", LogSUN()),
    Method("LogSUN, shared embedding", LogSUN(shared=_SHARED)),
    Method("LogSUN, 3 of 4 stages shared", LogSUN(shared=3)),
    Method("LogSUN, all stages shared", LogSUN(shared=4)),
    Method("SqrtSUN", SqrtSUN()),
    Method("ArctanSUN", TranSUN(Arctan())),
    Method("PoissonSUN", PoissonSUN()),
    Method("AutoSUN", AutoSUN(), balanced=True),
    Method("AutoSUN, shared embedding", AutoSUN(shared=1), balanced=True),
    Method("LogSUN, κ power 1", LogSUN(PowerVariance(1.0))),
    Method("LogSUN + ranking", Ranked(LogSUN(), on=("inner.point",))),
    Method("GTS of WLR", GTS(Scaled(WLR()))),
    Method("GTS of ZILN", GTS(ZILN())),
    Method("GTS of MDME", GTS(MDME())),
    Method("GTS of OptDist", GTS(OptDist(shared=_SHARED), shared=_SHARED)),
)
