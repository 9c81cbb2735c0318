"""What a monitor has found so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.results import Result
from caltest.results._decision import equate_pvalue
from caltest.results._description import Description, Table, counted
from caltest.results._test_result import percent

_SHOWN = 1e6  # larger e-values are written by their power of ten
_LOG_TEN = float(np.log(10.0))

SENTENCES = {
    "too high": "The predicted probabilities are too high",
    "too low": "The predicted probabilities are too low",
    "too extreme": "The predicted probabilities are too extreme: large ones are too high and small ones are too low",
    "not extreme enough": "The predicted probabilities are not extreme enough: large ones are too low and small ones "
    "are too high",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MonitorResult(Result):
    """What a `caltest.CalibrationMonitor` has found so far; returned by its method ``result``.

    Attributes
    ----------
    n_samples : int
        Number of observations.
    e_value : float
        The wealth now, 1 at the beginning; infinite after an outcome of probability 0.
    log_e_value : float
        Its natural logarithm, also where the e-value is too large for a double.
    alpha : float
        Largest probability of ever raising a false alarm.
    alarm : int or None
        Number of the observation, from 1, at which the e-value first reached ``1 / alpha``.
    direction : str or None
        "too high", "too low", "too extreme" or "not extreme enough": the predictions at the alarm.
    cause : str or None
        What the wealth at the alarm came from, such as "class 3 against the rest".
    pvalue : float
        1 divided by the largest e-value so far: a p-value that is valid whenever it is looked at.
    n_impossible : int
        How often an event with predicted probability 0 happened, or one with probability 1 did not.
    lens : lens
        What is looked at.
    lens_name : str
        Its name in words.
    path : array of shape (n_points, 2)
        Numbers of some observations and the logarithm of the e-value after them.
    """

    n_samples: int
    e_value: float
    log_e_value: float
    alpha: float
    alarm: int | None
    direction: str | None
    cause: str | None
    pvalue: float
    n_impossible: int
    lens: Any
    lens_name: str
    path: NDArray[np.float64]

    _picture: ClassVar[str | None] = "plot_monitor"
    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)
    _left_out: ClassVar[frozenset[str]] = frozenset({"path"})

    @property
    def conclusion(self) -> str:
        """Whether there was an alarm, when and in which direction, in a few sentences."""
        level = percent(self.alpha)
        if not self.n_samples:
            return "There are no observations yet."
        if self.alarm is None:
            return (
                f"No alarm in {counted(self.n_samples, ',')}: calibration is not rejected at the {level} level. This "
                "does not prove that the model is calibrated."
            )
        return (
            f"Alarm at observation {self.alarm:,}: calibration is rejected at the {level} level. "
            f"{SENTENCES[str(self.direction)]} ({self.cause})."
        )

    def _describe(self) -> Description:
        shown = equate_pvalue(self.pvalue)
        rows = [
            ("e-value now", show_e_value(self.log_e_value)),
            ("alarm at", f"{1 / self.alpha:.4g}"),
        ]
        remarks = [
            f"The p-value, {shown}, is 1 divided by the largest e-value so far and is valid at every moment.",
            "If every outcome has its predicted probability, given all earlier outcomes and predictions, the "
            f"probability that there is ever an alarm is at most {percent(self.alpha)}.",
        ]
        if self.n_impossible:
            times = "Once" if self.n_impossible == 1 else f"{self.n_impossible:,} times"
            remarks.insert(0, f"{times} an event happened that had been predicted with probability 0.")
        title = f"Calibration monitor ({self.lens_name}, {counted(self.n_samples, ',')})"
        return Description(title, [self.conclusion], [Table(("", "value"), rows)], remarks)


def show_e_value(log_e_value: float) -> str:
    """Return an e-value as text, from its logarithm.

    Examples
    --------
    >>> show_e_value(0.0), show_e_value(3.0), show_e_value(2000.0), show_e_value(float("inf"))
    ('1', '20.1', '10^868', 'infinite')
    """
    if np.isposinf(log_e_value):
        return "infinite"
    if log_e_value >= np.log(_SHOWN):
        return f"10^{int(log_e_value // _LOG_TEN)}"
    return f"{np.exp(log_e_value):.3g}"
