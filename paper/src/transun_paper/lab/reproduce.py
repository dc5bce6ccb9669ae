"""Reproductions: one per command of `transun-paper reproduce`, from a protocol to a report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

import transun
from transun_paper.lab import synthetic_methods as tables
from transun_paper.lab.claims import Claim, debiasing_claims, limits_reached, unbiasedness
from transun_paper.lab.published import notes
from transun_paper.lab.store import Store
from transun_paper.lab.synthetic import (
    FULL,
    QUICK,
    STARTED,
    STARTED_QUICK,
    WIDE,
    WIDE_QUICK,
    Cell,
    Protocol,
    run_table,
    summary,
)


@dataclass(frozen=True)
class Reproduction:
    """A table of the paper: its LaTeX label, what is run and by which protocol, and what it should show."""

    table: str
    title: str
    methods: Callable[[], list[tables.Method]]
    claims: Callable[[Sequence[Cell]], list[Claim]]
    full: Protocol = FULL
    quick: Protocol = QUICK

    def run(self, protocol: Protocol, store: Store, command: str, show: bool | None = None) -> dict[str, Any]:
        """Cells, claims and how they were made."""
        began = time.perf_counter()
        cells = run_table(self.table, self.methods(), protocol, store, show)
        return {
            "title": self.title,
            "command": command,
            "version": transun.__version__,
            "torch": torch.__version__,
            "seconds": time.perf_counter() - began,
            "protocol": asdict(protocol),
            "claims": [asdict(claim) for claim in self.claims(cells)],
            "notes": notes(self.table),
            "cells": summary(cells),
        }


REPRODUCTIONS = {
    "synthetic": Reproduction(
        "solve_bias_sim", "T-MSE against TranSUN on eight distributions", tables.debiasing, debiasing_claims
    ),
    "methods": Reproduction(
        "comp_sota_sim",
        "Other regression methods on eight distributions",
        tables.advanced,
        limits_reached,
        STARTED,
        STARTED_QUICK,
    ),
    "bins": Reproduction("tpm_buck", "TPM with 4, 32 and 256 bins", tables.bins, limits_reached, WIDE, WIDE_QUICK),
    "instances": Reproduction(
        "lcltm_compare_sim",
        "GTS of four point losses and three slopes",
        tables.instances,
        unbiasedness,
        STARTED,
        STARTED_QUICK,
    ),
}
