"""The paper's synthetic tables as lists of methods."""

from dataclasses import dataclass

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
    Head,
    LogNormal,
    LogNormalMixture,
    LogSUN,
    OptDist,
    PointHead,
    Scaled,
    SplineFlow,
    TranSUN,
)
from transun.heads.bins import EAD, equal_width
from transun.heads.mdme import most_likely_bucket
from transun.losses import PointLoss, absolute, absolute_percentage, squared, squared_percentage
from transun.schemes import Magnitude, ReciprocalPoint, ReciprocalTarget, Slope
from transun.transforms import Affine, Log1p, Power
from transun_paper.lab import limits
from transun_paper.lab.constants import SampleCost, head_loss, squared_error
from transun_paper.lab.limits import Limit

ZEROS = "RS-ZIG"  # the one distribution with zeros


@dataclass(frozen=True)
class SyntheticMethod:
    """A row of a synthetic table: a head under the paper's name and label.

    Args:
        name: the paper's name of the method.
        label: the paper's label of the row.
        head: the method; None leaves the cell out.
        limit: what it converges to, relative to the mean.
        rate_cost: the cost per row by which its learning rate is chosen.
        with_zeros: replaces the head where the targets have zeros.

    """

    name: str
    label: str
    head: Head | None
    limit: Limit
    rate_cost: SampleCost = head_loss
    with_zeros: Head | None = None

    def head_for(self, distribution: str) -> Head | None:
        """The head for this distribution."""
        return self.with_zeros if distribution == ZEROS and self.with_zeros is not None else self.head


def debiasing() -> list[SyntheticMethod]:
    """T-MSE against TranSUN under the paper's three transforms, after plain MSE."""
    methods = [SyntheticMethod("MSE", "-", MSE(), limits.unbiased)]
    for name, transform in {"0.5y": Affine(0.5), "ln(y+1)": Log1p(), "y^2": Power(2.0)}.items():
        methods.append(SyntheticMethod("T-MSE", name, PointHead(transform), limits.retransformed(transform)))
        methods.append(SyntheticMethod("TranSUN", name, TranSUN(transform), limits.unbiased, squared_error))
    return methods


def advanced() -> list[SyntheticMethod]:
    """The comparison with other regression methods, as set up in the paper's appendix: four bins, no classifiers."""
    return [
        SyntheticMethod("MAE", "-", MAE(), limits.median),
        SyntheticMethod("WLR", "-", None, limits.odds, with_zeros=WLR(threshold=0.0)),
        SyntheticMethod("ZILN", "-", LogNormal(), limits.lognormal, with_zeros=ZILN()),
        SyntheticMethod("MDME", "-", MDME(2, 2, equal_width, most_likely_bucket), limits.likeliest_bucket),
        SyntheticMethod("TPM", "-", TPM(4), limits.midpoints),
        SyntheticMethod("CREAD", "-", CREAD(4), limits.midpoints),
        SyntheticMethod("CREAD", "α = 0.5", CREAD(4, EAD(0.5)), limits.midpoints),
        SyntheticMethod("OptDist", "-", OptDist(), limits.lognormal),
        SyntheticMethod("LogSUN", "-", LogSUN(), limits.unbiased, squared_error),
    ]


# The paper's figure of model assumptions, in formulas: ε is noise of mean 0, φ the density of a standard normal.
ASSUMPTIONS = {
    "MSE": "y = f(x) + ε; the mean is learned whatever the noise is, in the unit of y with its whole tail",
    "T-MSE": "T(y) = f(x) + ε; what is learned is T⁻¹(E[T(y)]), which is the mean for a linear T alone",
    "MDM": "the density of y is Σ πₖ(x)·φ(y; μₖ(x), σₖ(x)), here of ln(1 + y); 3 numbers for every component",
    "NF": "h(y; x) ~ N(0, 1) for a monotone spline h; the mean is an integral over the inverse of h",
    "CTM": "Φ(h(y; x)) is the distribution of y, h a sum of basis functions with coefficients that depend on x",
    "CLTM": "α(x) + β(x)·h₀(y) ~ N(0, 1) for one h₀ for all x",
    "TranSUN": "y·κ(f) = z(x) + ε with κ = 1/(|T⁻¹(f)| + ε₀): one output beside T-MSE, and the mean for any noise",
    "GTS": "y·κ(u) = z(x) + ε for any model u and any κ > 0; here u is the median of ln(1 + y), κ = 1/(|u| + 1)",
}
LEARN_THE_MEAN = ("MSE", "TranSUN", "GTS")


def assumptions() -> list[SyntheticMethod]:
    """The methods of the paper's figure of assumptions, each as the head that makes that assumption."""
    gts = GTS(PointHead(Log1p(), absolute), ReciprocalPoint())
    return [
        SyntheticMethod("MSE", "-", Scaled(MSE()), limits.unbiased),
        SyntheticMethod("T-MSE", "ln(y+1)", PointHead(Log1p()), limits.retransformed(Log1p())),
        SyntheticMethod("MDM", "3 log-normals", LogNormalMixture(), limits.unknown),
        SyntheticMethod("NF", "spline", SplineFlow(), limits.unknown),
        SyntheticMethod("CTM", "-", CTM(), limits.unknown),
        SyntheticMethod("CLTM", "-", CLTM(), limits.unknown),
        SyntheticMethod("TranSUN", "ln(y+1)", LogSUN(), limits.unbiased, squared_error),
        SyntheticMethod("GTS", "MAE, 1/(|u|+ε)", gts, limits.unbiased, squared_error),
    ]


def bins() -> list[SyntheticMethod]:
    """TPM with more and more bins."""
    return [SyntheticMethod("TPM", str(leaves), TPM(leaves), limits.midpoints) for leaves in (4, 32, 256)]


def instances() -> list[SyntheticMethod]:
    """GTS of four point losses and three slopes, T(y) = ln(1 + y)."""
    losses: dict[str, PointLoss] = {
        "MSE": squared,
        "MAE": absolute,
        "MSPE": squared_percentage,
        "MAPE": absolute_percentage,
    }
    slopes: dict[str, Slope] = {
        "1/(|T⁻¹(u)|+ε)": ReciprocalTarget(),
        "1/(|u|+ε)": ReciprocalPoint(),
        "|u|": Magnitude(),
    }
    return [
        SyntheticMethod(name, label, GTS(PointHead(Log1p(), loss), slope), limits.unbiased, squared_error)
        for label, slope in slopes.items()
        for name, loss in losses.items()
    ]
