"""The bibliography: what the docstrings of public names cite, once each, with the names that cite it."""

import inspect
import re
from importlib import import_module
from pathlib import Path

from numpydoc.docscrape import NumpyDocString
from sphinx.application import Sphinx

from _site.reference import paths

PAGE = Path(__file__).resolve().parents[1] / "reference" / "bibliography.rst"

BEGINS = re.compile(r"(?=^(?:[A-ZÀ-Ž]\.[ -]?)+ ?\S[^\n]*)", flags=re.MULTILINE)
"""A source begins with the initials of its first author on a new line."""

PLACE = re.compile(
    r",? (?:and )?(?:sections?|equations?|appendi\w+|figures?|tables?|propositions?|theorems?|algorithms?|lemmas?"
    r"|chapters?|definitions?|parts?) [\w.]+(?: ?(?:,|and|to) [\w.]*\d[\w.]*)*\.?$"
)
"""Where in its source something stands, which is left out here."""


def cited() -> dict[str, set[str]]:
    """The sources in the docstrings, and the paths of the names that cite each."""
    found: dict[str, set[str]] = {}
    for room, names in paths().items():
        for name, path in names.items():
            lines = NumpyDocString(inspect.getdoc(getattr(import_module(f"caltest.{room}"), name)) or "")["References"]
            for source in BEGINS.split("\n".join(lines)):
                text = " ".join(source.split())
                if re.search(r"\(\d{4}", text):
                    while PLACE.search(text):
                        text = PLACE.sub("", text)
                    found.setdefault(text.rstrip(".,") + ".", set()).add(path)
    return found


def surname(source: str) -> str:
    """The source without the initials of its first author, in small letters."""
    return re.sub(r"^(?:[A-ZÀ-Ž]\.[ -]?)+ ?", "", source).casefold()


def write(app: Sphinx) -> None:
    """Write the page."""
    title = "Bibliography"
    entries = []
    for source, names in sorted(cited().items(), key=lambda item: surname(item[0])):
        by = ", ".join(f":py:obj:`~{path}`" for path in sorted(names))
        text = source.replace("*", r"\*").replace("`", r"\`")
        entries.append(f"* {text}\n  Cited by {by}.\n")
    text = f"{title}\n{'=' * len(title)}\n\nThis page lists what the docstrings cite, and where.\n\n" + "\n".join(
        entries
    )
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        PAGE.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before pages are searched for."""
    write(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
