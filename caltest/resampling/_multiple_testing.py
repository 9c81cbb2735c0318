"""Multiple testing: corrections of p-values that control the probability of any false rejection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._validation import validate_choice

UNDER_ANY_DEPENDENCE = ("holm", "bonferroni")
UNDER_INDEPENDENCE = ("holm-sidak", "sidak", "simes-hochberg", "hommel")


def correct_pvalues(
    pvalues: ArrayLike,
    correction: str = "holm",
    allowed: Sequence[str] = UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE,
) -> NDArray[np.float64]:
    r"""Return p-values adjusted for their number, with control of the probability of any false rejection.

    If all null hypotheses are true, the smallest adjusted p-value is at most :math:`\alpha` with probability
    :math:`\alpha` at most. Holm's, of sorted p-values :math:`p_{(1)} \le \dots \le p_{(m)}`, are

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        P-values, each of which is valid by itself.
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
        A method of ``statsmodels.stats.multitest``. "holm" and "bonferroni" hold under any dependence of the tests, the
        others if the tests are independent.
    allowed : sequence of str
        The corrections that hold for these tests.

    Returns
    -------
    array of shape (n_tests,)
        Adjusted p-values, in the order of ``pvalues``.

    Raises
    ------
    TypeError
        If ``correction`` is no text.
    ValueError
        If ``correction`` is not allowed, or ``pvalues`` has values outside [0, 1].

    References
    ----------
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics.

    Examples
    --------
    >>> correct_pvalues([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    validate_choice(correction, "correction", allowed)
    values = np.asarray(pvalues, dtype=np.float64)
    if not np.all((values >= 0) & (values <= 1)):
        msg = f"`pvalues` must lie in [0, 1], got {values[~((values >= 0) & (values <= 1))][0]}."
        raise ValueError(msg)
    # By hand, because statsmodels takes a second and 90 MB to import, and every table needs them.
    if correction == "holm":
        return _holm(values)
    if correction == "bonferroni":
        return np.minimum(len(values) * values, 1.0)
    from statsmodels.stats.multitest import multipletests

    with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
        return np.asarray(multipletests(values, method=correction)[1])


def _holm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return adjusted
