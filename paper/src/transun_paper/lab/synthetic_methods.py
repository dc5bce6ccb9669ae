"""The paper's synthetic tables as lists of methods."""

from dataclasses import dataclass

from transun.heads import (
    CREAD,
    GTS,
    MAE,
    MDME,
    MSE,
    TPM,
    WLR,
    ZILN,
    Head,
    LogNormal,
    LogSUN,
    OptDist,
    PointHead,
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
