"""The paper's four synthetic tables: the methods of each, the protocol, and the claims that its cells answer."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

import transun
from transun.support.extras import need
from transun_paper.lab import synthetic_methods as methods
from transun_paper.lab.compare import Claim
from transun_paper.lab.progress import WriteLine, to_stderr
from transun_paper.lab.published import notes
from transun_paper.lab.store import Store
from transun_paper.lab.synthetic import (
    FULL_PROTOCOL,
    QUICK_PROTOCOL,
    STARTED,
    STARTED_QUICK,
    WIDE,
    WIDE_QUICK,
    SyntheticCell,
    SyntheticProtocol,
    run_table,
    summary,
)


@dataclass(frozen=True)
class SyntheticTable:
    """A table of the paper on eight distributions: its LaTeX label, its methods and protocols, and its claims.

    A table that the paper lacks has no label; `remarks` are further sentences for its page.
    """

    table: str | None
    title: str
    methods: Callable[[], list[methods.SyntheticMethod]]
    claims: Callable[[Sequence[SyntheticCell]], list[Claim]]
    full: SyntheticProtocol = FULL_PROTOCOL
    quick: SyntheticProtocol = QUICK_PROTOCOL
    remarks: tuple[str, ...] = ()

    def run(
        self, protocol: SyntheticProtocol, store: Store, command: str, write: WriteLine = to_stderr
    ) -> dict[str, Any]:
        """The report: cells, claims and how they were made."""
        began = time.perf_counter()
        cells = run_table(self.table, self.methods(), protocol, store, write)
        return {
            "title": self.title,
            "command": command,
            "version": transun.__version__,
            "torch": torch.__version__,
            "seconds": time.perf_counter() - began,
            "protocol": asdict(protocol),
            "claims": [asdict(claim) for claim in self.claims(cells)],
            "notes": [*self.remarks, *([] if self.table is None else notes(self.table))],
            "cells": summary(cells),
        }


def unbiasedness(cells: Sequence[SyntheticCell]) -> list[Claim]:
    """Whether every cell is unbiased; each one is a method that should learn the mean."""
    # All cells together shall fail one time in a hundred if every method is unbiased. Few seeds do not tell the error
    # of their mean well, so it is at least what theory says: the weights of the second half of an epoch know half of
    # the draws, whose mean is as far from that of all draws as that is from the truth.
    reach = float(need("scipy.special").ndtri(1.0 - 0.005 / len(cells)))
    within = [
        cell
        for cell in cells
        if abs(cell.gap) <= reach * max(cell.gap_error, cell.noise / math.sqrt(len(cell.average)))
    ]
    sharp = [cell for cell in cells if cell.noise < 1e-3]
    worst_sharp = max(sharp, key=lambda cell: abs(cell.gap))
    worst = max(cells, key=lambda cell: abs(cell.sre))
    return [
        Claim(
            f"The mean of its own draws is within {reach:.1f} standard errors over seeds, in every cell",
            len(within) == len(cells),
            f"{len(within)} of {len(cells)} cells",
        ),
        Claim(
            "The mean of its own draws is within 0.2 % wherever their sampling error is below 0.1 %",
            abs(worst_sharp.gap) < 0.002,
            f"at most {abs(worst_sharp.gap):.2%} off in {len(sharp)} such cells ({_describe(worst_sharp)})",
        ),
        Claim(
            "|SRE| is below 0.7 % in every cell, as the paper reports of TranSUN",
            abs(worst.sre) < 0.007,
            f"at most {abs(worst.sre):.2%} ({_describe(worst)})",
        ),
    ]


def limits_reached(cells: Sequence[SyntheticCell]) -> list[Claim]:
    """Whether every method reaches the value of its closed form, up to sampling error."""
    known = [(cell, abs(cell.sre - cell.limit)) for cell in cells if cell.limit is not None]
    # A method cannot come closer than the noise of its training draws and the spread over seeds allow.
    near = [cell for cell, gap in known if gap <= 3.0 * max(cell.error, cell.noise)]
    worst, gap = max(known, key=lambda pair: pair[1] / max(pair[0].error, pair[0].noise))
    return [
        Claim(
            "Every cell is within 3 standard errors of its closed form",
            len(near) == len(known),
            f"{len(near)} of {len(known)} cells; furthest off by {gap:.4f} ({_describe(worst)})",
        )
    ]


def debiasing_claims(cells: Sequence[SyntheticCell]) -> list[Claim]:
    """Unbiasedness of TranSUN and the bias of T-MSE, each with a yes or no."""
    debiased = [cell for cell in cells if cell.method == "TranSUN"]
    return [
        *[replace(claim, text=f"TranSUN: {claim.text}") for claim in unbiasedness(debiased)],
        *[_biased(cells, transform, tolerance) for transform, tolerance in (("ln(y+1)", 0.005), ("y^2", 0.05))],
        _significant(cells),
    ]


def _biased(cells: Sequence[SyntheticCell], transform: str, tolerance: float) -> Claim:
    chosen = [cell for cell in cells if (cell.method, cell.label) == ("T-MSE", transform)]
    gaps = {cell.distribution: abs(cell.sre - cell.limit) for cell in chosen if cell.limit is not None}
    worst = max(gaps, key=lambda name: gaps[name])
    return Claim(
        f"T-MSE under {transform} is biased by T⁻¹(E[T(y)]) - E[y], within {tolerance}",
        gaps[worst] <= tolerance,
        f"largest gap to quadrature {gaps[worst]:.5f} ({worst})",
    )


def _significant(cells: Sequence[SyntheticCell]) -> Claim:
    """Paired by seed, two-sided; a linear T is left out, since it has no bias to remove."""
    stats = need("scipy.stats")
    by_key = {(cell.method, cell.label, cell.distribution): cell for cell in cells}
    p_values = {
        key: float(stats.ttest_rel(cell.average, by_key["T-MSE", *key[1:]].average).pvalue)
        for key, cell in by_key.items()
        if key[0] == "TranSUN" and key[1] != "0.5y"
    }
    worst = max(p_values, key=lambda key: p_values[key])
    return Claim(
        "TranSUN and T-MSE differ at the 0.02 level in every cell with a non-linear T (paired t-test over seeds)",
        p_values[worst] < 0.02,
        f"largest p = {p_values[worst]:.1e} ({worst[1]}, {worst[2]})",
    )


def _describe(cell: SyntheticCell) -> str:
    return f"{cell.method} {cell.label}, {cell.distribution}"


def _assumption_claims(cells: Sequence[SyntheticCell]) -> list[Claim]:
    """Which of the methods learn the mean whatever the distribution is."""
    exact = [cell for cell in cells if cell.method in methods.LEARN_THE_MEAN]
    others = {cell.method for cell in cells if cell not in exact and abs(cell.sre) > 0.01}
    return [
        *[replace(claim, text=f"MSE, TranSUN and GTS: {claim.text}") for claim in unbiasedness(exact)[:2]],
        Claim(
            "Every other method is off by more than 1 % on some distribution",
            others == {cell.method for cell in cells} - set(methods.LEARN_THE_MEAN),
            ", ".join(sorted(others)),
        ),
    ]


SYNTHETIC_TABLES = {
    "fig_assumptions": SyntheticTable(
        None,
        "What each method assumes about y given x, and what it learns where that is wrong",
        methods.assumptions,
        _assumption_claims,
        WIDE,
        replace(WIDE_QUICK, rows=20_000),
        remarks=tuple(f"{name}: {text}" for name, text in methods.ASSUMPTIONS.items()),
    ),
    "synthetic": SyntheticTable(
        "solve_bias_sim", "T-MSE against TranSUN on eight distributions", methods.debiasing, debiasing_claims
    ),
    "methods": SyntheticTable(
        "comp_sota_sim",
        "Other regression methods on eight distributions",
        methods.advanced,
        limits_reached,
        STARTED,
        STARTED_QUICK,
    ),
    "bins": SyntheticTable("tpm_buck", "TPM with 4, 32 and 256 bins", methods.bins, limits_reached, WIDE, WIDE_QUICK),
    "instances": SyntheticTable(
        "lcltm_compare_sim",
        "GTS of four point losses and three slopes",
        methods.instances,
        unbiasedness,
    ),
}
