"""The plain estimate of a calibration error."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from caltest.estimation._options import LookOptions, look_for
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.resampling.engine._evaluation import components
from caltest.resampling.engine._run import settle
from caltest.results._note import warn_user
from caltest.statistics import Statistic


@reads_arguments
def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: Statistic | str | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[LookOptions],
) -> float:
    r"""Estimate the calibration error of predicted probabilities, by default the expected calibration error `ECE`.

    .. math:: \hat\eta_d = \sum_i \hat p^{(i)} \, d(\hat g^{(i)}, \hat r^{(i)})

    sums over cells (bins) the share of the observations times the distance between average prediction and frequencies
    (equation 6 of Vaicenavicius et al. 2019). Most estimates are biased, upwards near calibration: compare them with
    `noise_floor` or use `calibration_test`. `l2_interval` gives an estimate with a confidence interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; by default the whole prediction, or the confidence if the statistic needs two outcomes.
    statistic : Statistic or str, optional
        The estimator; ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``: the set to which the
        estimate is restricted.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.

    Returns
    -------
    float
        The estimate, in the unit of the statistic.

    Raises
    ------
    TypeError
        If ``statistic`` is no statistic, or ``lens`` or ``region`` no function.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown, lengths differ, or weights are
        negative or all 0; if the statistic is a combination of tests (`Omnibus`), or needs two outcomes and the lens
        returns more; if no observation lies in the region.

    Warns
    -----
    CalibrationWarning
        If ties leave a tree fewer than half of the cells that it aims at, so that errors may cancel (note C402).

    See Also
    --------
    l2_interval : Estimate and confidence interval for the l2 calibration error.
    noise_floor : Distribution of the estimate if the model is calibrated.

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
    chosen, sample, _ = look_for(statistic, y_true, y_prob, {**options, "sample_weight": sample_weight})
    for note in few_cells_notes(sample, chosen.partition):
        warn_user(str(note))
    return float(components(settle(chosen, sample), sample, sample.outcome)[0])
