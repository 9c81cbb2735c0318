"""The adaptive T-Cal test: debiased squared errors at all dyadic scales."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import calibration_test
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.resampling.engine._options import NullTestOptions
from caltest.results._description import Table
from caltest.statistics import TCal


@reads_arguments
def tcal_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    **options: Unpack[NullTestOptions],
) -> ClassicalTestResult:
    r"""Perform the adaptive T-Cal test: debiased squared errors over 2, 4, 8, ... cells (Lee et al. 2023).

    .. math:: T_m = \frac1n \sum_{b=1}^m \frac{S_b^2 - \sum_{i \in b} e_i^2}{n_b}, \qquad m = 2, 4, \dots, 2^{\lfloor
              \log_2 n \rfloor}

    with cells (bins) of equal width, :math:`e_i` the residuals, :math:`S_b` their sum and :math:`n_b` their number in
    cell b. Every :math:`T_m` has expectation 0 if the model is calibrated. All scales are evaluated on the same draws
    and combined by an exact min-p, so that the number of cells need not be chosen. The p-value is valid at every sample
    size if predictions are fixed; there is no asymptotic one. `TCal` is the statistic, which `calibration_test` takes
    too.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.

    Returns
    -------
    ClassicalTestResult
        Prints as a report with a row for each number of cells; unpacks as ``statistic, pvalue``. ``statistic`` is
        -log10 of the smallest p-value of the ``components``, one for each number of cells. ``to_frame()`` has a row for
        each: number of cells, debiased squared error, its mean under calibration, and its p-value, which is not
        adjusted for the other numbers of cells.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``n_resamples`` < 1, or
        ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    calibration_test : With ``SquaredL2(estimator="t-cal")``, the test of one number of cells.
    l2_interval : An interval for the squared error.

    References
    ----------
    D. Lee, X. Huang, H. Hassani and E. Dobriban (2023), T-Cal: an optimal test for the calibration of predictive
    models, Journal of Machine Learning Research 24.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.hypothesis_tests.tcal_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> result.pvalue, result.components[-1].test_statistic.partition
    (0.001, EqualWidth(8192))
    >>> len(result.to_frame())
    13
    """
    result = calibration_test(y_true, y_prob, statistic=TCal(), method="monte-carlo", **options)
    parts = result.components
    n_cells = [part.test_statistic.partition.n_cells for part in parts]
    rows = [(f"{m}", *part._row()[1:]) for m, part in zip(n_cells, parts, strict=True)]
    return result.extend(
        ClassicalTestResult,
        title="Adaptive T-Cal test",
        sentences=(),
        table=Table(("cells (bins)", "squared error", "under calibration (5 % to 95 %)", "p-value"), rows),
        columns={
            "n_cells": n_cells,
            "statistic": [part.statistic for part in parts],
            "noise_floor": [part.noise_floor for part in parts],
            "pvalue": [part.pvalue for part in parts],
        },
    )
