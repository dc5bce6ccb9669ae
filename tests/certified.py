"""A certificate of amounts whose law is known, for tests of what is promised."""

from transun.models.certificate import Certificate, Measured, Part
from transun.models.noise import Noise

ROWS = 3_000  # 15 blocks of 200


def certificate(low=0.95, high=1.05, rows=ROWS):
    """That of exponential amounts of mean 1 whose mean is predicted: their variance is 1."""
    noise = Noise(rows, rows, rows, None, rows, rows, rows, 0.0, 0.0, 1.0, 0.0, 0.1, 40)
    whole = Part("", "all rows", rows, {"PGR": Measured(1.0, low, high)})
    return Certificate("", "", "", 0, "gmv", "", "", {}, whole, noise=noise)
