"""Cautions of a study: methods that were left out, what fits warned of, and labels of probability 0."""

from __future__ import annotations

from collections.abc import Sequence

from caltest.hypothesis_tests._diagnostics import enough_draws
from caltest.recalibration.study._study_entries import RepairedModel
from caltest.results import Note
from caltest.results._decision import cannot_decide, equate_pvalue, rejects
from caltest.results._description import counted


def draws_note(n_resamples: int, n_tests: int, n_rows: int, alpha: float) -> list[Note]:
    """Return a caution if no adjusted p-value of calibration can reject with so many draws.

    ``n_tests`` are combined to each of ``n_rows`` p-values.
    """
    if rejects(n_tests * n_rows / (n_resamples + 1), alpha):
        return []
    text = (
        f"With {n_resamples} draws for each of {n_tests} tests of {n_rows} models no adjusted p-value of calibration "
        f"can be below {min(n_tests * n_rows / (n_resamples + 1), 1):.2g}, unless tests are exact. Take "
        f"{enough_draws(n_tests * n_rows, alpha)} draws or more."
    )
    return [Note("C205", text)]


def study_notes(
    rows: Sequence[RepairedModel], cautions: Sequence[tuple[str, str, str, str]], n_folds: int
) -> list[Note]:
    """Return the cautions of all fits, one for each model and method, and those on labels of probability 0."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for code, model, method, text in cautions:
        found.setdefault((code, model, method), []).append(text)
    several = len({row.model for row in rows}) > 1
    notes = []
    for (code, model, method), texts in found.items():
        where = f"{method} on {model}" if several else method
        if code == "C703":
            notes.append(Note(code, f"{where} is left out, because it refuses the data. {texts[0]}"))
        else:
            often = f" (one of {len(texts)} cautions in {n_folds} folds)" if len(texts) > 1 else ""
            notes.append(Note(code, f"{where}: {texts[0]}{often}"))
    for row in rows:
        number = sum(fold.n_impossible for fold in row.folds)
        if number:
            where = f"{row.method}{f' on {row.model}' if several else ''}"
            what = "1 held-out label has" if number == 1 else f"{number} held-out labels have"
            notes.append(Note("C705", f"{where}: {what} probability 0, so that the log score is infinite."))
    return notes


def undecidable(row: RepairedModel) -> str:
    """Return the sentence that says that no p-value of the tests in the folds could have rejected."""
    tests = [test for fold in row.folds for test in fold.tests]
    groups = [test.n_groups for test in tests if test.n_groups is not None]
    return cannot_decide(
        row.smallest_possible_pvalue,
        row.alpha,
        numbers=f"{equate_pvalue(row.pvalue)}, {counted(row.n_samples)}",
        n_groups=max(groups, default=None),
        n_resamples=0 if groups else max(test.n_resamples for test in tests),
        name="combined p-value",
        where=" or fewer in each fold",
    )
