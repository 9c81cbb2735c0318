"""Options that a user sets once for a block of calls: the number of threads, and whether progress is shown."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from typing import Any

Progress = Callable[[float, float], None]
"""A function that is called with the progress: ``progress(done, total)``."""


@dataclass(frozen=True)
class Config:
    """What functions use where they are not given ``workers`` or ``progress`` themselves.

    Attributes
    ----------
    workers : int
        Number of threads; -1 for all processors.
    progress : bool or callable or None
        As the option of the same name; None is a bar on a terminal and nothing elsewhere.
    """

    workers: int = 1
    progress: bool | Progress | None = None


_USUAL = Config()
_CONFIG: ContextVar[Config] = ContextVar("caltest", default=_USUAL)


@contextmanager
def config_context(*, workers: int | None = None, progress: bool | Progress | None = None) -> Iterator[None]:
    """Set the number of threads, and whether progress is shown, for all calls in a ``with`` block.

    What a call is given itself wins. The settings hold in this thread (or asynchronous task) only, and end with the
    block, also when it raises.

    Parameters
    ----------
    workers : int, optional
        Number of threads; -1 for all processors. By default as outside of the block, at first 1. Results do not depend
        on it.
    progress : bool or callable, optional
        True shows a bar with the time left on a terminal, and a line now and then elsewhere; False shows nothing; a
        function is called with ``(done, total)``. By default as outside of the block, at first a bar on a terminal and
        nothing elsewhere, such as in notebooks, pipes and worker processes.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    TypeError
        If ``workers`` is not an integer, or ``progress`` neither True, False nor a function.
    ValueError
        If ``workers`` is an integer below 1 other than -1.

    See Also
    --------
    caltest.calibration_test : One of the functions that take ``workers`` and ``progress``.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> with caltest.config_context(workers=2, progress=False):
    ...     result = caltest.calibration_test(y_true[:500], y_prob[:500], n_resamples=199, rng=0)
    >>> result.pvalue
    0.005
    """
    outside = _CONFIG.get()
    if workers is not None:
        workers_in_use(workers)
    shown = outside.progress if progress is None else _valid(progress)
    token = _CONFIG.set(Config(outside.workers if workers is None else workers, shown))
    try:
        yield
    finally:
        _CONFIG.reset(token)


def config_in_use() -> Config:
    """Return the settings of the blocks around this call."""
    return _CONFIG.get()


def workers_in_use(workers: int | None) -> int:
    """Return a number of threads: the given one, or that of `config_context`; -1 stands for all processors."""
    number: Any = _CONFIG.get().workers if workers is None else workers
    is_integer = isinstance(number, Integral) and not isinstance(number, bool)
    if is_integer and number == -1:
        return os.cpu_count() or 1
    if is_integer and number >= 1:
        return int(number)
    msg = f"`workers` must be an integer >= 1, or -1 for all processors, got {workers!r}."
    raise (ValueError if is_integer else TypeError)(msg)


def progress_in_use(progress: bool | Progress | None) -> bool | Progress:
    """Return whether progress is shown, or the function that is called with it: the given one, or that in use.

    Where nobody has chosen, it is shown on a terminal by the main thread of a process that no other one has started:
    several bars at once cannot be read.
    """
    from multiprocessing import parent_process

    chosen = _CONFIG.get().progress if progress is None else _valid(progress)
    if chosen is not None:
        return chosen
    return on_terminal() and threading.current_thread() is threading.main_thread() and parent_process() is None


def on_terminal() -> bool:
    """Return whether the error stream is a terminal; it may be closed, or an object of somebody else."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):
        return False


def _valid(progress: Any) -> bool | Progress:
    if isinstance(progress, bool) or callable(progress):
        return progress
    msg = f"`progress` must be True, False or a function of (done, total), got {progress!r}."
    raise TypeError(msg)
