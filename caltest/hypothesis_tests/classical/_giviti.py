"""The GiViTI calibration test, and the calibration belt: where the polynomial of the test may lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import EventOptions, event_of
from caltest.hypothesis_tests._calibration import calibration_test, look_at
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.hypothesis_tests._diagnostics import describe_answer
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._validation import validate_choice, validate_level
from caltest.resampling import Consistency
from caltest.resampling.distributions._forward_selection import ForwardSelection
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import TestOptions, drawing_of
from caltest.resampling.engine._pvalues import tail_pvalue
from caltest.resampling.engine._run import Answer, run
from caltest.results import Note, Result, TestResult
from caltest.results._decision import NO_PROOF, equate_pvalue, rejects, show_pvalue
from caltest.results._description import Description, counted, percent
from caltest.results._picture import Picture
from caltest.results._verdict import Judged
from caltest.statistics import GiViTI
from caltest.statistics._logistic_curves import LogisticCurves, expit
from caltest.statistics._logistic_polynomials import LogisticPolynomials, fit_polynomials
from caltest.statistics._recalibration_scores import logits_of

_FITTED = 1.0  # by which a penalty may leave the likelihood below that of the best intercept and slope


@reads_arguments
def giviti_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: str = "external",
    threshold: float = 0.95,
    method: str = "monte-carlo",
    **options: Unpack[TestOptions],
) -> ClassicalTestResult:
    r"""Perform the GiViTI calibration test, the likelihood ratio of a polynomial whose degree is selected.

    The model is :math:`\operatorname{logit} P(Y = 1 \mid p) = \sum_{j \le m} \beta_j (\operatorname{logit} p)^j`, with
    the hypothesis that this is :math:`\operatorname{logit} p`. The degree m rises up to 4 as long as one more power
    improves the likelihood significantly; `GiViTI` has the definition. The p-value accounts for the selection.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.
    kind : {"external", "internal"}
        Whether the labels are new, or a logistic regression was fitted to them. The latter has already adapted
        intercept and slope: degrees begin at 2, and the limit has one degree of freedom instead of two. It needs
        ``method="asymptotic"``, because labels that were fitted to cannot be simulated from predictions.
    threshold : float
        Share of chi-squared(1) that an improvement must exceed for one more power.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels, predictions fixed: the p-value is valid at
        every sample size. "asymptotic" is the limit of the statistic over all degrees; it needs many events and
        non-events. R's givitiR takes the distribution given the selected degree, which is another valid p-value:
        that of `giviti_belt`.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. ``selected_degree`` and ``coefficients (degree + 1,)``,
        from the intercept on, are attributes; those of a calibrated model are 0, 1, 0, ...

    Raises
    ------
    TypeError
        If ``lens`` is no lens or ``region`` no function.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``kind`` or ``method``
        is unknown; if ``kind="internal"`` comes without ``method="asymptotic"``, with fewer than three different
        predictions or with labels that no logistic regression was fitted to; if ``threshold`` or ``alpha`` is not
        strictly between 0 and 1, or ``n_resamples`` < 1.

    See Also
    --------
    giviti_belt : The fitted polynomial with its 80 % and 95 % belts.
    cox_test : Intercept and slope, with predictions of 0 and 1.
    caltest.statistics.ICI : Mean distance to a smooth curve.
    hosmer_lemeshow_test : Deviations within groups of predictions.

    References
    ----------
    G. Nattino, S. Finazzi and G. Bertolini (2014), A new calibration test and a reappraisal of the calibration belt for
    the assessment of prediction models based on dichotomous outcomes, Statistics in Medicine 33, 2390-2407.

    Examples
    --------
    Risks whose squares are right:

    >>> import caltest
    >>> import numpy as np
    >>> from caltest.hypothesis_tests import giviti_test
    >>> y_prob = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 100)
    >>> y_true = (np.tile(np.arange(100), 5) < 100 * y_prob**2).astype(int)
    >>> result = giviti_test(y_true, y_prob, method="asymptotic")
    >>> round(result.statistic, 2), result.selected_degree, f"{result.pvalue:.1e}"
    (88.55, 1, '6.0e-18')
    """
    validate_choice(kind, "kind", ("external", "internal"))
    validate_choice(method, "method", ("monte-carlo", "asymptotic"))
    statistic = GiViTI(1 if kind == "external" else 2, threshold=threshold)
    if kind == "external":
        found: TestResult = calibration_test(y_true, y_prob, statistic=statistic, method=method, **options)
        return found.extend(ClassicalTestResult, title="GiViTI test", kind=kind)
    if method != "asymptotic":
        refuse(f'`method` must be "asymptotic" for kind="internal", got {method!r}.')
    sample, look = look_at(statistic, y_true, y_prob, options)
    null = Consistency()
    answer = run([Question(statistic, LensView(sample))], sample, null, method=method, **drawing_of(options, sample))
    found = describe_answer(
        _under(answer.answers[0], limit_of_fitted(sample, threshold)),
        null,
        lens=look,
        classes=options["classes"],
        alpha=options["alpha"],
        title="GiViTI test",
    )
    return found.extend(ClassicalTestResult, kind=kind)


def limit_of_fitted(sample: Sample, threshold: float) -> ForwardSelection:
    """Return the limit for labels that a logistic regression was fitted to; refuse where there is none."""
    external = GiViTI(2, threshold=threshold).asymptotic_distribution(sample)
    if not isinstance(external, ForwardSelection) or external.degrees_of_freedom < 3:
        refuse(
            'kind="internal" needs three different predictions other than 0 and 1: intercept and slope were fitted to '
            "the labels, and fewer leave nothing to test."
        )
    line = float(GiViTI(1, 1).evaluate(sample, sample.outcome))
    if line > _FITTED:
        refuse(
            'kind="internal" is for predictions of a logistic regression that was fitted to these labels, whose '
            f"intercept and slope are 0 and 1; twice the log-likelihood of others is larger by {line:.3g} here. Use "
            'kind="external" for new labels.'
        )
    return ForwardSelection(external.degrees_of_freedom - 2, external.most_added, threshold)


def _under(answer: Answer, null: ForwardSelection) -> Answer:
    """Return an answer with another limit."""
    tail = null.tail(answer.value)
    pvalue = tail_pvalue(answer.sample, tail.probability)
    one = np.array([pvalue])
    return replace(answer, null=null, pvalue=pvalue, component_pvalues=one, component_nulls=(null,), tail=tail)


_HALF = 100  # points that are equally spaced in the probability, and in the logit
_FEWEST_EVENTS = 10
_SINGULAR = 1e-9  # information that is left where labels are separated, as a share of that of the predictions
_STAGES = (1, 8, 64)  # in which a region grows from the estimate, if fewer do not suffice
_MOST_STEPS, _SOLVED, _LONGEST, _RIDGE = 40, 1e-9, 2.0, 1e-12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GivitiBelt(Judged, Result):
    """Result of `giviti_belt`; one entry per point of the probability axis, in increasing order.

    Attributes
    ----------
    prediction : array of shape (n_points,)
        Predicted probabilities, from the smallest to the largest one other than 0 and 1.
    curve : array of shape (n_points,)
        The fitted polynomial, as a probability.
    lower, upper : array of shape (n_points,)
        The outer belt.
    inner_lower, inner_upper : array of shape (n_points,)
        The inner belt.
    confidence_level, inner_level : float
        Their levels.
    statistic, pvalue, alpha : float
        The GiViTI statistic, its p-value given the degree, and 1 - ``confidence_level``.
    unconditional_pvalue : float
        P-value over all degrees that could be selected: that of ``giviti_test(..., method="asymptotic")``.
    selected_degree : int
        Degree of the polynomial.
    coefficients : array of shape (degree + 1,)
        Its coefficients, from the intercept on; those of a calibrated model are 0, 1, 0, ...
    kind : str
        "external" or "internal".
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples, n_events, n_left_out : int
        Number of observations and of events, and of predictions of exactly 0 and 1, which have no logit.

    See Also
    --------
    giviti_belt : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> belt = caltest.hypothesis_tests.giviti_belt(y_true, y_prob[:, 1])
    >>> belt.selected_degree, belt.rejected, bool((belt.lower <= belt.upper).all())
    (1, True, True)
    """

    prediction: Floats
    curve: Floats
    lower: Floats
    upper: Floats
    inner_lower: Floats
    inner_upper: Floats
    confidence_level: float
    inner_level: float
    statistic: float
    pvalue: float
    unconditional_pvalue: float
    alpha: float
    selected_degree: int
    coefficients: Floats
    kind: str
    lens: LensLike
    lens_name: str
    n_samples: int
    n_events: int
    n_left_out: int

    plot = Picture("plot_giviti_belt")
    _derived: ClassVar[tuple[str, ...]] = ("rejected", "too_high", "too_low", "conclusion", "notes")
    _columns: ClassVar[tuple[str, ...]] = ("prediction", "curve", "lower", "upper", "inner_lower", "inner_upper")

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions about the data."""
        notes = list(self._input_notes)
        fewer = min(self.n_events, self.n_samples - self.n_events)
        if fewer < _FEWEST_EVENTS:
            which = "events" if fewer == self.n_events else "observations without the event"
            text = f"Only {fewer} {which}: belts need many. Use giviti_test, whose p-value is valid with few."
            notes.append(Note("C213", text))
        if self.rejected != bool(rejects(self.unconditional_pvalue, self.alpha)):
            text = (
                f"The p-value given the selected degree {self.selected_degree}, to which the belts belong, is "
                f"{show_pvalue(self.pvalue)}; over all degrees, as in giviti_test, it is "
                f"{show_pvalue(self.unconditional_pvalue)}. They "
                "decide differently. Both are valid if one is chosen before the labels are seen."
            )
            notes.append(Note("C220", text))
        if self.n_left_out:
            many = counted(self.n_left_out, "prediction")
            notes.append(Note("C501", f"{many} of exactly 0 or 1, without a logit, left out of the belts."))
        return tuple(notes)

    @property
    def too_high(self) -> list[tuple[float, float]]:
        """Intervals of predictions for which the outer belt lies below the diagonal: they are too high."""
        return _runs(self.prediction, self.upper - self.prediction)

    @property
    def too_low(self) -> list[tuple[float, float]]:
        """Intervals of predictions for which the outer belt lies above the diagonal: they are too low."""
        return _runs(self.prediction, self.prediction - self.lower)

    @property
    def conclusion(self) -> str:
        """The decision in words, with the predictions that are too low and too high."""
        p = equate_pvalue(self.pvalue)
        if not self.rejected:
            return f"Calibration is not rejected ({p}). {NO_PROOF}"
        if np.isinf(self.statistic):
            return f"Calibration is rejected ({p}): a label had been given probability 0. The belts leave it out."
        where = [
            f"too {word} from {' and '.join(f'{a:.3g} to {b:.3g}' for a, b in runs)}"
            for word, runs in (("low", self.too_low), ("high", self.too_high))
            if runs
        ]
        if not where:
            return f"Calibration is rejected ({p}), but the belt contains the diagonal everywhere."
        return f"Calibration is rejected ({p}): predictions are {', and '.join(where)}."

    def _describe(self) -> Description:
        levels = f"{percent(self.inner_level)} and {percent(self.confidence_level)}"
        size = f"{self.lens_name}, {counted(self.n_samples)}, {counted(self.n_events, 'event')}"
        fitted = "new labels" if self.kind == "external" else "labels that the model was fitted to"
        return Description(
            f"GiViTI calibration belt ({size})",
            [self.conclusion],
            remarks=[
                f"Polynomial of the logit of degree {self.selected_degree}, for {fitted}. Belts of {levels}: points of "
                "all polynomials of this degree that the likelihood ratio does not reject.",
                "Belts and p-value are limits for many events, given the degree. Over all degrees, as in giviti_test, "
                f"the p-value is {show_pvalue(self.unconditional_pvalue)}.",
            ],
        )


