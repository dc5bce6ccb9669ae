"""What the synthetic tables are to show, answered from the cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transun.support.extras import need
from transun_paper.lab.synthetic import Cell


@dataclass(frozen=True)
class Claim:
    """A sentence, whether the numbers bear it out, and the numbers."""

    text: str
    holds: bool
    evidence: str


def unbiasedness(cells: Sequence[Cell]) -> list[Claim]:
    """Whether every cell, each a method that should learn the mean, does so."""
    sharp = [cell for cell in cells if cell.noise < 1e-3]
    within = [cell for cell in cells if abs(cell.sre) <= 3.0 * cell.error]
    worst_sharp, worst = (max(some, key=lambda cell: abs(cell.sre)) for some in (sharp, cells))
    return [
        Claim(
            "The mean over seeds is within 3 standard errors of unbiased in every cell",
            len(within) == len(cells),
            f"{len(within)} of {len(cells)} cells",
        ),
        Claim(
            "|SRE| is below 0.2 % wherever the sampling error of the mean is below 0.1 %",
            abs(worst_sharp.sre) < 0.002,
            f"at most {abs(worst_sharp.sre):.2%} in {len(sharp)} such cells ({_where(worst_sharp)})",
        ),
        Claim(
            "|SRE| is below 0.7 % in every cell, as the paper reports of TranSUN",
            abs(worst.sre) < 0.007,
            f"at most {abs(worst.sre):.2%} ({_where(worst)})",
        ),
    ]


def limits_reached(cells: Sequence[Cell]) -> list[Claim]:
    """Whether every method is where its closed form says, up to sampling error."""
    known = [(cell, abs(cell.sre - cell.limit)) for cell in cells if cell.limit is not None]
    # The draws that trained the method bound how close it can come: their own noise, and the spread over seeds.
    near = [cell for cell, gap in known if gap <= 3.0 * max(cell.error, cell.noise)]
    worst, gap = max(known, key=lambda pair: pair[1] / max(pair[0].error, pair[0].noise))
    return [
        Claim(
            "Every cell is within 3 standard errors of its closed form",
            len(near) == len(known),
            f"{len(near)} of {len(known)} cells; furthest off by {gap:.4f} ({_where(worst)})",
        )
    ]


def debiasing_claims(cells: Sequence[Cell]) -> list[Claim]:
    """Unbiasedness of TranSUN and the bias of T-MSE, each with a yes or no."""
    debiased = [cell for cell in cells if cell.method == "TranSUN"]
    return [
        *[replace(claim, text=f"TranSUN: {claim.text}") for claim in unbiasedness(debiased)],
        *[_biased(cells, transform, tolerance) for transform, tolerance in (("ln(y+1)", 0.005), ("y^2", 0.05))],
        _significant(cells),
    ]


def _biased(cells: Sequence[Cell], transform: str, tolerance: float) -> Claim:
    chosen = [cell for cell in cells if (cell.method, cell.label) == ("T-MSE", transform)]
    gaps = {cell.distribution: abs(cell.sre - cell.limit) for cell in chosen if cell.limit is not None}
    worst = max(gaps, key=lambda name: gaps[name])
    return Claim(
        f"T-MSE under {transform} is biased by T⁻¹(E[T(y)]) - E[y], within {tolerance}",
        gaps[worst] <= tolerance,
        f"largest gap to quadrature {gaps[worst]:.5f} ({worst})",
    )


def _significant(cells: Sequence[Cell]) -> Claim:
    """Paired by seed, two-sided; a linear T has no bias to remove, so only the others are asked."""
    stats = need("scipy.stats")
    found = {(cell.method, cell.label, cell.distribution): cell for cell in cells}
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
    return f"{cell.method} {cell.label}, {cell.distribution}"
