"""Rows scattered over chunks as over machines, and the comparison of what is computed from them."""

import pickle

import numpy as np
import pytest

from transun.data.columns import Chunk


class Scattered:
    """The rows of a table in random chunks, some empty, whose pickled summaries are added in a random tree."""

    def __init__(self, table, seed):
        self.table, self.schema, self.rng = table, table.schema, np.random.default_rng(seed)

    def total(self, summarise, label="reading", show=None):
        cuts = np.sort(self.rng.integers(0, len(self.table) + 1, 12))
        bounds = list(zip([0, *cuts], [*cuts, len(self.table)], strict=True))
        summarise = pickle.loads(pickle.dumps(summarise))
        chunks = [Chunk(int(start), self.table.slice(start, stop - start), int(stop)) for start, stop in bounds]
        summaries = [pickle.loads(pickle.dumps(summarise(chunk))) for chunk in chunks]
        while len(summaries) > 1:
            one = summaries.pop(self.rng.integers(len(summaries)))
            other = summaries.pop(self.rng.integers(len(summaries)))
            summaries.append(one + other)
        return summaries[0]


def assert_same(one, other, where="diagnosis"):
    """Everything alike: texts and counts equal, numbers to 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name, value in one.items():
            assert_same(value, other[name], f"{where}.{name}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for index, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{index}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True), where
    else:
        assert one == other, where
