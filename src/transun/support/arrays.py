"""Names of the types of numpy arrays."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Integers"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
