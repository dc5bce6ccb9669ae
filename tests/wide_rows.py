"""A frame with every type of column that a model can be served from, for tests of serving."""

import numpy as np


def wide_frame(rows: int, seed: int):
    import pandas as pd

    rng = np.random.default_rng(seed)
    gap = rng.random(rows) < 0.2
    return pd.DataFrame(
        {
            "country": rng.choice(["DE", "FR", "É", None], rows),
            "item": rng.integers(0, 9, rows),
            "shop": pd.array(np.where(gap, None, rng.integers(0, 5, rows)), "Int64"),
            "price": np.where(gap, np.nan, rng.lognormal(0.0, 1.0, rows)),
            "vip": rng.random(rows) < 0.5,
            "ordered": np.datetime64("2024-01-01", "us") + rng.integers(0, 10**13, rows).astype("timedelta64[us]"),
            "tags": [rng.choice(["a", "b", "c"], count).tolist() for count in rng.integers(0, 4, rows)],
            "years": rng.uniform(0.5, 2.0, rows),
            "gmv": rng.lognormal(1.0, 1.0, rows),
        }
    )


def wide_model(**settings):
    """A small network that reads all columns of the frame, and predicts amounts per year of exposure."""
    from functools import partial

    from transun import LogSUN, Recipe, embedding_mlp, train

    backbone = partial(embedding_mlp, dim=2, hidden=(4,))
    return train(
        wide_frame(300, 0),
        "gmv",
        LogSUN(),
        exposure="years",
        backbone=backbone,
        recipe=Recipe(epochs=2),
        progress=False,
        **settings,
    )


def new_rows():
    """Rows that the model has not seen, with unseen ids and missing values."""
    frame = wide_frame(50, 1)
    frame.loc[0, "country"], frame.loc[1, "item"], frame.loc[2, "ordered"] = "XX", 10**12, None
    frame.at[3, "tags"] = ["z", "a"]
    return frame.drop(columns="gmv")
