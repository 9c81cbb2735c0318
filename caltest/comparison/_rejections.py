"""For which of several models calibration is rejected, in words: of models, and of models in folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, CombinedPValues
from caltest.results import TestResult
from caltest.results._decision import cannot_decide, equate_pvalue, rejects
from caltest.results._description import join

CORRECTIONS = (*UNDER_ANY_DEPENDENCE, *UNDER_INDEPENDENCE, "fdr_bh", "fdr_by")
"""Corrections that `compare_models` knows."""


def rejections(
    names: Sequence[str],
    adjusted: NDArray[np.float64],
    tests: Sequence[Sequence[TestResult]],
    *,
    alpha: float,
    correction: str,
) -> str:
    """Return for which models calibration is rejected, or that the data or the draws cannot decide.

    Parameters
    ----------
    names : sequence of str
        The models.
    adjusted : array of shape (n_models,)
        Their adjusted p-values.
    tests : sequence of sequences of TestResult
        The tests of each model, one for each fold.
    alpha, correction : float, str
        Level, and how p-values are adjusted for the number of models.
    """
    rejected = [name for name, p in zip(names, adjusted, strict=True) if rejects(p, alpha)]
    others = [name for name in names if name not in rejected]
    if rejected:
        return f"Calibration is rejected for {join(rejected)}{f', but not for {join(others)}' if others else ''}."
    n_folds = len(tests[0])
    least = [test.smallest_possible_pvalue for of_model in tests for test in of_model]
    combined = [CombinedPValues(n_folds).pvalue([test.smallest_possible_pvalue for test in one]) for one in tests]
    smallest = float(correct_pvalues(combined, correction, CORRECTIONS).min())
    if rejects(smallest, alpha):
        return f"Calibration is rejected for none of the {len(names)} models, which does not prove calibration."
    first = tests[0][0]
    n_groups = None if first.n_groups is None else max(test.n_groups or 0 for of_model in tests for test in of_model)
    folds = f" in {n_folds} folds" if n_folds > 1 else ""
    return cannot_decide(
        smallest,
        alpha,
        numbers=(
            f"{equate_pvalue(float(adjusted.min()), name='smallest adjusted p')}, calibration of {len(names)} models"
            f"{folds}"
        ),
        n_groups=n_groups,
        n_resamples=first.n_resamples,
        unadjusted=min(least),
        name="adjusted p-value",
        where=" in a fold" if folds else "",
    )
