"""Names of the types of arrays, for signatures, and blocks of long ones."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def blocks(n_rows: int, n_columns: int, n_values: int = 2**15) -> Iterator[slice]:
    """Yield slices that hold all rows together, and each so many values as stay in the cache of a processor."""
    size = max(1, n_values // n_columns)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))
