"""One of anything is not called several."""

import numpy as np
import pytest

from transun import diagnose
from transun.support.counting import counted, counted_are


@pytest.mark.parametrize(("count", "sentence"), [(0, "0 rows are"), (1, "1 row is"), (1000, "1,000 rows are")])
def test_the_verb_follows_the_count(count, sentence):
    assert counted_are(count, "row") == sentence
    assert sentence.startswith(counted(count, "row"))


def test_a_column_of_one_value_has_one_value():
    rng = np.random.default_rng(0)
    found = diagnose(rng.lognormal(size=500), np.ones(500), by={"shop": ["a"] * 500, "day": ["x", "y"] * 250})
    assert [table.how for table in found.segments] == ["1 value", "2 values"]
