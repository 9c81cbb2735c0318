"""How kernels are compiled: at the first call, without the interpreter lock, cached on disk where that is possible."""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; a read-only installation without a home compiles in every process."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # Numba found no folder that it may write its cache to
        return njit(nogil=True)(function)
