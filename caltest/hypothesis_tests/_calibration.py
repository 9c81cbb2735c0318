"""The main job: an error of calibration, and the test of perfect calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._diagnostics import (
    conditions_text,
    constant_notes,
    hypothesis_text,
    impossible_notes,
    lens_text,
    null_law_text,
    scatter_notes,
    sparsity_notes,
)
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import Region, Sample, make_sample
from caltest.predictions._validation import SeedLike, validate_choice
from caltest.resampling._distributions import Law, ResampledLaw, Tail
from caltest.resampling._draws import Draws
from caltest.resampling._pvalues import draw_nulls, evaluate_components, exact_law, law_pvalue, rank_pvalues
from caltest.resampling._schemes import Consistency
from caltest.results._test_result import CalibrationTestResult, ComponentResult
from caltest.statistics import ECE, Omnibus, Statistic, TemperatureScore

DIRECTION_LEVEL = 0.05  # the temperature score names a direction only where it is significant itself
METHODS = ("auto", "exact", "monte-carlo")
COMPUTED_LAWS = {
    "exact": "law of the statistic computed, predictions fixed (no Monte Carlo error, valid at every n)",
    "asymptotic": "limit of the law as n grows, predictions fixed (no Monte Carlo error, not valid at every n)",
}


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    region: Region | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return an estimate of miscalibration; `ECE()`, equation 6 of the paper, unless told otherwise.

    .. math:: \hat\eta_d = \sum_i \hat p^{(i)} \, d(\hat g^{(i)}, \hat r^{(i)})

    A bare estimate is biased, upwards near calibration, and says little without the noise floor: see
    `calibration_test`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        The estimator; ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``: the set A of the paper to
        which the estimate is restricted.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        The estimate, in the unit of the statistic.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the statistic has no value of its own (`Omnibus`).

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, equation 6.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ece = caltest.ECE(partition=caltest.EqualWidth(15))
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=ece), 10)
    0.0397800669
    """
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region, sample_weight=sample_weight)
    chosen = validate_statistic(ECE() if statistic is None else statistic)
    return float(chosen.evaluate(sample, sample.outcome))


def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    region: Region | None = None,
    resampling: Consistency | None = None,
    n_resamples: int = 9999,
    method: str = "auto",
    workers: int = 1,
    rng: SeedLike = None,
) -> CalibrationTestResult:
    r"""Test the hypothesis that predicted probabilities may be taken at their word.

    The null hypothesis is :math:`P(Y = \cdot \mid g(X)) = g(X)` through the lens (equation 1), or a known calibration
    function. Predictions are held fixed and outcomes redrawn from them B = ``n_resamples`` times; with T the
    statistic,

    .. math:: p = \frac{1 + \#\{b : T_b \ge T_\text{observed}\}}{1 + B}

    which satisfies :math:`P(p \le \alpha) \le \alpha` at every sample size if rows are independent and everything but
    the labels was made without these labels. Predictions pooled over cross-validation folds violate this.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        ``Omnibus()`` by default: an exact min-p over the tree ECE, the temperature score and the class-wise KS.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    resampling : Consistency, optional
        ``Consistency()`` by default: predictions fixed, outcomes redrawn.
    n_resamples : int
        Number of draws B; the smallest attainable p-value is 1 / (B + 1). Not used where nothing is drawn.
    method : {"auto", "exact", "monte-carlo", "asymptotic"}
        How the null law is found: "exact" computes it without drawing anything, for `ECE`, `MCE` and `HosmerLemeshow`
        behind two-outcome lenses with predictions fixed; "auto" does so where it can. "asymptotic" takes the limit as
        n grows, for `KS` and `Kuiper`: not valid at every n, but as small as p-values may get.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    CalibrationTestResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Warns
    -----
    CalibrationWarning
        If predictions are resampled and more than 5 % of the rows lie in cells of fewer than 10 rows, or re-fitted
        partitions differ by more than 5 % in their number of cells: the p-value is then not valid.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, sections 4.2 and 4.3.
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> result.pvalue
    0.001
    >>> result.direction
    'over-confident'
    """
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    scheme = validate_resampling(Consistency() if resampling is None else resampling)
    validate_choice(method, "method", (*METHODS, "asymptotic"))
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    sample = scheme.under_null(sample)
    draws = scheme.draws(n_resamples, rng)
    seen = lens_text(lens, classes)
    if method == "asymptotic":
        limit = None if scheme.resample_predictions else chosen.limit(sample)
        if limit is None:
            msg = f'method="asymptotic" needs KS or Kuiper, predictions fixed; got {chosen}, {scheme}.'
            raise ValueError(msg)
        return conclude_by_law(chosen, sample, limit, "asymptotic", resampling=scheme, lens=seen)
    return run_test(chosen, sample, resampling=scheme, draws=draws, method=method, workers=workers, lens=seen)


