"""XAUC against scipy.stats.kendalltau, and NDCG against scikit-learn, on the same rows, one thread, in turns.

Writes benchmarks/results/xauc.json. A ratio is the peer's best time over ours; turns alternate, so that whatever
else the machine does falls on both.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
import sklearn
import torch
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score

from transun.metrics import NDCG, XAUC

REPEATS = 3
RESULT = Path(__file__).parent / "results" / "xauc.json"


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.gamma(1.0, 1.0, n)
    return y + rng.normal(size=n), y


def timed(call: Callable[[], float]) -> tuple[float, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def compare(name: str, peer: str, n: int, ours: Callable[[], float], theirs: Callable[[], float]) -> dict[str, object]:
    turns = [(timed(ours), timed(theirs)) for _ in range(REPEATS)]
    (value, _, _), (expected, _, _) = turns[0]
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    wall = [min(turn[side][1] for turn in turns) for side in (0, 1)]
    cpu = [min(turn[side][2] for turn in turns) for side in (0, 1)]
    result = {
        "metric": name,
        "peer": peer,
        "rows": n,
        "seconds": round(wall[0], 4),
        "peer_seconds": round(wall[1], 4),
        "ratio": round(wall[1] / wall[0], 2),
        "cpu_ratio": round(cpu[1] / cpu[0], 2),
    }
    print(f"{name:5s} {n:>10,d} {wall[0]:9.3f} s {peer:11s} {wall[1]:9.3f} s {wall[1] / wall[0]:7.1f}x", flush=True)
    return result


def main() -> None:
    torch.set_num_threads(1)
    results = []
    for n in (10**5, 10**6, 10**7):
        pred, y = rows(n)
        results.append(
            compare(
                "XAUC",
                "kendalltau",
                n,
                lambda pred=pred, y=y: XAUC(pred, y),
                lambda pred=pred, y=y: (1 + kendalltau(pred, y).statistic) / 2,
            )
        )
    pred, y = rows(10**6)
    results.append(compare("NDCG", "ndcg_score", 10**6, lambda: NDCG(pred, y), lambda: ndcg_score(y[None], pred[None])))
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= {"scikit-learn": sklearn.__version__, "torch": torch.__version__}
    RESULT.parent.mkdir(exist_ok=True)
    # A load above the number of cores says that the machine was shared and the times are long.
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    report = {"repeats": REPEATS, "machine": machine, "versions": versions, "results": results}
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
