"""The explanations of cautions inside the page, because a page that is sent has no documentation beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

from caltest.results._note import PAGE

_CODE = re.compile(r"\bC\d{3}\b")
_PATH = re.compile(rf"(?<=C\d\d\d): {re.escape(PAGE)}")


def codes_in(texts: Iterable[str]) -> list[str]:
    """Return the codes that texts mention, and those that their explanations mention, in order."""
    found: set[str] = set()
    left = {code for text in texts for code in _CODE.findall(text)}
    while left:
        found |= left
        left = {code for one in left for code in _CODE.findall(_explanations().get(one, ""))} - found
    return sorted(found & set(_explanations()))


def explain(code: str) -> str:
    """Return the explanation of a code as HTML."""
    return _explanations()[code]


def linked(text: str, codes: Iterable[str]) -> str:
    """Return a text as HTML in which the codes are links to their explanations, and backquotes code."""
    known = set(codes)
    plain = _in_code(escape(_PATH.sub("", text), quote=False))
    return _CODE.sub(lambda at: f'<a href="#{at[0].lower()}">{at[0]}</a>' if at[0] in known else at[0], plain)


def _in_code(html: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html)


@cache
def _explanations() -> dict[str, str]:
    """Return the explanation of each code as HTML."""
    beside = Path(__file__).with_name("notes.md")  # in an installed package; in a checkout it is in its place
    file = beside if beside.exists() else Path(__file__).parents[2] / PAGE
    sections = re.split(r"^## (C\d{3})$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {code: _html(text) for code, text in zip(sections[1::2], sections[2::2], strict=True)}


def _html(text: str) -> str:
    """Return paragraphs of Markdown as HTML; links point to files that are not there, and become their texts."""
    found = []
    for paragraph in text.strip().split("\n\n"):
        html = escape(" ".join(paragraph.split()), quote=False)
        html = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", html)
        html = re.sub(r"\$([^$]+)\$", _formula, html)
        html = re.sub(r"[*]{2}(.+?)[*]{2}", r"<strong>\1</strong>", html)
        found.append(f"<p>{_in_code(html)}</p>")
    return "".join(found)


def _formula(found: re.Match[str]) -> str:
    text = re.sub(r"\^(?:[{]([^}]+)[}]|(.))", r"<sup>\1\2</sup>", found[1].replace(r"\sum", "Σ"))
    return f"<i>{text}</i>"
