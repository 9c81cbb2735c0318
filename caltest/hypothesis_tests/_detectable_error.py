"""The smallest errors of predictions that a test finds, from the predictions and their number alone."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._alike_labels import AlikeLabels
from caltest.hypothesis_tests._detectable_error_result import USUAL_POWER, DetectableError
from caltest.hypothesis_tests._detection import Detection, sample_of
from caltest.hypothesis_tests._power_curve import validate_power
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import (
    refuse_if,
    validate_count,
    validate_design,
    validate_number,
    validate_prob,
)
from caltest.resampling.engine._options import DetectionOptions
from caltest.results._progress import reporting
from caltest.statistics import Omnibus


@reads_arguments
def detectable_error(
    y_prob: ArrayLike,
    *,
    power: float = USUAL_POWER,
    n_samples: int | None = None,
    icc: float = 0.0,
    **options: Unpack[DetectionOptions],
) -> DetectableError:
    r"""Compute the smallest errors that `calibration_test` finds with some probability (no labels needed).

    Errors that people make are looked at, each in both directions. With predictions p and an amount t the true
    probabilities are

    .. math:: \operatorname{logit} \pi = \operatorname{logit} p + t, \qquad
              \operatorname{logit} \pi = a + e^t \operatorname{logit} p, \qquad
              \pi_k \propto p_k^{1 / e^t}:

    a shift (of several classes, of the odds of the most frequent one); for two outcomes a slope, with the a that keeps
    the mean; for several classes a temperature. The default test is made on labels that are simulated from
    :math:`\pi`, with the critical value that its draws from p have. The power is fitted as :math:`\Phi(a + b t)` to
    data sets at about ten amounts, 3,600 of them near the answer, which is the t where the fit reaches ``power``. Data
    that do not reject calibration show no more than that the error is smaller than about this.

    With ``groups`` the test is the one with groups: each data set must be rejected by its own random signs too. Labels
    of a group are drawn with the intraclass correlation ``icc``, by latent normal variables that share a shock within
    the group. It cannot be known without labels. The default, 0, is the best case; an answer of `calibration_test`
    estimates it from its labels. With weights the test is the weighted one, and so are all averages.

    Parameters
    ----------
    power : float
        Probability with which the error is found, larger than ``alpha``.
    n_samples : int, optional
        Number of observations; by default as many as there are predictions. For another number, as many are taken at
        equal steps from the predictions in their order; those of more observations repeat. Not with groups or weights.
    icc : float
        Intraclass correlation of the labels of a group, from 0 to 1: the mean correlation of the residuals of two of
        its observations. Groups of m observations are then worth :math:`1 + (m - 1)\,\mathrm{icc}` times fewer (the
        design effect), if all predictions are equally wrong. Published ones of patients in centres are mostly .01 to
        .1. Labels with unequal probabilities cannot have any; then they have the largest that they can.
    alpha : float
        Level of the test.

    Returns
    -------
    DetectableError
        The smallest error of each kind: its size, and the mean absolute change of the probability in percentage points.

    Raises
    ------
    TypeError
        If ``n_samples``, ``icc``, ``power`` or ``alpha`` is no number.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``power`` or ``alpha`` is not strictly
        between 0 and 1, or ``power`` not larger than ``alpha``; if ``n_samples`` or ``n_resamples`` < 1,
        or ``n_samples`` is given with groups or weights; if ``icc`` is not between 0 and 1, or given without groups.

    See Also
    --------
    caltest.simulation.sample_size : The number of observations that any test needs against a model of known truth,
        whose predictions are drawn too.
    caltest.simulation.power_study : Power against models, by the amount of their miscalibration.
    equivalence_test : Is the error shown to be smaller than a margin? It needs labels.
    noise_floor : What chance alone shows on these predictions.

    References
    ----------
    J. M. Hoenig and D. M. Heisey (2001), The abuse of power: the pervasive fallacy of power calculations for data
    analysis, The American Statistician 55, 19-24: power is computed for errors of a size that matters, never for the
    error that was observed.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> y_prob = np.random.default_rng(0).beta(2, 6, 2000)
    >>> found = caltest.detectable_error(y_prob, n_resamples=999, rng=0)
    >>> [(error.kind, round(error.points)) for error in found.errors]
    [('too low', 3), ('too high', 3), ('too extreme', 2), ('not extreme enough', 2)]
    """
    power = validate_power(power, options["alpha"])
    prob = validate_prob(y_prob)
    design = validate_design(options["sample_weight"], options["groups"], len(prob))
    number = len(prob) if n_samples is None else validate_count(n_samples, "n_samples")
    designed = any(part is not None for part in design.values())
    refuse_if(designed and number != len(prob), "`n_samples` is for observations without `groups` and `sample_weight`.")
    icc = validate_number(icc, "icc", 0.0, 1.0)
    refuse_if(icc and options["groups"] is None, f"`icc` is that of the labels of a group: give `groups`, got {icc:g}.")
    own: dict[str, Any] = {name: options[name] for name in ("alpha", "n_resamples", "workers", "rng")}
    sample = induce(prob, np.zeros(len(prob), dtype=np.int64), **design) if designed else sample_of(prob, number)
    alike = None if sample.group is None else AlikeLabels(sample, icc)
    with reporting(options["progress"], "simulating labels") as report:
        return Detection.of_either(Omnibus(), sample, alike=alike, **own).result(power, report)