@reads_arguments
def giviti_belt(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: str = "external",
    threshold: float = 0.95,
    confidence_level: float = 0.95,
    inner_level: float = 0.8,
    **options: Unpack[EventOptions],
) -> GivitiBelt:
    r"""Compute the GiViTI calibration belt: a polynomial of the logit with two confidence belts (Nattino et al. 2014).

    With the polynomial and the degree m that `giviti_test` selects, a belt at the prediction p has all values

    .. math:: \sum_{j \le m} \beta_j (\operatorname{logit} p)^j \quad \text{with} \quad
              2 \bigl(\ell(\hat\beta) - \ell(\beta)\bigr) \le k,

    as probabilities, where k is the quantile of the statistic's limit given that the degree m was selected. So the
    region of coefficients excludes a calibrated model exactly if the p-value, from the same distribution, is below 1
    minus the level. These are the belts and the p-value of R's givitiR and of Stata's calibrationbelt.

    Parameters
    ----------
    kind : {"external", "internal"}
        Whether the labels are new, or a logistic regression was fitted to them, as for `giviti_test`.
    threshold : float
        Share of chi-squared(1) that an improvement must exceed for one more power.
    confidence_level, inner_level : float
        Levels of the outer and of the inner belt.

    Returns
    -------
    GivitiBelt
        The curve, the belts and where they exclude the diagonal, with ``to_frame()`` and ``plot()``.

    Raises
    ------
    TypeError
        If ``lens`` is no lens or ``region`` no function.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``kind`` is unknown; if
        ``kind="internal"`` comes with labels that no logistic regression was fitted to; if a level is not strictly
        between 0 and 1, or ``inner_level`` not below ``confidence_level``; if all predictions are 0 or 1, or all
        labels equal; if the polynomial separates the labels, so that it has no estimate.

    See Also
    --------
    giviti_test : The test, with simulated labels.
    caltest.calibration_band : A band that assumes only that the calibration function does not decrease.

    Notes
    -----
    The belts are a limit for many events and non-events, and hold if the calibration function is such a polynomial.
    The region holds the coefficients together, so that a belt is simultaneous over all predictions and wider than
    needed at a single one. Nothing is simulated.

    References
    ----------
    G. Nattino, S. Finazzi and G. Bertolini (2014), A new calibration test and a reappraisal of the calibration belt for
    the assessment of prediction models based on dichotomous outcomes, Statistics in Medicine 33, 2390-2407.

    Examples
    --------
    Risks whose squares are right:

    >>> import numpy as np
    >>> from caltest.hypothesis_tests import giviti_belt
    >>> y_prob = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 100)
    >>> y_true = (np.tile(np.arange(100), 5) < 100 * y_prob**2).astype(int)
    >>> belt = giviti_belt(y_true, y_prob)
    >>> belt.selected_degree, belt.too_low, [(round(a, 2), round(b, 2)) for a, b in belt.too_high]
    (1, [], [(0.1, 0.9)])
    """
    validate_choice(kind, "kind", ("external", "internal"))
    statistic = GiViTI(1 if kind == "external" else 2, threshold=threshold)
    outer, inner = validate_level(confidence_level, "confidence_level"), validate_level(inner_level, "inner_level")
    refuse_if(inner >= outer, f"`inner_level` must be below `confidence_level`, {outer:g}, got {inner:g}.")
    sample, about = event_of(y_true, y_prob, options)
    happened = int(np.count_nonzero(sample.outcome))
    refuse_if(
        happened in (0, sample.n_samples),
        f"`y_true` must hold events and other observations, got {counted(happened, 'event')} among {sample.n_samples}; "
        "giviti_test tests such predictions.",
    )
    limit = limit_of_fitted(sample, threshold) if kind == "internal" else statistic.asymptotic_distribution(sample)
    if not isinstance(limit, ForwardSelection):
        refuse("`y_prob` must hold predictions other than 0 and 1, whose logit is infinite, got no other.")
    (ratio,), (degree,) = statistic.selected(sample, sample.outcome[None])
    added = min(max(int(degree) - statistic.first_degree, 0), limit.most_added)
    polynomials = sample.of_predictions(fit_polynomials, statistic.last_degree)
    finite = sample.outcome[None, np.isfinite(logits_of(sample.prob))]
    sums = polynomials.sums(finite)[0, : degree + 1]
    (coefficient,), _ = polynomials.fit(finite, int(degree))
    low, high = polynomials.logit.min(), polynomials.logit.max()
    grid = np.linspace([low, expit(low)], [high, expit(high)], _HALF)
    x = np.unique(np.append(grid[:, 0], np.log(grid[:, 1]) - np.log1p(-grid[:, 1])).clip(low, high))
    reach = [limit.quantile_given(added, level) for level in (outer, inner)]
    ends = expit(_belts(polynomials, coefficient, sums, x, np.array(reach)))
    return GivitiBelt(
        prediction=expit(x),
        curve=expit(polynomials.powers(x)[:, : degree + 1] @ coefficient),
        lower=ends[0, 0],
        upper=ends[0, 1],
        inner_lower=ends[1, 0],
        inner_upper=ends[1, 1],
        confidence_level=outer,
        inner_level=inner,
        statistic=float(ratio),
        pvalue=limit.sf_given(added, float(ratio)),
        unconditional_pvalue=limit.sf(float(ratio)),
        alpha=1 - outer,
        selected_degree=int(degree),
        coefficients=polynomials.of_logit(coefficient),
        kind=kind,
        n_samples=sample.n_samples,
        n_events=happened,
        n_left_out=sample.n_samples - finite.size,
        **about,
    )


