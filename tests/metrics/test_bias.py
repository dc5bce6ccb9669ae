import math

import numpy as np
import pytest

from transun.metrics import MRE, PGR, SMRE, STRE, TRE
from transun.metrics.bias import SRE, sre
from transun.metrics.relative import MeanRelativeError

PRED = np.array([1.0, 4.0, 2.0, 3.0])
Y = np.array([2.0, 2.0, 2.0, 2.0])
W = np.array([1.0, 2.0, 0.5, 0.0])


def test_weighted_values_by_hand():
    # Σwŷ = 1 + 8 + 1 = 10, Σwy = 7, Σw = 3.5
    assert TRE(PRED, Y, W) == pytest.approx(3 / 10)
    assert STRE(PRED, Y, W) == pytest.approx(3 / 10)
    assert PGR(PRED, Y, W) == pytest.approx(10 / 7)
    # w(ŷ−y)/ŷ: −1 + 2·½ + 0
    assert SMRE(PRED, Y, W) == pytest.approx(0)
    assert SMRE(PRED, Y) == pytest.approx((-1 + 1 / 2 + 0 + 1 / 3) / 4)
    assert MRE(PRED, Y) == pytest.approx((1 - 1 / 2 - 1 / 3) / 4)


def test_half_costs_one_and_double_costs_a_half():
    assert STRE([1.0], [2.0]) == -1.0
    assert STRE([2.0], [1.0]) == 0.5
    assert TRE([1.0], [2.0]) == 1.0


def test_tre_is_one_minus_inverse_pgr():
    rng = np.random.default_rng(0)
    pred, y = rng.gamma(2, 1, 50), rng.gamma(1, 3, 50)
    assert TRE(pred, y) == pytest.approx(abs(1 - 1 / PGR(pred, y)))


def test_sre_ignores_the_sample_of_targets():
    assert SRE(4.0)([5.0, 1.0], [100.0, 0.0]) == pytest.approx(-1 / 4)
    assert sre([5.0, 1.0], 4.0) == pytest.approx(-1 / 4)
    assert sre([5.0, 1.0], 4.0, weight=[3.0, 1.0]) == pytest.approx(0.0)


def test_zero_totals_divide_like_floats():
    assert math.isnan(TRE([0.0], [0.0]))
    assert TRE([0.0], [1.0]) == math.inf
    assert PGR([1.0], [0.0]) == math.inf


def test_a_model_that_hits_the_total_still_has_a_standard_error():
    assert TRE([1.0, 3.0], [2.0, 2.0]) == 0.0
    assert TRE.standard_error([1.0, 3.0], [2.0, 2.0]) == STRE.standard_error([1.0, 3.0], [2.0, 2.0]) > 0


@pytest.mark.parametrize(
    ("make", "message"), [(lambda: MeanRelativeError(floor=0.0), "floor"), (lambda: SRE(0.0), "expec")]
)
def test_senseless_constants_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
