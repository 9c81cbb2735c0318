"""The GiViTI calibration test."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import calibration_test, look_at
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.hypothesis_tests._diagnostics import describe_answer
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_choice
from caltest.resampling import Consistency
from caltest.resampling.distributions._forward_selection import ForwardSelection
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import TestOptions, drawing_of
from caltest.resampling.engine._pvalues import tail_pvalue
from caltest.resampling.engine._run import Answer, run
from caltest.results import TestResult
from caltest.statistics import GiViTI

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
