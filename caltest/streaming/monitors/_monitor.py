"""A monitor of calibration that may be looked at, and stopped, at every moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions import Canonical, ClassWise
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import LensLike, lens_name, probabilities_of, subject_of
from caltest.predictions._user_functions import apply_lens
from caltest.predictions.inputs._arguments import answers_other_names, reads_arguments
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._times import OfferedTime
from caltest.predictions.inputs._validation import validate_given_problem, validate_level
from caltest.results._finding import OF_AVERAGE, OF_CONFIDENCE, Finding, Number, Subject
from caltest.results._naming import describe
from caltest.results._verdict import Impossible, Verdict
from caltest.streaming.monitors._arrivals import Arrivals, Lead, require_alike
from caltest.streaming.monitors._bets import TOO_LOW, Alarm, Bets
from caltest.streaming.monitors._monitor_result import MonitorResult, show_e_value
from caltest.streaming.monitors._noticed_error import noticed_error
from caltest.streaming.monitors._pending_bets import bet_on
from caltest.streaming.monitors._saved_monitor import read_monitor, write_monitor


class CalibrationMonitor:
    r"""Monitor of the calibration of a model in production, with an e-value that is valid at every moment.

    Observations arrive one by one or in batches, and the monitor bets against every predicted probability, at the odds
    that the prediction offers. Its wealth, the e-value, begins at 1 and cannot be expected to grow while the model is
    calibrated; there is an alarm when it reaches ``1 / alpha``. If each prediction is made after all earlier labels are
    known, or if the observations are independent, the probability of ever raising a false alarm is at most ``alpha``,
    however long the monitor runs and however often it is looked at. With ``lead`` the same holds for predictions that
    are made before earlier labels are known, such as forecasts for next week that are made every day, and with
    ``time`` or ``batch`` in `update` for several predictions at one time.

    Parameters
    ----------
    alpha : float
        Largest probability of a false alarm over all time.
    lens : lens, optional
        What is looked at; by default the whole prediction. With two outcomes, the bets are on the second one. With
        more, half of the wealth is bet on the confidence, and half on every outcome against the rest, in equal shares:
        the average of e-values is an e-value, so that nothing is adjusted for their number.
    lead : int, timedelta or str, optional
        How long after its prediction a label is known. A duration such as "7D" is for ``time`` with dates. A whole
        number is in the unit of ``time`` if that holds numbers; of dates it counts the different ones that are passed
        (of weekdays, Monday is one after Friday), and otherwise batches, or observations where there are none. By
        default each label is known before the next prediction, and those of a batch before the next batch.
    classes : sequence, optional
        The label of each column of the predictions; by default class indices, or the names of the columns of frames.

    Raises
    ------
    TypeError
        If ``alpha`` is no number, ``lens`` no lens, or ``lead`` neither a whole number nor a duration.
    ValueError
        If ``alpha`` is not strictly between 0 and 1, or ``lead`` not positive.

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
    change is found that comes late. docs/monitoring-evidence.md derives this and reports how soon changes are found.

    An outcome with predicted probability 0 (or below 1e-300) makes the e-value infinite.

    The null hypothesis with a lead h is that :math:`P(Y_t = 1 \mid \mathcal F_t) = p_t`, where :math:`\mathcal F_t` is
    all that is known at t: predictions until then, and outcomes of those made at t - h or before. A bet stakes
    :math:`s_t`, which depends on this alone, and pays :math:`s_t (Y_t - p_t)` when the outcome is known. All stakes
    are parts of the *safe* wealth, which remains if every pending bet loses as much as it can, and it is the safe
    wealth that raises the alarm. The expectation of the wealth after all pending bets, given what is known, is a
    martingale that is never below the safe wealth, so that Ville's inequality holds for that. Every bet is placed by
    three accounts, with all of its stake, with 1 / m of it and with the root of that, where m is the number of
    predictions that are pending, so that it can grow whether their outcomes are independent or all the same.

    The level holds in three cases: each prediction is made after the labels are known that ``lead`` and the times say,
    and observations are passed in the order of their predictions; or the observations are independent of each other,
    and are passed in an order that does not depend on their labels; or those of different batches are independent, and
    each batch is passed as one. Otherwise calibrated predictions raise false alarms, because each may be right on
    average while the errors of neighbours go together: forecasts for a week ahead that are made every day, scores of
    one day with a common cause, or several predictions for one patient. In 400 simulated years of daily calibrated
    forecasts with lead 7 there was a false alarm in 368 where the lead was left out, and in few where it was given
    (docs/monitoring.md). If labels arrive at times that depend on them, such as deaths before survivals, pass
    ``known_at``, or pass them in an order that was fixed before.

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
        self,
        alpha: float = 0.05,
        lens: LensLike | None = None,
        *,
        lead: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.alpha = validate_level(alpha, "alpha")
        if lens is not None and (not callable(lens) or isinstance(lens, type)):
            refuse(
                f"`lens` must be a lens such as Confidence() or a function of (prob, outcome), got {lens!r}.", TypeError
            )
        self.lens: LensLike = Canonical() if lens is None else lens
        self._lead = Lead.of(lead)
        self._classes = None if classes is None else list(classes)
        self._n_classes: int | None = None
        self._bets: Bets | None = None
        self._arrivals: Arrivals | None = None
        self._closed: Bets | None = None

    def __repr__(self) -> str:
        lead = "" if self._lead is None else f", lead={self._lead.value!r}"
        return f"CalibrationMonitor(alpha={self.alpha}, lens={describe(self.lens)}{lead})"

    def __str__(self) -> str:
        return str(self.result())

    def _repr_html_(self) -> str:
        return self.result()._repr_html_()

    @answers_other_names
    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        time: Any = None,
        batch: Any = None,
        known_at: Any = None,
        input: str = "probabilities",  # noqa: A002
    ) -> Self:
        """Bet on further observations, one after the other; updates of any size give the same bits.

        Parameters
        ----------
        y_true : array_like of shape (n_samples,)
            Class indices, or labels of ``classes``, in the order in which they arrived.
        y_prob : array_like of shape (n_samples, n_classes) or (n_samples,)
            Predicted probabilities, or the probability of the second of two classes.
        time : array_like of shape (n_samples,), optional
            When each prediction was made: numbers, dates or texts of dates in ISO 8601, which must not go backwards.
            Predictions of equal times are a batch: none of them was made after an outcome of another one was known.
            If a time is passed in several updates, what is found between them is preliminary. If only ``lead`` is
            given, an index of pandas that holds dates is taken.
        batch : array_like of shape (n_samples,), optional
            In the place of ``time``, the name of the batch of each observation: of a week, or of a patient with several
            observations. All observations of a batch are passed next to each other.
        known_at : array_like of shape (n_samples,) or scalar, optional
            When the labels were reported. Those that were reported before ``time`` and ``lead`` together have passed
            are held back until all labels of their time may be known, and observations may come in any order until
            then. Without it all labels must be passed when their time is over.
        input : {"probabilities", "logits"}
            What predictions are, as in `caltest.calibration_test`.

        Returns
        -------
        CalibrationMonitor
            The monitor itself.

        Raises
        ------
        TypeError
            If ``time`` holds neither numbers nor dates, or not what it held before.
        ValueError
            If a label is no class, if a prediction is no probability, or if the number of classes is not that of the
            observations before; if ``time`` goes backwards or is before outcomes that count already, if a batch comes
            back, if a label was known before its prediction, or if an update has other times than those before. The
            monitor is not changed then.

        Examples
        --------
        >>> CalibrationMonitor().update([0, 1, 1], [0.2, 0.6, 0.9]).n_samples
        3
        >>> days = ["2026-01-01", "2026-01-02", "2026-01-03"]
        >>> monitor = CalibrationMonitor(lead="2D").update([0, 1, 1], [0.2, 0.6, 0.9], time=days)
        >>> monitor.n_samples, monitor.n_pending
        (2, 1)
        """
        prob, outcome, classes, time = _read(y_true, y_prob, self._classes, time, input=input)
        if isinstance(time, OfferedTime):
            time = None if self._lead is None or batch is not None else time.values
        if self._n_classes not in {None, prob.shape[1]}:
            refuse(f"`y_prob` must have {self._n_classes} classes, as the observations before, got {prob.shape[1]}.")
        n_classes = prob.shape[1]
        if not isinstance(self.lens, Canonical):
            prob, outcome = apply_lens(self.lens, prob, outcome)
        bets = Bets.of(prob.shape[1], 1 / self.alpha) if self._bets is None else self._bets
        if bets.n_outcomes != prob.shape[1]:
            refuse(f"`lens` must have {bets.n_outcomes} outcomes, as before, got {prob.shape[1]}.")
        if self._bets is None:
            arrivals = Arrivals.begin(self._lead, time, batch, known_at)
        else:
            arrivals = self._arrivals
            require_alike(arrivals, time, batch, known_at)
        if arrivals is None:
            bets.place(prob, outcome)
        else:
            arrivals, complete = arrivals.receive(prob, outcome, time, batch, known_at)
            bets = bets if complete is None else bet_on(bets, complete)
        self._n_classes, self._classes, self._bets, self._arrivals = n_classes, classes, bets, arrivals
        self._closed = bets if arrivals is None else None
        return self

    @property
    def _now(self) -> Bets | None:
        """The bets if nothing is added to the last time; None before the first observation."""
        if self._closed is None and self._bets is not None and self._arrivals is not None:
            _, complete = self._arrivals.closed()
            self._closed = self._bets if complete is None else bet_on(self._bets.copy(), complete)
        return self._closed

    @property
    def lead(self) -> int | timedelta | None:
        """How long after its prediction an outcome is known; None where it is known before the next prediction."""
        return None if self._lead is None else self._lead.value

    @property
    def n_samples(self) -> int:
        """Number of observations whose outcomes count."""
        return 0 if self._now is None else self._now.n_samples

    @property
    def n_pending(self) -> int:
        """Number of further observations, whose outcomes do not count yet because others may not be known."""
        held = 0 if self._arrivals is None else self._arrivals.n_held
        return held + (0 if self._now is None else self._now.n_pending)

    @property
    def e_value(self) -> float:
        """The wealth now, which began at 1, if pending bets are lost; infinite after an outcome of probability 0."""
        return _exp(0.0 if self._now is None else self._now.log_wealth)

    @property
    def pvalue(self) -> float:
        """1 divided by the largest e-value so far: a p-value that is valid at every moment."""
        return 1.0 if self._now is None else _exp(-self._now.log_peak)

    @property
    def alarm(self) -> int | None:
        """Number of the observation, from 1, at which the e-value first reached ``1 / alpha``; None before."""
        return None if self._now is None or self._now.alarm is None else self._now.alarm.observation

    @property
    def direction(self) -> str | None:
        """How the predictions were wrong at the alarm: "too high", "too low", "too extreme" or "not extreme enough"."""
        return None if self._now is None or self._now.alarm is None else self._now.alarm.direction

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
        bets = Bets.of(2, 1 / self.alpha) if self._now is None else self._now
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
            n_pending=self.n_pending,
            lead=None if self._arrivals is None else self._arrivals.text,
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
        write_monitor(Path(path), settings, self._bets, self._lead, self._arrivals)

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
        settings, bets, arrivals = read_monitor(Path(path))
        found = cls(settings["alpha"], settings["lens"], lead=settings["lead"], classes=settings["classes"])
        found._n_classes, found._bets, found._arrivals = settings["n_classes"], bets, arrivals
        found._closed = bets if arrivals is None else None
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
            undecidable="" if n else "No outcome counts yet." if self.n_pending else "There are no observations yet.",
            **({"predicted": predicted, "observed": observed} | more),
        )
        calm = found.decision == "not rejected"
        if not calm:
            return found
        n_times = self.n_samples if self._arrivals is None else self._arrivals.closed()[0].n_times
        return replace(found, detectable=noticed_error(bets, self.alpha, n_times))

    def _subject(self, stream: int) -> Subject:
        """Return what a stream of bets is on, for sentences."""
        bets = self._now
        if bets is None or bets.n_outcomes == 2:
            return subject_of(self.lens, self._classes)
        if stream == bets.n_outcomes:
            return OF_CONFIDENCE
        if isinstance(self.lens, Canonical):
            return ClassWise(stream).subject(self._classes)
        return probabilities_of(self._event_name(stream))

    def _event_name(self, stream: int) -> str:
        """Return what a stream of bets is on, in words."""
        bets = self._now
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
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None, time: Any, **_: Unpack[InputOption]
) -> tuple[NDArray[Any], Integers, list[Any] | None, Any]:
    """Return predictions, class indices, the label of each column, and times, perhaps those of an index."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    return prob, outcome, None if classes is None else list(classes), time


def _exp(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf
