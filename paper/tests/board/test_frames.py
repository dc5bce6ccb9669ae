import datetime

import numpy as np
import pyarrow as pa

from transun_paper.board.frames import Frames
from transun_paper.board.tables import TableSplit


def part(kinds, times, numbers):
    return pa.table({"kind": kinds, "time": times, "number": numbers, "y": [1.0] * len(kinds)})


def test_text_times_and_numbers():
    day = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]
    parts = [part(["b", "a"], day, [1, None]), part(["a", None], day, [3, 4]), part(["new", "b"], day[::-1], [5, 6])]
    frames = Frames.of(TableSplit.of_parts("t", "y", None, parts))
    assert frames.categorical == ["kind"]
    assert list(frames.train["kind"].cat.categories) == ["a", "b"]
    # Codes are positions in the training rows' categories, -1 for a missing or a new value.
    codes = [frame["kind"].cat.codes.tolist() for frame in (frames.train, frames.valid, frames.test)]
    assert codes == [[1, 0], [0, -1], [-1, 1]]
    assert frames.train["time"].diff()[1] == 24 * 3600 * 1e6  # microseconds
    np.testing.assert_array_equal(frames.train["number"], [1.0, np.nan])
    assert "y" not in frames.train.columns
