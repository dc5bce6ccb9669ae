"""Reproductions: one function per command of `transun reproduce`, from a protocol to a report."""

import time
from dataclasses import asdict
from typing import Any

import torch

import transun
from transun.lab.claims import debiasing_claims
from transun.lab.store import Store
from transun.lab.synthetic import Protocol, debiasing_methods, run_table, summary


def reproduce_synthetic(protocol: Protocol, store: Store, command: str, show: bool | None = None) -> dict[str, Any]:
    """T-MSE against TranSUN on the eight distributions: cells, claims and how they were made."""
    began = time.perf_counter()
    cells = run_table("solve_bias_sim", debiasing_methods(), protocol, store, show)
    return {
        "command": command,
        "version": transun.__version__,
        "torch": torch.__version__,
        "seconds": time.perf_counter() - began,
        "protocol": asdict(protocol),
        "claims": [asdict(claim) for claim in debiasing_claims(cells)],
        "cells": summary(cells),
    }
