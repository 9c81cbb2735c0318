"""Pictures in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from caltest.results._atomic_file import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 150


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, which replaces the file at once; its suffix decides the format."""
    with atomic_file(path) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), dpi=_DPI)
