"""How long the simulated market takes to rank, show and sell, in seconds of one core."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transun_paper.online.ranking_test import SCENARIOS, assign_arms, rank_by_arm, train_scores


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, float]:
    """Impressions of a period of a trained market, and the processor's seconds that it took to make them."""
    market = SCENARIOS["product"].market(arguments, seed=0)
    scores = train_scores(market, arguments["epochs"], seed=0)
    arm = assign_arms(market.log, SCENARIOS["product"].shares)
    started = time.process_time()
    totals = market.serve(1, arguments["visits"], rank_by_arm(scores), arm, scores["LogSUN"], seed=0)
    return {"seconds": time.process_time() - started, "impressions": float(totals.impressions.sum())}


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Candidates that are ranked, a tenth of a row of training each."""
    return 0.1 * float(arguments["visits"] * arguments["candidates"])
