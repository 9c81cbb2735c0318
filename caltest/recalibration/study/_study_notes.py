"""Cautions of a study: methods that were left out, what fits warned of, and labels of probability 0."""

from __future__ import annotations

from collections.abc import Sequence

from caltest.hypothesis_tests._diagnostics import enough_draws
from caltest.recalibration.study._study_entries import RepairedModel
from caltest.results import Note
from caltest.results._decision import rejects


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
        if row.n_impossible:
            where = f"{row.recalibrator}{f' on {row.model}' if several else ''}"
            what = "1 held-out label has" if row.n_impossible == 1 else f"{row.n_impossible} held-out labels have"
            notes.append(Note("C705", f"{where}: {what} probability 0, so that the log score is infinite."))
    return notes
