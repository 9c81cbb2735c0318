"""A limit on the threads of matrix products (BLAS), so that `workers` is the number of threads that are used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_unlimited = Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, unless a call around this one, or one on another thread, has done so.

    Where other programs use the processors, a product of 8,000 x 110 numbers takes some ten times as long on several
    threads. The limit holds for the whole process: the call that has set it restores what was before.
    """
    if not _unlimited.acquire(blocking=False):
        yield
        return
    try:
        with _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
            yield
    finally:
        _unlimited.release()


@cache
def _controller(with_scipy: bool) -> Any:
    """Return what limits the threads of the libraries that are loaded; looking for them takes milliseconds.

    SciPy brings a library of its own, which may be loaded later than NumPy's.
    """
    from threadpoolctl import ThreadpoolController  # which scikit-learn needs

    return ThreadpoolController()
