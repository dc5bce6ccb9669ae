"""Numbers whose squares, cubes and fourth powers, of which intervals are made, are numbers too."""

import numpy as np

from transun.support.arrays import Floats

__all__ = ["refuse_vanishing", "require_squarable"]

# Below e⁸⁰ = 5.5e34, where the predictions of every transform end, and below the largest number of float32.
_LARGEST = 1e34
_SMALLEST = float(np.finfo(np.float32).tiny)


def require_squarable(number: np.ndarray, **contents: Floats) -> None:
    """Refuse values that no prediction reaches in float32: fourth powers of others are finite.

    Args:
        number: of each row (n,), for the message.
        **contents: what the values are -> the values (n,).

    >>> require_squarable(np.array([7]), target=np.array([1e300]))
    Traceback (most recent call last):
    ValueError: the target of row 7 is 1e+300, too large to be squared: give it in a larger unit, or correct it

    """
    for content, values in contents.items():
        too_large = np.flatnonzero(np.abs(values) > _LARGEST)
        if len(too_large):
            first = too_large[0]
            raise ValueError(
                f"the {content} of row {number[first]} is {values[first]:g}, too large to be squared: "
                "give it in a larger unit, or correct it"
            )


def refuse_vanishing(**contents: Floats) -> None:
    """Refuse values (n,) of which not even the largest can be squared: their spread would be 0, and intervals a point.

    A single value may be as small as it likes, and all may be 0.

    >>> refuse_vanishing(target=np.array([0.0, 1e-300]))
    Traceback (most recent call last):
    ValueError: the largest target is 1e-300, too small to be squared: give it in a smaller unit
    >>> refuse_vanishing(target=np.array([0.0, 1e-300, 2.0]))

    """
    for content, values in contents.items():
        largest = float(np.abs(values).max(initial=0.0))
        if 0.0 < largest < _SMALLEST:
            raise ValueError(
                f"the largest {content} is {largest:g}, too small to be squared: give it in a smaller unit"
            )
