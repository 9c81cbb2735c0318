"""A monitor of calibration that may be looked at, and stopped, at every moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions import Canonical, ClassWise
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike, lens_name, probabilities_of, subject_of
from caltest.predictions._user_functions import apply_lens
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_given_problem, validate_level
from caltest.results import Result
from caltest.results._decision import equate_pvalue
from caltest.results._description import Description, counted, percent
from caltest.results._finding import OF_AVERAGE, OF_CONFIDENCE, Finding, Number, Subject
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.results._verdict import Impossible, Verdict
from caltest.streaming.monitors._bets import TOO_LOW, Alarm, Bets
from caltest.streaming.monitors._noticed_error import noticed_error
from caltest.streaming.monitors._saved_monitor import read_monitor, write_monitor

_SHOWN = 1e6  # larger e-values are written by their power of ten
_LOG_TEN = float(np.log(10.0))


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

    plot = Picture("plot_monitor")
    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)
    _left_out: ClassVar[frozenset[str]] = frozenset({"path"})

    @property
    def conclusion(self) -> str:
        """What was wrong at the alarm, and when it was, in a few sentences."""
        return self.verdict.conclusion

    def _describe(self) -> Description:
        shown = equate_pvalue(self.pvalue)
        remarks = [
            f"The p-value, {shown}, is 1 divided by the largest e-value so far and is valid at every moment.",
            "If every outcome has its predicted probability, given all earlier outcomes and predictions, the "
            f"probability that there is ever an alarm is at most {percent(self.alpha)}.",
        ]
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


class CalibrationMonitor:
    r"""Monitor of the calibration of a model in production, with an e-value that is valid at every moment.

    Observations arrive one by one or in batches, and the monitor bets against every predicted probability, at the odds
    that the prediction offers. Its wealth, the e-value, begins at 1 and cannot be expected to grow while the model is
    calibrated; there is an alarm when it reaches ``1 / alpha``. If each prediction is made after all earlier labels are
    known, or if the observations are independent, the probability of ever raising a false alarm is at most ``alpha``,
    however long the monitor runs and however often it is looked at.

    Parameters
    ----------
    alpha : float
        Largest probability of a false alarm over all time.
    lens : lens, optional
        What is looked at; by default the whole prediction. With two outcomes, the bets are on the second one. With
        more, half of the wealth is bet on the confidence, and half on every outcome against the rest, in equal shares:
        the average of e-values is an e-value, so that nothing is adjusted for their number.
    classes : sequence, optional
        The label of each column of the predictions; by default class indices, or the names of the columns of frames.

    Raises
    ------
    TypeError
        If ``alpha`` is no number, or ``lens`` no lens.
    ValueError
        If ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    caltest.calibration_test : A test of a fixed number of observations, with more power for these.

    Notes
    -----
    The null hypothesis is that :math:`P(Y_t = 1 \mid \text{all before}, p_t) = p_t` for every t, where all before means
    the predictions and outcomes that were passed before. Predictions may depend on the past in any way. An alternative
    forecast :math:`q_t`, made from the same knowledge, multiplies the wealth by :math:`q_t(y_t) / p_t(y_t)`, whose
    expectation is at most 1 under the null hypothesis. The same holds for a mixture of them, and Ville's inequality
    (1939) bounds the probability that the wealth ever reaches :math:`1 / \alpha` (Waudby-Smith and Ramdas 2024; for
    calibration, Arnold, Henzi and Ziegel 2023).

    Half of the wealth is bet by 16 fixed recalibrations with :math:`\text{odds}(q) = r\, \text{odds}(p)^s` for odds
    ratios r from 1/4 to 4 and slopes s from 1/2 to 2; a quarter each by two adaptive ones, :math:`q = p + (\theta_0 +
    \theta_1 (2 p - 1))\, p (1 - p)`, whose parameters are estimated from all earlier outcomes, or from the last ones
    whose predictions have together an information :math:`\sum p (1 - p)` of about 400. Of every bet, half is placed at
    the beginning and the rest later, so that :math:`(1 + t / 100)^{-1/4} / 2` is left after t observations; therefore a
    change is found that comes late. docs/monitoring.md derives this and reports how soon changes are found.

    An outcome with predicted probability 0 (or below 1e-300) makes the e-value infinite.

    The level holds in two cases: each prediction is made after all earlier labels are known, and they are passed in
    this order; or the observations are independent of each other, and are passed in an order that does not depend on
    their labels. Otherwise calibrated predictions raise false alarms, because each may be right on average while the
    errors of neighbours go together: forecasts for a week ahead that are made every day, scores of one day with a
    common cause, or several predictions for one patient. In 400 simulated years of daily calibrated forecasts with lead
    7 there was a false alarm in 368 (docs/monitoring.md). If labels arrive at times that depend on them, such as deaths
    before survivals, pass them in an order that was fixed before.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(3000)
    >>> halved = y_prob / (2 - y_prob)  # half the odds: so the model goes wrong after 1,000 observations
    >>> true_prob = np.where(np.arange(3000) < 1000, y_prob, halved)
    >>> y_true = rng.random(3000) < true_prob
    >>> monitor = CalibrationMonitor(alpha=0.01)
    >>> for day in range(30):
    ...     today = slice(100 * day, 100 * day + 100)
    ...     _ = monitor.update(y_true[today], y_prob[today])
    >>> monitor.alarm, monitor.direction
    (1147, 'too high')
    """

    def __init__(
        self, alpha: float = 0.05, lens: LensLike | None = None, *, classes: Sequence[Any] | None = None
    ) -> None:
        self.alpha = validate_level(alpha, "alpha")
        if lens is not None and (not callable(lens) or isinstance(lens, type)):
            refuse(
                f"`lens` must be a lens such as Confidence() or a function of (prob, outcome), got {lens!r}.", TypeError
            )
        self.lens: LensLike = Canonical() if lens is None else lens
        self._classes = None if classes is None else list(classes)
        self._n_classes: int | None = None
        self._bets: Bets | None = None

    def __repr__(self) -> str:
        return f"CalibrationMonitor(alpha={self.alpha}, lens={describe(self.lens)})"

    def __str__(self) -> str:
        return str(self.result())

    def _repr_html_(self) -> str:
        return self.result()._repr_html_()

    def update(self, y_true: ArrayLike, y_prob: ArrayLike) -> Self:
        """Bet on further observations, one after the other; batches of any size give the same bits.

        Parameters
        ----------
        y_true : array_like of shape (n_samples,)
            Class indices, or labels of ``classes``, in the order in which they arrived.
        y_prob : array_like of shape (n_samples, n_classes) or (n_samples,)
            Predicted probabilities, or the probability of the second of two classes.

        Returns
        -------
        CalibrationMonitor
            The monitor itself.

        Raises
        ------
        ValueError
            If a label is no class, if a prediction is no probability, or if the number of classes is not that of the
            observations before. The monitor is not changed then.

        Examples
        --------
        >>> CalibrationMonitor().update([0, 1, 1], [0.2, 0.6, 0.9]).n_samples
        3
        """
        prob, outcome, classes = _read(y_true, y_prob, self._classes)
        if self._n_classes not in {None, prob.shape[1]}:
            refuse(f"`y_prob` must have {self._n_classes} classes, as the observations before, got {prob.shape[1]}.")
        n_classes = prob.shape[1]
        if not isinstance(self.lens, Canonical):
            prob, outcome = apply_lens(self.lens, prob, outcome)
        bets = Bets.of(prob.shape[1], 1 / self.alpha) if self._bets is None else self._bets
        if bets.n_outcomes != prob.shape[1]:
            refuse(f"`lens` must have {bets.n_outcomes} outcomes, as before, got {prob.shape[1]}.")
        self._n_classes, self._classes, self._bets = n_classes, classes, bets
        bets.place(prob, outcome)
        return self

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return 0 if self._bets is None else self._bets.n_samples

    @property
    def e_value(self) -> float:
        """The wealth now, which began at 1; infinite after an outcome of probability 0, or if it is above 1e308."""
        return _exp(0.0 if self._bets is None else self._bets.log_wealth)

    @property
    def pvalue(self) -> float:
        """1 divided by the largest e-value so far: a p-value that is valid at every moment."""
        return 1.0 if self._bets is None else _exp(-self._bets.log_peak)

    @property
    def alarm(self) -> int | None:
        """Number of the observation, from 1, at which the e-value first reached ``1 / alpha``; None before."""
        return None if self._bets is None or self._bets.alarm is None else self._bets.alarm.observation

    @property
    def direction(self) -> str | None:
        """How the predictions were wrong at the alarm: "too high", "too low", "too extreme" or "not extreme enough"."""
        return None if self._bets is None or self._bets.alarm is None else self._bets.alarm.direction

    def result(self) -> MonitorResult:
        """Return what was found so far, as a result that prints, draws and writes itself.

        Returns
        -------
        MonitorResult
            The state now; later observations do not change it.

        Examples
        --------
        >>> print(CalibrationMonitor().update([0, 1, 1], [0.2, 0.6, 0.9]).result().conclusion)
        It cannot be told whether these predictions are right: only 1.3 observations without the event were to be
        expected (p = 1).
        """
        bets = Bets.of(2, 1 / self.alpha) if self._bets is None else self._bets
        numbers = np.arange(1, bets.path.shape[1] + 1) * bets.every
        return MonitorResult(
            n_samples=self.n_samples,
            e_value=self.e_value,
            log_e_value=bets.log_wealth,
            alpha=self.alpha,
            alarm=self.alarm,
            direction=self.direction,
            cause=None if bets.alarm is None else self._event_name(bets.alarm.stream),
            verdict=self._verdict(bets),
            pvalue=self.pvalue,
            n_impossible=bets.n_impossible,
            lens=self.lens,
            lens_name=lens_name(self.lens, self._classes),
            path=np.column_stack([np.append(0, numbers), np.append(0.0, bets.log_path)]),
        )

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the path of the e-value with the threshold of the alarm.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            What to draw into; new axes by default.
        **options
            Passed to `caltest.plotting.plot_monitor`.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn into.
        """
        return self.result().plot(ax, **options)

    def save(self, path: str | Path) -> None:
        """Write the monitor to a JSON file, from which it goes on as if nothing had happened.

        Parameters
        ----------
        path : str or Path
            The file; an older one is replaced.

        Raises
        ------
        TypeError
            If ``lens`` is a function, or ``classes`` are neither texts nor numbers, which JSON cannot hold.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     CalibrationMonitor().update([0, 1, 1], [0.2, 0.6, 0.9]).save(f"{folder}/monitor.json")
        ...     CalibrationMonitor.load(f"{folder}/monitor.json").n_samples
        3
        """
        settings = {"alpha": self.alpha, "lens": self.lens, "classes": self._classes, "n_classes": self._n_classes}
        write_monitor(Path(path), settings, self._bets)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the monitor of a file that was written by `save`.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        CalibrationMonitor
            The monitor, with its settings.

        Raises
        ------
        ValueError
            If the file is no monitor, was changed or cut off, is of another version of the bets, or holds what no
            monitor can hold.
        """
        settings, bets = read_monitor(Path(path))
        found = cls(settings["alpha"], settings["lens"], classes=settings["classes"])
        found._n_classes, found._bets = settings["n_classes"], bets
        return found

    def _verdict(self, bets: Bets) -> Verdict:
        """Return the decision, and what was wrong at the alarm."""
        alarm, more = bets.alarm, dict[str, Any]()
        stream = alarm.stream if alarm else bets.n_outcomes if bets.n_outcomes > 2 else 0
        n, predicted, observed = bets.averages(stream)
        subject = self._subject(stream) if n else None
        if alarm and not alarm.n_recent:
            kind = "n_class" if bets.n_outcomes > 2 else "n_zero" if alarm.direction == TOO_LOW else "n_one"
            more = {"impossible": Impossible(**{kind: 1})}
        elif alarm:
            more = _found(alarm, self._subject(stream), self.pvalue)
        meaning, (n_recent, *recent) = f"alarm at {1 / self.alpha:.4g}", bets.averages(stream, 1)
        now = [("e-value now", self.e_value, show_e_value(bets.log_wealth), meaning)]
        if subject and round(n_recent) < n:
            now.append((_recent(n_recent, self.n_samples), recent[1], subject.compare(recent[0], recent[1]), ""))
        found = Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            subject=subject,
            n_samples=self.n_samples,
            n_outcomes=bets.n_outcomes,
            n_expected=min(predicted, 1 - predicted) * n if n else 0.0,
            n_observed=min(observed, 1 - observed) * n if n else 0.0,
            frequency=observed,
            streamed=True,
            bound=True,
            numbers=tuple(Number(name=a, estimate=b, shown=c, meaning=d) for a, b, c, d in now),
            undecidable="" if n else "There are no observations yet.",
            **({"predicted": predicted, "observed": observed} | more),
        )
        calm = found.decision == "not rejected"
        return replace(found, detectable=noticed_error(bets, self.alpha)) if calm else found

    def _subject(self, stream: int) -> Subject:
        """Return what a stream of bets is on, for sentences."""
        bets = self._bets
        if bets is None or bets.n_outcomes == 2:
            return subject_of(self.lens, self._classes)
        if stream == bets.n_outcomes:
            return OF_CONFIDENCE
        if isinstance(self.lens, Canonical):
            return ClassWise(stream).subject(self._classes)
        return probabilities_of(self._event_name(stream))

    def _event_name(self, stream: int) -> str:
        """Return what a stream of bets is on, in words."""
        bets = self._bets
        if bets is None or (bets.n_outcomes == 2 and not isinstance(self.lens, Canonical)):
            return lens_name(self.lens, self._classes)
        if bets.n_outcomes == 2:
            return ClassWise(1).name(self._classes)
        if stream == bets.n_outcomes:
            return "confidence"
        if isinstance(self.lens, Canonical):
            return ClassWise(stream).name(self._classes)
        return f"outcome {stream} of {lens_name(self.lens, self._classes)}"


def _found(alarm: Alarm, subject: Subject, pvalue: float) -> dict[str, Any]:
    """Return the fields of a verdict that an alarm tells."""
    direction, shares = alarm.direction, {"predicted": alarm.predicted, "observed": alarm.observed}
    kind = OF_AVERAGE.get(direction, direction) if subject.of_confidence else direction
    finding: dict[str, Any] = {"kind": kind, "subject": subject, "pvalue": pvalue, "n": round(alarm.n_recent), **shares}
    if direction in OF_AVERAGE and alarm.predicted:
        finding["estimate"] = alarm.observed / alarm.predicted
    recent = _recent(alarm.n_recent, alarm.observation)
    averages = (
        "these percentages are"
        if direction in OF_AVERAGE
        else f"{subject.compare(alarm.predicted, alarm.observed)} are"
    )
    details = (f"The alarm was at observation {alarm.observation:,}; {averages} averages of {recent} before it.",)
    return {"findings": (Finding(**finding),), "details": details, "predicted": math.nan, "observed": math.nan}


def _recent(n_recent: float, n_samples: int) -> str:
    """Return the observations that a memory holds in words."""
    return f"{'about the last' if n_recent < n_samples else 'the'} {round(n_recent):,} observations"


@reads_arguments
def _read(
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None
) -> tuple[NDArray[Any], Integers, list[Any] | None]:
    """Return predictions, class indices and the label of each column."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    return prob, outcome, None if classes is None else list(classes)


def _exp(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf
