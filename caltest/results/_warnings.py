"""The warning of the package."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


class CalibrationWarning(UserWarning):
    """A result that must be read with care."""


def warn_user(text: str) -> None:
    """Warn at the line of the user: the nearest call from outside the package."""
    frame, stacklevel = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(text, CalibrationWarning, stacklevel=stacklevel)