def _belts(polynomials: LogisticPolynomials, coefficient: Floats, sums: Floats, x: Floats, reach: Floats) -> Floats:
    """Return the smallest and the largest logits ``(n_levels, 2, n_points)`` at logits x in regions of a reach."""
    degree = len(coefficient) - 1
    curves = polynomials.curves[degree]
    start = coefficient[: len(curves.start)]
    prob = expit(curves.design @ start)
    information = (curves.design.T * (curves.weight * prob * (1 - prob))) @ curves.design
    if np.linalg.eigvalsh(information)[0] < _SINGULAR:
        refuse(
            f"`y_true` is separated by the polynomial of degree {degree}, so that it has no estimate; the belt needs "
            "labels that overlap. Use giviti_test, which does not."
        )
    root = np.linalg.inv(np.linalg.cholesky(information)).T  # in these terms the regions are almost balls
    place = polynomials.powers(x)[:, : len(start)] @ root
    direction = np.concatenate([-place, place])
    around = LogisticCurves(curves.design @ root, np.asarray(np.linalg.solve(root, start)), curves.weight)
    shift = np.concatenate([_extremes(around, sums[: len(start)] @ root, direction, one) for one in reach])
    if polynomials.are_steep((around.start + shift) @ around.design.T).any():
        return _belts(polynomials.of_all_values, coefficient, sums, x, reach)
    logit = ((around.start + shift) * np.tile(direction, (len(reach), 1))).sum(axis=1)
    return np.asarray(logit.reshape(len(reach), 2, -1) * np.array([[-1.0], [1.0]]))


