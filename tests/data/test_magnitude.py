import numpy as np
import pytest

from transun.data.magnitude import refuse_vanishing, require_squarable


@pytest.mark.parametrize("value", [0.0, 1e-37, 1.0, 1e34])
def test_fourth_powers_of_what_is_let_through_are_numbers(value):
    values = np.array([value, -value])
    require_squarable(np.arange(2), target=values)
    refuse_vanishing(target=values)
    fourth = values**4
    assert np.isfinite(fourth).all()
    assert (fourth > 0.0).all() == (value > 0.0)


def test_the_row_that_is_too_large_is_named():
    with pytest.raises(ValueError, match=r"the target of row 9 is -1e\+39, too large"):
        require_squarable(np.array([8, 9]), weight=np.ones(2), target=np.array([1.0, -1e39]))


def test_all_values_that_vanish_are_refused_and_single_ones_are_not():
    refuse_vanishing(target=np.array([1e-300, 1.0]))
    refuse_vanishing(target=np.zeros(3))
    refuse_vanishing(target=np.zeros(0))
    with pytest.raises(ValueError, match=r"the largest target is 3e-300, too small to be squared"):
        refuse_vanishing(target=np.array([1e-300, -3e-300]))
