import numpy as np
import pandas as pd
import pytest
import torch

from transun.metrics import TRE, XAUC, Meter, bin_by_target
from transun.metrics.metric import bootstrap
from transun.metrics.rows import check

BAD = [
    (([1.0, np.nan], [1.0, 1.0]), r"`pred` is nan at row 1: .*drop"),
    (([1.0, 1.0], [1.0, np.inf]), r"`y` is inf at row 1: .*drop"),
    (([1.0, 1.0], [-np.inf, np.inf]), r"`y` is -inf at row 0: .*drop"),
    (([1.0, 1.0], [1.0, 1.0], [1.0, np.nan]), r"`weight` is nan at row 1: .*drop"),
    (([1.0, 1.0], [1.0]), r"`pred` has 2 rows and `y` has 1: row 1 .*same rows"),
    (([1.0], [1.0], [1.0, 2.0]), r"`weight` has 2 rows and `y` has 1: row 1 .*same rows"),
    (([[1.0], [1.0]], [1.0, 1.0]), r"`pred` has shape \(2, 1\): .*squeeze"),
    ((1.0, [1.0]), r"`pred` has shape \(\): .*list of one"),
    (([1.0, 1.0], [1.0, 1.0], [1.0, -2.0]), r"`weight` is -2.0 at row 1: .*use 0"),
    (([], []), r"`y` has no rows"),
    ((np.ma.masked_array([1.0, 9.0], mask=[False, True]), [1.0, 1.0]), r"`pred` is nan at row 1"),
    (([1.0, 1.0], np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")), r"`y` holds dates"),
    (([1.0, 1j], [1.0, 1.0]), r"`pred` holds complex numbers"),
    ((torch.tensor([1.0, 1j]), [1.0, 1.0]), r"`pred` holds complex numbers"),
    (([1.0, "much"], [1.0, 1.0]), r"`pred` is 'much' in row 1"),
    ((pd.Series([1.0, 2.0], [1, 0]), pd.Series([1.0, 2.0])), r"pred and y have the same row labels in another order"),
    (([1.0, 1.0], [1.0, 1.0], [0.0, 0.0]), r"`weight` is zero in every row"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
@pytest.mark.parametrize("use", [TRE, XAUC, TRE.standard_error, bin_by_target, lambda *a: bootstrap(TRE, *a)])
def test_bad_input_is_named(use, arguments, message):
    with pytest.raises(ValueError, match=message):
        use(*arguments)


def test_huge_finite_values_are_not_mistaken_for_infinite_ones():
    assert len(check([1e308, 1e308, 1e308], [1.0, 1.0, 1.0])) == 3


def test_read_only_reversed_and_grad_inputs():
    array = np.array([1.0, 2.0, 3.0])
    array.flags.writeable = False
    tensor = torch.tensor([3.0, 2.0, 1.0], requires_grad=True)
    assert check(array, array).y.tolist() == [1.0, 2.0, 3.0]  # pytest turns torch's warning into an error
    rows = check(tensor, array[::-1])
    assert rows.y.tolist() == [3.0, 2.0, 1.0]
    assert rows.pred.tolist() == [3.0, 2.0, 1.0]
    assert not rows.pred.requires_grad
    assert rows.pred.dtype == torch.float64


def test_a_meter_keeps_its_own_copy():
    buffer = torch.tensor([1.0, 2.0], dtype=torch.float64)
    meter = Meter(XAUC)
    meter.update(buffer, buffer)
    buffer.copy_(torch.tensor([5.0, 5.0]))
    meter.update(buffer, buffer)
    assert meter.compute() == {"XAUC": 1.0}
    assert meter._summaries[XAUC.key].rows.y.tolist() == [1.0, 2.0, 5.0, 5.0]
