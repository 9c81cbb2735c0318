"""Corrections of several p-values."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from caltest.comparison._model_comparison import CORRECTIONS
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE
from tests.reference.cases import check_refused


def test_by_hand():
    pvalues = [0.01, 0.04, 0.03, 1.0]
    np.testing.assert_allclose(correct_pvalues(pvalues), [0.04, 0.09, 0.09, 1.0])
    np.testing.assert_allclose(correct_pvalues(pvalues, "bonferroni"), [0.04, 0.16, 0.12, 1.0])
    np.testing.assert_allclose(correct_pvalues(pvalues, "sidak"), 1 - (1 - np.array(pvalues)) ** 4)
    np.testing.assert_allclose(correct_pvalues(pvalues, "simes-hochberg"), [0.04, 0.08, 0.08, 1.0])
    for correction in UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE:
        assert correct_pvalues([0.3], correction).tolist() == [pytest.approx(0.3)], correction
        assert np.all(correct_pvalues(pvalues, correction) >= pvalues), correction
        assert correct_pvalues([1.0, 1.0], correction).tolist() == [1.0, 1.0], correction


def test_refusals():
    check_refused(correct_pvalues, ValueError, "`correction` must be one of 'holm', 'bonferroni',", [0.1], "fdr_bh")
    check_refused(correct_pvalues, TypeError, "`correction` must be one of 'holm', 'bonferroni',", [0.1], None)
    message = "`correction` must be one of 'holm', 'bonferroni', got 'sidak'."
    check_refused(correct_pvalues, ValueError, message, [0.1], "sidak", UNDER_ANY_DEPENDENCE)
    for wrong in (-0.1, 1.1, np.nan):
        check_refused(correct_pvalues, ValueError, f"`pvalues` must lie in [0, 1], got {wrong}.", [0.5, wrong])


def holm(pvalues):
    """One after the other, from the smallest on."""
    adjusted, largest = [0.0] * len(pvalues), 0.0
    for rank, i in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[i]))
        adjusted[i] = largest
    return adjusted


@pytest.mark.slow(few_draws=True)
def test_equals_the_loop_and_statsmodels():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 30):
        ends = np.append(rng.random(n) * 1e-9, [0.0, 0.0, 1.0])
        for pvalues in (rng.random(n) ** 3, rng.integers(1, 4, n) / 40, 0.9 + rng.random(n) / 10, ends):
            np.testing.assert_allclose(correct_pvalues(pvalues), holm(pvalues.tolist()), rtol=1e-12, err_msg=str(n))
            for correction in CORRECTIONS:
                with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
                    expected = multipletests(pvalues, method=correction)[1]
                found = correct_pvalues(pvalues, correction, CORRECTIONS)
                np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{correction} {n}")


def test_no_test_has_no_pvalue():
    for correction in CORRECTIONS:
        assert correct_pvalues([], correction, CORRECTIONS).tolist() == [], correction
