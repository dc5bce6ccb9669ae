"""Orders of a shop, for tests of the commands."""

import numpy as np
import pytest


def orders(rows: int, seed: int):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(seed)
    country = rng.choice(["IT", "FR", "DE"], rows)
    item = rng.integers(0, 12, rows)
    typical = np.exp(1.5 + 0.15 * item + np.where(country == "IT", 0.5, 0.0))
    gmv = typical * rng.lognormal(0.0, 0.9, rows)
    return pl.DataFrame(
        {
            "gmv": gmv,
            "item_id": item,
            "country": country,
            "price": np.round(typical * rng.uniform(0.8, 1.2, rows), 2),
            "refunded": gmv * 0.1,
            "weight": rng.integers(1, 4, rows),
            "balance": rng.normal(0.0, 5.0, rows),
            "predicted": typical,
            "order": [f"o{index}" for index in range(rows)],
            "same": np.full(rows, 7.0),
            "minus": np.full(rows, -1.0),
        }
    )
