"""What the paper claims about its synthetic table, answered from the cells."""

from collections.abc import Sequence
from dataclasses import dataclass

from transun.extras import need
from transun.lab.synthetic import Cell


@dataclass(frozen=True)
class Claim:
    """A sentence, whether the numbers bear it out, and the numbers."""

    text: str
    holds: bool
    evidence: str


def debiasing_claims(cells: Sequence[Cell]) -> list[Claim]:
    """Unbiasedness of TranSUN, its distance from the paper's bound, and the bias of T-MSE, each with a yes or no."""
    debiased = [cell for cell in cells if cell.method == "TranSUN"]
    sharp = [cell for cell in debiased if cell.noise < 1e-3]
    within = [cell for cell in debiased if abs(cell.sre) <= 3.0 * cell.error]
    worst = max(debiased, key=lambda cell: abs(cell.sre))
    worst_sharp = max(sharp, key=lambda cell: abs(cell.sre))
    return [
        Claim(
            "The mean over seeds of TranSUN is within 3 standard errors of unbiased in every cell",
            len(within) == len(debiased),
            f"{len(within)} of {len(debiased)} cells",
        ),
        Claim(
            "|SRE| of TranSUN is below 0.2 % wherever the sampling error of the mean is below 0.1 %",
            abs(worst_sharp.sre) < 0.002,
            f"at most {abs(worst_sharp.sre):.2%} in {len(sharp)} such cells ({_where(worst_sharp)})",
        ),
        Claim(
            "|SRE| of TranSUN is below 0.7 % in every cell, as the paper reports",
            abs(worst.sre) < 0.007,
            f"at most {abs(worst.sre):.2%} ({_where(worst)})",
        ),
        *[_biased(cells, transform, tolerance) for transform, tolerance in (("ln(y+1)", 0.005), ("y^2", 0.05))],
        _significant(cells),
    ]


def _biased(cells: Sequence[Cell], transform: str, tolerance: float) -> Claim:
    chosen = [cell for cell in cells if (cell.method, cell.transform) == ("T-MSE", transform)]
    worst = max(chosen, key=lambda cell: abs(cell.sre - cell.limit))
    gap = abs(worst.sre - worst.limit)
    return Claim(
        f"T-MSE under {transform} is biased by T⁻¹(E[T(y)]) - E[y], within {tolerance}",
        gap <= tolerance,
        f"largest gap to quadrature {gap:.5f} ({worst.distribution})",
    )


def _significant(cells: Sequence[Cell]) -> Claim:
    """Paired by seed, two-sided; a linear T has no bias to remove, so only the others are asked."""
    stats = need("scipy.stats", extra="lab")
    found = {(cell.method, cell.transform, cell.distribution): cell for cell in cells}
    values = {
        key: float(stats.ttest_rel(cell.average, found[("T-MSE", *key[1:])].average).pvalue)
        for key, cell in found.items()
        if key[0] == "TranSUN" and key[1] != "0.5y"
    }
    worst = max(values, key=lambda key: values[key])
    return Claim(
        "TranSUN and T-MSE differ at the 0.02 level in every cell with a non-linear T (paired t-test over seeds)",
        values[worst] < 0.02,
        f"largest p = {values[worst]:.1e} ({worst[1]}, {worst[2]})",
    )


def _where(cell: Cell) -> str:
    return f"{cell.transform}, {cell.distribution}"
