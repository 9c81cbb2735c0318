"""Linear algebra on one thread, for matrices so small that threads would wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # which scikit-learn needs


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which products and solutions of matrices use one thread.

    A product of 8,000 x 110 numbers takes some ten times as long on threads where other programs use the processors.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Return what limits the threads of the libraries that are loaded; looking for them takes milliseconds."""
    return ThreadpoolController()
