"""The equivalence test: its p-value and smallest margin agree, its level at the margin, its power, its words."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from caltest.results._decision import equate_pvalue
from tests.hypothesis_tests.problems import count_rejections, words
from tests.results.printed import printed

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=20)


def shifted(n, shift, rng):
    """Labels of a model that is too low by ``shift`` everywhere."""
    prob = rng.uniform(0.1, 0.8, n)
    return rng.random(n) < prob + shift, prob


@PROFILE
@given(st.integers(0, 10**6), st.floats(0.001, 0.5), st.sampled_from([0.2, 0.05, 0.01]))
def test_the_pvalue_and_the_smallest_margin_agree(seed, margin, alpha):
    y, prob = shifted(300, 0.02 * (seed % 5), np.random.default_rng(seed))
    result = ct.equivalence_test(y, prob, margin, alpha=alpha)
    assert result.rejected == (result.pvalue <= alpha)
    if abs(result.smallest_margin / margin - 1) > 1e-9:
        assert result.rejected == (result.smallest_margin < margin)
    bound = ct.l2_interval(y, prob, confidence_level=1 - alpha, alternative="less").root_interval.high
    assert result.smallest_margin == bound
    if 0 < bound < 1:
        assert ct.equivalence_test(y, prob, bound).pvalue == pytest.approx(alpha)


def rejections(n, shift, repeats, rng):
    """How often an error below its true value is claimed."""
    return count_rejections(lambda _: ct.equivalence_test(*shifted(n, shift, rng), shift).pvalue, repeats)


def at_most(level, repeats):
    """Rejections that a test of this level exceeds with a probability below 1e-4."""
    return stats.binom.isf(1e-4, repeats, level)


@pytest.mark.slow
def test_level_at_the_margin():
    """At most two points above nominal."""
    for shift in (0.03, 0.1):
        assert rejections(500, shift, 300, np.random.default_rng(2)) <= at_most(0.07, 300), shift


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "repeats"), [(200, 1500), (1000, 1000), (10_000, 200)])
def test_level_over_the_range(n, repeats):
    for shift in (0.01, 0.05, 0.15):
        assert rejections(n, shift, repeats, np.random.default_rng(n)) <= at_most(0.07, repeats)


def test_power():
    """A calibrated model with 5,000 observations is shown to be within .05."""
    result = ct.equivalence_test(*shifted(5000, 0.0, np.random.default_rng(0)), 0.05)
    assert result.rejected
    assert result.pvalue < 1e-6


def test_lens_partition_and_region_are_those_of_the_interval():
    y, models = ct.datasets.load_digits_predictions()
    prob = models["logistic_regression"]
    options = {"lens": ct.Confidence(), "partition": ct.EqualMass(5), "region": lambda p: p[:, 1] > 0.5}
    result = ct.equivalence_test(y, prob, 0.2, **options)
    bound = ct.l2_interval(y, prob, alternative="less", **options)
    assert (result.statistic, result.smallest_margin) == (bound.estimate, bound.root_interval.high)
    assert (result.interval.lens, result.interval.partition) == (ct.Confidence(), ct.EqualMass(5))
    assert result.interval.n_samples == (prob.max(axis=1) > 0.5).sum()


# What is printed.


def test_printed():
    y, models = ct.datasets.load_digits_predictions()
    result = ct.equivalence_test(y, models["neural_network"], 0.1)
    expected = """\
Equivalence test (whole prediction, 899 observations, 8 cells (bins))
The typical error within 8 cells is shown to be below 10 points (p = 3.882e-10):
it is at most 2.658 points (95 % confidence). The decision is made at the 5 %
level.

  Typical error: the root of the squared l2 calibration error, 1.2 points by the
    debiased estimate; 0 if calibrated.
  Hypothesis: the l2 calibration error within the cells of VarianceTree() is at
    least 0.1. Deviations of opposite sign within a cell (bin) cancel and are
    not detected.
  P-value: inversion of a non-central chi-squared distribution and a normal one,
    computed without Monte Carlo draws.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]

  Note: With more than two outcomes the coverage of the l2 interval is not
    proven; docs/how-much.md reports its simulated coverage. [C406]"""
    assert printed(result) == expected


def test_result():
    y, prob = shifted(1000, 0.05, np.random.default_rng(1))
    hidden, shown = ct.equivalence_test(y, prob, 0.02), ct.equivalence_test(y, prob, 0.2)
    assert hidden.conclusion.startswith("The typical error within 8 cells is not shown to be below 2 points (p = ")
    assert "The typical error within 8 cells is shown to be below 20 points (p = " in words(shown)
    assert f": it is at most {100 * shown.smallest_margin:.4g} points (95 % confidence)." in words(shown)
    assert (hidden.verdict.findings, hidden.decision) == ((), "not rejected")
    assert "Do not approve these predictions yet" in hidden.verdict.advice[0]
    (finding,) = shown.verdict.findings
    assert (finding.kind, finding.pvalue, finding.n) == ("below", shown.pvalue, 1000)
    assert finding.size.interval == (0, 100 * shown.smallest_margin)
    assert shown.to_dict()["verdict"]["findings"][0]["margin"] == pytest.approx(20)
    assert shown.to_dict()["rejected"] is True
    assert shown.to_dict()["interval"]["alternative"] == "less"
    assert tuple(shown) == (shown.interval.estimate, shown.pvalue) == (shown.statistic, shown.pvalue)
    assert "<h4>Equivalence test" in shown._repr_html_()


def test_few_observations_certify_nothing():
    for y, p in [([1], [0.5]), ([1, 1], [0.0, 0.0])]:
        result = ct.equivalence_test(y, p, 0.5)
        assert not result.rejected
        assert result.decision == "undecidable"
        assert result.conclusion == (
            "Whether the typical error within 1 cell is below 50 points cannot be told: these observations are too few "
            f"to show any margin ({equate_pvalue(result.pvalue)})."
        )
    assert ct.equivalence_test([1, 0], [0.5, 0.5], 0.5).smallest_margin < 1


# Refusals.


def test_bad_arguments():
    margins = [(0, ValueError), (-0.1, ValueError), (np.inf, ValueError), ("small", TypeError), (True, TypeError)]
    for function, (margin, kind) in product((ct.equivalence_test, ct.tolerance_test), margins):
        with pytest.raises(kind, match="`margin` must be a positive, finite number, got"):
            function([0, 1], [0.5, 0.5], margin)
    with pytest.raises(
        ValueError, match=r"`margin` must be below the greatest possible error, .* got 5; is it in percent"
    ):
        ct.equivalence_test([0, 1], [0.5, 0.5], 5)
    with pytest.raises(ValueError, match="`alpha` must lie strictly between 0 and 1, got 0"):
        ct.equivalence_test([0, 1], [0.5, 0.5], 0.1, alpha=0)
