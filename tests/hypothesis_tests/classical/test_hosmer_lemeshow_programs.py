"""Numbers that other programs printed: hoslem.test of ResourceSelection, performance and ebrahim.gof."""

import numpy as np
import pytest
from scipy import stats

import caltest
from caltest.hypothesis_tests import hosmer_lemeshow_test, spiegelhalter_test
from tests.reference import recipes
from tests.reference.cases import mostly_slow
from tests.reference.recipes import as_printed

PRINTED = {  # statistic, degrees of freedom and p-value, as they are printed
    "manual of ResourceSelection": (recipes.resource_selection, 10, "4.5227", 8, "0.8072"),
    "thestatsgeek.com": (recipes.stats_geek, 10, "7.4866", 8, "0.4851"),
    "modeldiag, mtcars": (lambda: recipes.mtcars("am", "wt", "hp"), 6, "2.3502", 4, "0.6717"),
    "performance, mtcars": (lambda: recipes.mtcars("vs", "wt", "mpg"), 10, "5.137", 8, "0.743"),
    "ebrahim.gof, gof_demo": (recipes.gof_demo, 10, "15.52", 8, "0.0499"),
    "ebrahim.gof, 5 groups": (recipes.uniform_feature, 5, "1.99", 3, "0.5745"),
    "ebrahim.gof, 10 groups": (recipes.uniform_feature, 10, "3.423", 8, "0.9051"),
    "ebrahim.gof, 20 groups": (recipes.uniform_feature, 20, "7.616", 18, "0.9838"),
    "ebrahim.gof, no square": (lambda: recipes.uniform_feature(bent=True), 10, "74.8", 8, "5.4e-13"),
}


@pytest.mark.parametrize("name", mostly_slow(PRINTED, kept=3))
def test_printed_numbers(name):
    """The first three are of ``hoslem.test`` itself (modeldiag calls it), the others of the same groups elsewhere.

    Groups end at R's quantiles, and the p-value has two degrees of freedom less than for new labels.
    """
    data, groups, statistic, freedom, pvalue = PRINTED[name]
    y, p = data()
    edges = caltest.Edges(np.quantile(p, np.arange(1, groups) / groups), closed="right")
    found = hosmer_lemeshow_test(y, p, partition=edges, covariance="mean", method="asymptotic")
    assert as_printed(found.statistic, statistic) == statistic
    assert found.degrees_of_freedom - 2 == freedom
    assert as_printed(stats.chi2(freedom).sf(found.statistic), pvalue) == pvalue


def test_risks_of_a_published_model():
    """``run.all.external`` of ebrahim.gof: new labels, for which 10 groups have 10 degrees of freedom there too."""
    y, p = recipes.frozen()
    groups = hosmer_lemeshow_test(y, p, covariance="mean", method="asymptotic")
    z = spiegelhalter_test(y, p, method="asymptotic")
    assert groups.degrees_of_freedom == 10
    for found, printed in ((groups, ("24.66", "0.0060")), (z, ("1.565", "0.1176"))):
        assert (as_printed(found.statistic, printed[0]), as_printed(found.pvalue, printed[1])) == printed
