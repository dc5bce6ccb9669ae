"""Samples by hash: their own columns and those of the rows do not meet."""

import numpy as np

from transun.data.sample import HashSample


def test_columns_may_have_any_name():
    numbers = np.arange(1000)
    names = ("hash", "number", "row number", "column hash")
    columns = {name: 10.0 * numbers + index for index, name in enumerate(names)}
    parts = [
        HashSample.of(100, part, {name: values[part] for name, values in columns.items()})
        for part in np.array_split(numbers, 5)
    ]
    plain = HashSample.of(100, numbers, {"y": numbers})
    sample = sum(parts[1:], parts[0]).in_order()
    assert sample.table.column_names == list(names)
    for index, name in enumerate(names):
        np.testing.assert_array_equal(sample[name], 10.0 * plain["y"] + index)
