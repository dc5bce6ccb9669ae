"""Amounts that depend on an item, and a model of them that has its constants but no training."""

import numpy as np

from transun import Features, Id, Model, TableModel, embedding_mlp
from transun.data import read_table


def rows(count=400, seed=0):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 5, count)
    return read_table(
        {
            "item": item,
            "shop": rng.choice(["a", "b"], count),
            "weight": rng.integers(1, 4, count),
            "y": (1.0 + item) * rng.lognormal(0.0, 0.5, count),
        }
    )


def model(head, table, weight=None):
    features = Features({"item": Id()}).fit(table)
    network = Model(embedding_mlp(features, hidden=(8,)), head)
    trained = TableModel(features, network, "y", weight)
    network.prepare(trained.dataset(table).targets())
    return trained
