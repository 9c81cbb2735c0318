"""How kernels are compiled: at the first call, without the interpreter lock, cached on disk where that is possible."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numba import njit
from numba.core import event

_LARGE = 2**17
"""Labels; more of them are worth compiling for, which takes less memory."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; a read-only installation without a home compiles in every process."""
    return _compile(function, fastmath=False)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, once for all of them: to inline it takes longer in each."""
    return njit(nogil=True)(function)


def reduction(function: Callable[..., Any]) -> Any:
    """Compile a sum of floats whose order is left to the compiler, so that it is vectorised.

    The order is that of the compiled code: the same for every block, thread and call.
    """
    return _compile(function, fastmath={"reassoc", "contract"})


@dataclass(frozen=True)
class _UnlessOne:
    """A kernel of the labels of many replicates, and a function that computes the same of one."""

    many: Any
    one: Callable[..., Any]

    def __call__(self, outcomes: Any, *others: Any) -> Any:
        alone = len(outcomes) == 1 and outcomes.size <= _LARGE
        return (self.one if alone else self.many)(outcomes, *others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.many, name)


def unless_one(one: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Call a kernel of labels ``(n_replicates, n_samples)`` unless there is one replicate, as of observed labels.

    That is left to ``one``, which takes the same arguments and returns the same bits without compiling anything.
    """
    return lambda many: _UnlessOne(many, one)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # nobody calls a kernel from C, and wrapping takes its time
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # Numba found no folder that it may write its cache to
        return njit(**options)(function)


class _First(event.Listener):
    """Calls a function when something is compiled for the first time."""

    def __init__(self, announce: Callable[[], object]) -> None:
        self._announce: Callable[[], object] | None = announce

    def on_start(self, event: Any) -> None:
        announce, self._announce = self._announce, None
        if announce is not None:
            announce()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announced_compilation(announce: Callable[[], object]) -> Iterator[None]:
    """Call ``announce()`` before a kernel is compiled, once; not if all kernels are found in the cache."""
    with event.install_listener("numba:compile", _First(announce)):
        yield
