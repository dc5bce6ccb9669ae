"""The rows of the leaderboard: every method under the name that people know it by."""

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
    LogNormal,
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
from transun.heads.mdme import most_likely_bucket
from transun.schemes import PowerVariance
from transun.transforms import Arctan, Power
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.measures import Predictions


@dataclass(frozen=True)
class Method:
    """A head under a name, and what follows training: a correction, balancing, fusion, epochs of a z-only finish."""

    name: str
    head: Head = field(compare=False)
    correction: Correction | None = field(default=None, compare=False)
    balanced: bool = field(default=False, compare=False)
    fused: bool = field(default=False, compare=False)
    finish: int = field(default=0, compare=False)


@dataclass(frozen=True)
class ExternalMethod:
    """A row of the leaderboard that is not a network of ours: anything that predicts, such as boosted trees.

    Args:
        name: of the row.
        text: a complete description, with parameters and versions; it is the cache key of the results.
        predict: predictions for an encoded data set with a seed. It may choose by the validation rows alone, as the
            networks do.
        seeds: how many seeds to try; 1 for a method without randomness.

    """

    name: str
    text: str
    predict: Callable[[EncodedDataset, int], Predictions] = field(compare=False)
    seeds: int = 5


# Heads of several branches share the embedding, as the paper does at scale; the heads of its own method share nothing.
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
    # The paper's baselines on real data: D2Q's threshold, the likeliest bucket, no classifier of zeros.
    Method("WLR (D2Q)", Scaled(WLR(quantile=0.6))),
    Method("LogNormal", LogNormal()),
    Method("MDME (likeliest bucket)", MDME(choice=most_likely_bucket)),
    Method("OptDist of LogNormal", OptDist(LogNormal(), shared=_SHARED)),
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
    Method("LogSUN + ranking of f", Ranked(LogSUN(), on=("inner.point",))),
    Method("LogSUN + ranking of z", Ranked(LogSUN(), on=("bias",))),
    Method("LogSUN + ranking of both", Ranked(LogSUN())),
    Method("LogSUN + fusion", LogSUN(), fused=True),
    Method("LogSUN, z finished", LogSUN(), finish=2),
    Method("GTS of WLR (D2Q)", GTS(Scaled(WLR(quantile=0.6)))),
    Method("GTS of LogNormal", GTS(LogNormal())),
    Method("GTS of MDME (likeliest bucket)", GTS(MDME(choice=most_likely_bucket))),
    Method("GTS of MDME (likeliest bucket), κ = 1", GTS(MDME(choice=most_likely_bucket), PowerVariance(0.0))),
    Method("GTS of OptDist of LogNormal", GTS(OptDist(LogNormal(), shared=_SHARED), shared=_SHARED)),
    Method("GTS of WLR", GTS(Scaled(WLR()))),
    Method("GTS of ZILN", GTS(ZILN())),
    Method("GTS of MDME", GTS(MDME())),
    Method("GTS of OptDist", GTS(OptDist(shared=_SHARED), shared=_SHARED)),
)
