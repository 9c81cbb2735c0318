"""What the page folds away for statisticians: every lens and statistic, with how the numbers were made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from caltest.estimation import reliability_curve, score_decomposition, simplex_diagram
from caltest.hypothesis_tests import CalibrationReport, CalibrationTable
from caltest.page._answer import Model
from caltest.page._pictures import Picture, deviations, diagram, triangle
from caltest.predictions import ClassWise
from caltest.results import Note, Result, Verdict
from caltest.results._description import Table, join
from caltest.results._note import PAGE

_SHOWN = 3  # classes with a diagram
_MOST_ROWS = 40  # of the table of classes


@dataclass(frozen=True)
class Folded:
    """A part that is folded: a heading, paragraphs, tables with their names, pictures and cautions."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[tuple[str, Table]] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[Note] = ()

    @property
    def texts(self) -> Iterator[str]:
        """All sentences in which codes of notes may be mentioned."""
        yield from self.paragraphs
        yield from (str(note) for note in self.notes)


_OF_SCORES = {"classes", "input", "sample_weight"}


def details_of(table: CalibrationTable, report: CalibrationReport, verdict: Verdict, model: Model) -> Iterator[Folded]:
    """Yield the folded parts about one model; the decision stands above them and is not repeated.

    One of several models has no further pictures, because the page would become too large for an e-mail.
    """
    alone = not model.name
    yield of_result("Tests through several lenses" if len(table) > 1 else "Test of the event", table)
    detectable = verdict.detectable
    if detectable is not None:
        yield of_result("Smallest errors that would have been found", detectable)
    yield of_result("Tests by several statistics", report)
    yield from _classes(table, model)
    pictures = [deviations({"": model.curve})] if alone else []
    yield Folded("Deviations from the diagonal", [model.curve.conclusion], pictures=pictures)
    if table[0].n_outcomes == 3 and not model.lead:  # whose tests take labels as independent
        own = {key: value for key, value in model.design.items() if key in {*_OF_SCORES, "groups"}}
        found = simplex_diagram(model.y_true, model.y_prob, alpha=table.alpha, rng=0, **own)
        yield of_result("Which classes are confused", found, [triangle(found)], conclusion=True)
    # Dependence of labels does not change the decomposition of the Brier score, which is estimated without an interval.
    independent = {key: value for key, value in model.design.items() if key in _OF_SCORES}
    scores = score_decomposition(model.y_true, model.y_prob, **independent)
    yield of_result("What recalibration would gain", scores, conclusion=True)


def of_result(heading: str, result: Result, pictures: Sequence[Picture] = (), *, conclusion: bool = False) -> Folded:
    """Return what a result prints as a folded part."""
    said = result._description()
    several = len(said.tables) > 1
    named = [(f"{said.title} ({number})" if several else said.title, one) for number, one in enumerate(said.tables, 1)]
    first: Sequence[Any] = said.conclusion if conclusion else ()
    return Folded(heading, [*first, *said.remarks], named, pictures, said.notes)


def _classes(table: CalibrationTable, model: Model) -> Iterator[Folded]:
    """Yield the classes with the largest errors: those that are shown to be miscalibrated come first."""
    rows = [
        (str(test.lens_short_name), test, adjusted, rejected)
        for test, adjusted, rejected in zip(table.tests, table.pvalue_adjusted, table.rejected_tests, strict=True)
        if isinstance(test.lens, ClassWise)
    ]
    if not rows:
        return
    rows.sort(key=lambda row: (not row[3], -row[1].l2_error.root))
    found = [name for name, _, _, rejected in rows[:_SHOWN] if rejected]
    said = "No single class is rejected after Holm's correction."
    if found:
        said = f"The largest errors among the classes that are rejected after Holm's correction: {join(found)}."
    cells = [(name, test.l2_error.root_text, f"{adjusted:.4g}") for name, test, adjusted, _ in rows[:_MOST_ROWS]]
    errors = Table(("class", "l2 error (95 % interval)", "p (Holm)"), cells)
    curves = {
        name: reliability_curve(model.y_true, model.y_prob, lens=test.lens, rng=0, **model.design)
        for name, test, _, _ in rows[: 0 if model.name else _SHOWN]
    }
    pictures = [diagram({name: curve}, f"{name} against the rest") for name, curve in curves.items()]
    yield Folded("Classes against the rest", [said], [("Classes by their error", errors)], pictures)


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
