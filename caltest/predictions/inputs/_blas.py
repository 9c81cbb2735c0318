"""Products of matrices use one thread while the package computes: its threads are those that `workers` asks for."""

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
    """Limit BLAS to one thread inside, unless a call around this one, or on another thread, does it already.

    A product of 8,000 x 110 numbers takes some ten times as long on threads where other programs use the processors.
    The limit is that of the process: only who has set it restores what was before.
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
