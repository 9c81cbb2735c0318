"""Cautions: each has a code, a text and a paragraph in the documentation; and the warning of the package."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, field
from pathlib import Path

PAGE = "docs/notes.md"
"""Where every code is explained."""


@dataclass(frozen=True)
class Note:
    """A caution about a result.

    Attributes
    ----------
    code : str
        Such as "C201": what kind of caution it is; docs/notes.md explains each.
    text : str
        The caution, in whole sentences.
    about : str
        The statistic that the text names, if it is about one; may be empty.

    See Also
    --------
    CalibrationWarning : How a caution is warned of.

    Examples
    --------
    >>> Note("C101", "Labels were used.").code
    'C101'
    """

    code: str
    text: str
    about: str = field(default="", compare=False, repr=False)

    @property
    def link(self) -> str:
        """Where the caution is explained."""
        return f"{PAGE}#{self.code.lower()}"

    def to_dict(self) -> dict[str, str]:
        """Return code, text and link, ready for JSON."""
        return {"code": self.code, "text": self.text, "link": self.link}

    def __str__(self) -> str:
        return f"{self.text} [{self.code}]"


_PACKAGE = str(Path(__file__).parents[1])


class CalibrationWarning(UserWarning):
    """A result that must be read with care.

    See Also
    --------
    Note : The caution that a warning prints.

    Examples
    --------
    >>> issubclass(CalibrationWarning, UserWarning)
    True
    """


def warn_user(text: str) -> None:
    """Warn at the line of the user: the nearest call from outside the package."""
    frame, stacklevel = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(text, CalibrationWarning, stacklevel=stacklevel)
