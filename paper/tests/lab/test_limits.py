"""The closed forms beside paper/methods.md §13.1, on bins that come from a table of quantiles."""

import pytest

from population import COLUMNS, population
from transun.heads import CREAD, MDME, MSE, TPM
from transun.heads.bins import EAD, equal_width
from transun.transforms import Arctan, Log1p, Power
from transun_paper.datasets.distributions import DISTRIBUTIONS
from transun_paper.lab import limits

LN = [-0.1409, -0.5106, -0.4465, -0.0192, -0.1626, -0.2418, -0.0207, -0.5323]
MDME_2X2 = [-0.1352, -0.5973, -0.2417, 0.2902, 0.1034, None, None, None]
ROWS = {
    "unbiased": (limits.unbiased, MSE(), [0.0] * 8),
    "ln": (limits.retransformed(Log1p()), MSE(), LN),
    "sqrt": (
        limits.retransformed(Power(0.5)), MSE(),
        [-0.1164, -0.3536, -0.8233, -0.0271, -0.0576, -0.1111, -0.0104, -0.2739],
    ),
    "arctan": (
        limits.retransformed(Arctan()), MSE(),
        [-0.2784, -0.6774, -0.5115, -0.0271, -0.6389, -0.6436, -0.0442, -0.8339],
    ),
    "median": (limits.median, MSE(), [-0.1608, -0.56, -1.0, 0.0396, 0.0969, 0.0, 0.0, None]),
    "ziln": (limits.lognormal, MSE(), [-0.0034, -0.2061, -0.0034, 0.0006, 0.1871, 0.1322, 0.0010, 0.2829]),
    "wlr": (limits.odds, MSE(), [None, None, 0.25, None, None, None, None, None]),
    "tpm4": (limits.midpoints, TPM(4), [0.7415, 0.1773, 2.875, -0.0436, -0.0307, 0.0, 0.0, 0.0]),
    "tpm32": (limits.midpoints, TPM(32), [0.0755, 0.0502, 0.3824, -0.0029, -0.0087, 0.0, 0.0, 0.0]),
    "cread": (limits.midpoints, CREAD(4, EAD(0.5)), [0.5941, 0.0453, 2.875, -0.0567, -0.0555, 0.0, -0.0326, 0.1089]),
    "mdme": (limits.likeliest_bucket, MDME(2, 2, equal_width), MDME_2X2),
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_closed_form(row, column):
    limit, head, expected = ROWS[row]
    value = expected[COLUMNS.index(column)]
    distribution = DISTRIBUTIONS[COLUMNS.index(column)]
    found = limit(distribution, head.prepare(population(column, 200_000, largest=True)))
    if value is None:
        assert found is None
    else:
        # Outer edges are the extremes of a sample, and edges in a gap a convention: worth up to 0.005.
        assert found == pytest.approx(value, abs=5e-3)
