"""What a monitor has found, as a result that prints, draws and writes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.results import Result
from caltest.results._decision import equate_pvalue
from caltest.results._description import Description, counted, percent
from caltest.results._picture import Picture
from caltest.results._verdict import Verdict

_SHOWN = 1e6  # larger e-values are written by their power of ten
_LOG_TEN = float(np.log(10.0))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MonitorResult(Result):
    """What a `caltest.CalibrationMonitor` has found so far; returned by its method ``result``.

    Attributes
    ----------
    n_samples : int
        Number of observations whose outcomes count.
    e_value : float
        The wealth now, 1 at the beginning, if all bets that are pending were lost as much as they can be; infinite
        after an outcome of probability 0.
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
    verdict : Verdict
        The decision, and what was wrong at the alarm: its direction, with the average prediction and the frequency of
        the event in the observations before it.
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
    n_pending : int
        Number of further observations, whose outcomes do not count yet.
    lead : str or None
        How long after its prediction an outcome counts as known, in words; None if it is known before the next one.

    See Also
    --------
    caltest.CalibrationMonitor : The monitor that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.CalibrationMonitor().update(y_true, y_prob).result()
    >>> result.n_samples, result.alarm, round(result.pvalue, 2)
    (300, None, 0.9)
    """

    n_samples: int
    e_value: float
    log_e_value: float
    alpha: float
    alarm: int | None
    direction: str | None
    cause: str | None
    verdict: Verdict
    pvalue: float
    n_impossible: int
    lens: Any
    lens_name: str
    path: Floats
    n_pending: int = 0
    lead: str | None = None

    plot = Picture("plot_monitor")
    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)
    _left_out: ClassVar[frozenset[str]] = frozenset({"path"})

    @property
    def conclusion(self) -> str:
        """What was wrong at the alarm, and when it was, in a few sentences."""
        return self.verdict.conclusion

    def _describe(self) -> Description:
        shown = equate_pvalue(self.pvalue)
        known = "all earlier outcomes and predictions"
        if self.lead is not None:
            known = f"all earlier predictions and the outcomes of those made at least {self.lead} before"
        remarks = [
            f"The p-value, {shown}, is 1 divided by the largest e-value so far and is valid at every moment.",
            f"If every outcome has its predicted probability, given {known}, the probability that there is ever an "
            f"alarm is at most {percent(self.alpha)}.",
        ]
        if self.n_pending:
            are, do, them = (
                ("is", "its outcome does", "it") if self.n_pending == 1 else ("are", "their outcomes do", "them")
            )
            pending = f"{counted(self.n_pending, 'further observation')} {are} pending: {do} not count yet"
            remarks.append(f"{pending}, and what is bet on {them} counts as lost.")
        if self.n_impossible:
            times = "Once" if self.n_impossible == 1 else f"{self.n_impossible:,} times"
            remarks.insert(0, f"{times} an event happened that had been predicted with probability 0.")
        title = f"Calibration monitor ({self.lens_name}, {counted(self.n_samples)})"
        about = self.verdict.subject
        return self.verdict.described(
            self.verdict.head if about and about.source else title, [self.conclusion], remarks=remarks
        )


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
