"""Several p-values at once: corrections that control the probability of any false rejection."""

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
    """Return p-values ``(n_tests,)`` corrected so that the smallest is at most alpha with probability alpha at most.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        Each valid by itself.
    correction : str
        A method of ``statsmodels.stats.multitest``.
    allowed : sequence of str
        Those that hold for these tests; without independence "holm" and "bonferroni".
    """
    validate_choice(correction, "correction", allowed)
    from statsmodels.stats.multitest import multipletests

    with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
        return np.asarray(multipletests(np.asarray(pvalues), method=correction)[1])
