"""Progress of work that takes longer than a moment: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from caltest.results._config import Progress, config_context, on_terminal, progress_in_use

PROGRESS_AFTER = 1.0  # seconds of silence before a progress bar appears
LINE_AFTER = 10.0  # seconds between two lines; work that takes less has none


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A progress bar with the time left on the terminal's error stream; called with ``(done, total)``."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: float, total: float) -> None:
        """Show that ``done`` of ``total`` is done."""
        if self._bar is None and time.monotonic() - self._start > PROGRESS_AFTER:
            from rich.console import Console
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._description, total=total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=done)


_LITTLE = 0.01  # of the work


class ProgressLines(AbstractContextManager["ProgressLines"]):
    """Lines with the share done and the time left on the error stream, where it is a file or a pipe.

    The first line comes as soon as the time that is needed can be estimated, and says how long that is; further ones
    every 10 seconds. The first part of the work is no measure of the others, because it may compile functions.
    """

    def __init__(self, description: str) -> None:
        self._description = description
        self._begin: tuple[float, float] | None = None  # time and share done, from which times are estimated
        self._may_compile = True
        self._said: float | None = None

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, done: float, total: float) -> None:
        """Print a line if ``done`` of ``total`` is done and the last line is old."""
        now, share = time.monotonic(), done / max(total, 1)
        if self._begin is None:
            self._begin = now, share
        spent, gained = now - self._begin[0], share - self._begin[1]
        if self._may_compile and gained > 0:
            self._may_compile, self._begin = False, (now, share)
            return
        if spent < PROGRESS_AFTER or gained <= 0 or share >= 1:
            return
        if gained < _LITTLE and spent < LINE_AFTER:  # what compiles later still would be taken for work
            return
        left = spent / gained * (1 - share)
        if self._said is None and spent + left >= LINE_AFTER:
            self._say(now, f"about {in_words(spent + left)} expected")
        elif self._said is not None and now - self._said >= LINE_AFTER:
            self._say(now, f"{100 * share:.0f} % done, about {in_words(left)} left")

    def _say(self, now: float, text: str) -> None:
        print(f"{self._description}: {text}", file=sys.stderr, flush=True)
        self._said = now


def in_words(seconds: float) -> str:
    """Return a time in words: "40 s", "3 min" or "2.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def reporting(progress: bool | Progress | None, description: str) -> Iterator[Progress]:
    """Yield the function that is called with the progress: a bar or lines, nothing, or the caller's.

    None is what `config_context` has set, by default a bar on a terminal and nothing elsewhere. What the work calls
    itself shows no progress unless it is passed a function, so that there are never two bars.
    """
    shown = progress_in_use(progress)
    with config_context(progress=False):
        if shown is True:
            with (ProgressBar if on_terminal() else ProgressLines)(description) as bar:
                yield bar
        else:
            yield shown or _nothing


def _nothing(done: float, total: float) -> None:
    """Show nothing."""


def part_of(progress: Progress | None, number: int, n_parts: int) -> Progress | None:
    """Return a function that reports the progress of one part of the work as that of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, n_parts * total)
