"""How kernels are compiled: at the first call, without the interpreter lock, cached on disk where that is possible."""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; a read-only installation without a home compiles in every process."""
    return _compile(function, fastmath=False)


def reduction(function: Callable[..., Any]) -> Any:
    """Compile a sum of floats whose order is left to the compiler, so that it is vectorised.

    The order is that of the compiled code: the same for every block, thread and call.
    """
    return _compile(function, fastmath={"reassoc", "contract"})


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # Numba found no folder that it may write its cache to
        return njit(nogil=True, **options)(function)
