"""Exit codes of a decision, for pipelines."""

from __future__ import annotations

REJECTED, UNDECIDABLE = 1, 3
"""Calibration is rejected; the data cannot decide. 2 is an error, as for other programs."""

MEANING = "1 if calibration is rejected at --alpha, 3 if the data cannot decide, 0 otherwise, 2 after an error"
"""What the exit codes of ``--exit-code`` mean."""


def code_of(decision: str) -> int:
    """Return the exit code of a decision, which a pipeline waits for.

    Data that cannot decide do not pass: a file of three hospitals would approve every model.

    Examples
    --------
    >>> code_of("rejected"), code_of("undecidable"), code_of("not rejected")
    (1, 3, 0)
    """
    return {"rejected": REJECTED, "undecidable": UNDECIDABLE}.get(decision, 0)