def run_test(
    statistic: Statistic,
    sample: Sample,
    *,
    resampling: Consistency,
    draws: Draws,
    method: str,
    workers: int,
    lens: str,
) -> CalibrationTestResult:
    """Test a sample: by the exact law where the method asks for it and there is one, else by draws."""
    chosen = statistic.settle(sample)
    found = exact_law(chosen, sample, resampling, method)
    if found is not None:
        return conclude_by_law(chosen, sample, found, "exact", resampling=resampling, lens=lens)
    observed = evaluate_components(chosen, sample)
    null = draws.map(lambda part: draw_nulls([chosen], sample, part)[0], workers)
    return conclude(chosen, sample, observed, null, resampling=resampling, lens=lens, draws=draws)


def conclude(
    statistic: Statistic,
    sample: Sample,
    observed: NDArray[np.float64],
    null: NDArray[np.float64],
    *,
    resampling: Consistency,
    lens: str,
    draws: Draws,
) -> CalibrationTestResult:
    """Turn observed values ``(n_components,)`` and null values ``(n_components, n_resamples)`` into a result."""
    parts = statistic.components
    part_pvalues, pvalues = rank_pvalues(sample, observed, null)
    laws = [ResampledLaw(draw) for draw in null]
    components = tuple(
        ComponentResult(str(part), float(value), float(p), law, part.derived(float(value), law))
        for part, value, p, law in zip(parts, observed, part_pvalues[:, 0], laws, strict=True)
    )
    if len(parts) == 1:
        value, distribution = float(observed[0]), null[0]
    else:
        smallest = 0.0 - np.log10(part_pvalues.min(axis=0))  # never -0
        value, distribution = float(smallest[0]), smallest[1:]
    score, direction = _direction(parts, components, sample)
    notes = (
        *sparsity_notes(parts, sample, draws),
        *constant_notes(components),
        *scatter_notes(parts, components),
        *impossible_notes(sample),
    )
    return CalibrationTestResult(
        str(statistic),
        value,
        float(pvalues[0]),
        ResampledLaw(distribution),
        components[0].derived if len(parts) == 1 else {},
        components=components,
        method="monte-carlo",
        accuracy=ResampledLaw(distribution).accuracy,
        null_law=null_law_text(resampling, draws),
        score=score,
        direction=direction,
        notes=notes,
        **_context(sample, resampling, lens),
    )


def conclude_by_law(
    statistic: Statistic, sample: Sample, found: tuple[Law, Tail], method: str, *, resampling: Consistency, lens: str
) -> CalibrationTestResult:
    """Turn a null law that is exact, or a limit, and the observed tail into a result."""
    law, tail = found
    value = float(statistic.evaluate(sample, sample.outcome))
    derived = statistic.derived(value, law)
    component = ComponentResult(str(statistic), value, law_pvalue(sample, tail), law, derived)
    return CalibrationTestResult(
        component.name,
        value,
        component.pvalue,
        law,
        derived,
        components=(component,),
        method=method,
        accuracy=str(tail),
        null_law=COMPUTED_LAWS[method],
        notes=(
            *constant_notes([component]),
            *scatter_notes([statistic], [component]),
            *impossible_notes(sample),
        ),
        **_context(sample, resampling, lens),
    )


def _context(sample: Sample, resampling: Consistency, lens: str) -> dict[str, Any]:
    """Return what a result says of the problem, however its law was found."""
    return {
        "lens": lens,
        "n_samples": sample.n_samples,
        "n_outcomes": sample.n_outcomes,
        "hypothesis": hypothesis_text(resampling),
        "conditions": conditions_text(resampling),
        "impossible_rows": sample.impossible,
    }


def validate_statistic(statistic: Any) -> Statistic:
    """Return ``statistic`` if it is one."""
    if isinstance(statistic, Statistic):
        return statistic
    msg = f"`statistic` must be a Statistic such as ECE() or Omnibus(), got {statistic!r}."
    raise ValueError(msg)


def validate_estimate(statistic: Any) -> Statistic:
    """Return ``statistic`` if it is one that has a value of its own."""
    chosen = validate_statistic(statistic)
    if chosen.components == (chosen,):
        return chosen
    msg = f"`{type(chosen).__name__}` combines tests and estimates no error; use a statistic such as ECE()."
    raise ValueError(msg)


def validate_resampling(resampling: Any) -> Consistency:
    """Return ``resampling`` if it is a null hypothesis."""
    if isinstance(resampling, Consistency):
        return resampling
    msg = f"`resampling` must be a Consistency(...), the law under the null hypothesis, got {resampling!r}."
    raise ValueError(msg)


def _direction(
    parts: Sequence[Statistic], components: Sequence[ComponentResult], sample: Sample
) -> tuple[float | None, str | None]:
    for part, component in zip(parts, components, strict=True):
        if isinstance(part, TemperatureScore):
            score = float(part.signed(sample, sample.outcome))
            word = "over-confident" if score < 0 else "under-confident"
            own_pvalue = component.null.sf(component.statistic)  # not the one that an excluded label forces
            return score, word if own_pvalue <= DIRECTION_LEVEL and score != 0 else None
    return None, None
