"""Intervals of rows cover the share of amounts that they promise, wherever rows are told apart."""

import numpy as np
import pytest

from prepared_model import model, rows
from transun import LogMSE
from transun.diagnosis.evaluation import evaluate_held_out

pytest.importorskip("scipy")


def test_intervals_of_rows_are_judged_by_level_and_segment():
    table = rows(4000)
    covered = evaluate_held_out(model(LogMSE(), table), table, ["shop"]).covered
    assert {each.group for each in covered[-2:]} == {"shop a", "shop b"}
    assert sum(each.rows for each in covered if each.group.startswith("shop")) == 4000
    for each in covered:
        # Half of the rows teach, and the others are judged: twice the variance of a share.
        assert each.share == pytest.approx(0.9, abs=4 * np.sqrt(2 * 0.09 / each.rows))
