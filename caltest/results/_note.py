"""Cautions: each has a code, a text and a paragraph in the documentation."""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    code: str
    text: str

    @property
    def link(self) -> str:
        """Where the caution is explained."""
        return f"{PAGE}#{self.code.lower()}"

    def to_dict(self) -> dict[str, str]:
        """Return code, text and link, ready for JSON."""
        return {"code": self.code, "text": self.text, "link": self.link}

    def __str__(self) -> str:
        return f"{self.text} [{self.code}]"
