"""Settings that no training could follow are refused when the recipe is written."""

import pytest

from transun import Recipe


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "whole number epochs >= 1, got 0"),
        ({"epochs": 1.5}, "whole number epochs >= 1, got 1.5"),
        ({"epochs": "3"}, "whole number epochs >= 1, got '3'"),
        ({"batch_size": -4}, "whole number batch_size >= 1"),
        ({"patience": 2.5}, "whole number patience >= 1"),
        ({"checks_per_epoch": 0}, "whole number checks_per_epoch >= 1"),
        ({"monitor": "RMSE"}, "needs monitor to be one such as RootMeanSquaredError"),
        ({"optimiser": "adam"}, "needs optimiser to be one such as Adam"),
        ({"engine": "fast"}, "needs engine to be one such as Eager"),
        ({"seed": None}, "64 bits as its seed, got None"),
        ({"seed": 2**70}, "64 bits as its seed"),
        ({"budget": float("nan")}, "a budget > 0"),
        ({"valid_share": float("nan")}, "0 <= valid_share < 1"),
        ({"clip": 0.0}, "clip > 0"),
        ({"finish": -1}, "finish >= 0"),
    ],
)
def test_a_setting_that_cannot_be_followed_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**settings)