def _extremes(curves: LogisticCurves, own: Floats, direction: Floats, reach: float) -> Floats:
    r"""Return where coefficients reach furthest in directions ``(n, n_features)``, as differences from the start.

    ``own (n_features,)`` are the sums of the design over the events.

    They solve :math:`\nabla \ell + \mu d = 0` and :math:`2 (\ell(\hat\beta) - \ell) = k` by Newton's method, from
    the ball that the region is in the limit.
    """
    fitted = curves.design @ curves.start
    base = np.logaddexp(0.0, fitted)
    product = (curves.design[:, :, None] * curves.design[:, None, :]).reshape(len(curves.design), -1)
    n_features = len(own)
    unit = direction / np.sqrt(np.square(direction).sum(axis=1, keepdims=True))
    for stages in _STAGES:
        shift = unit * (np.sqrt(reach) / stages)
        for stage in range(1, stages + 1):
            target = reach * (stage / stages) ** 2
            shift = shift * (stage / max(stage - 1, 1))
            for _ in range(_MOST_STEPS):
                moved = shift @ curves.design.T
                prob = expit(fitted + moved)
                gradient = own - (prob * curves.weight) @ curves.design
                lost = 2 * ((np.logaddexp(0.0, fitted + moved) - base) @ curves.weight - shift @ own)
                information = ((prob * (1 - prob) * curves.weight) @ product).reshape(-1, n_features, n_features)
                information += _RIDGE * np.eye(n_features)
                both = np.linalg.solve(information, np.stack([gradient, direction], axis=-1))
                ascent, along = both[:, :, 0], both[:, :, 1]
                slope = (gradient * along).sum(axis=1)
                multiplier = ((lost - target) / 2 - (gradient * ascent).sum(axis=1)) / slope
                step = ascent + multiplier[:, None] * along
                longest = np.abs(step @ curves.design.T).max(axis=1)
                shift = shift + step * np.minimum(1.0, _LONGEST / np.maximum(longest, _LONGEST))[:, None]
                if not longest.max() >= _SOLVED:
                    break
        found = (longest < _SOLVED).all() and (slope < 0).all()  # a maximum, not a minimum
        if found:
            break
    refuse_if(not found, "`y_true` is nearly separated by the polynomial: the belt has no ends; use giviti_test.")
    return shift


def _runs(x: Floats, height: Floats) -> list[tuple[float, float]]:
    """Return the intervals of x in which a height is negative, its zeros found by linear interpolation."""
    below = height < 0
    runs = []
    for start in np.flatnonzero(below & ~np.append(False, below[:-1])):
        stop = start + int(np.argmin(np.append(below[start:], False))) - 1
        ends = [x[start], x[stop]]
        for k, (inside, outside) in enumerate(((start, start - 1), (stop, stop + 1))):
            if 0 <= outside < len(x):
                share = height[inside] / (height[inside] - height[outside])
                ends[k] = x[inside] + share * (x[outside] - x[inside])
        runs.append((float(ends[0]), float(ends[1])))
    return runs
