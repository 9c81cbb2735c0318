"""Tests of single cells: exact p-values, control of any false rejection, and what they print."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, correct_pvalues
from caltest.results._decision import show_pvalue
from tests.reference import naive
from tests.reference.examples import draw_labels
from tests.results.printed import printed

CORRECTIONS = UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE


@pytest.fixture(scope="module")
def network():
    return ct.reliability_curve(*ct.datasets.load_cifar10_vgg16())


def test_by_hand():
    """First cell: P(K = 0) = .504, P(K <= 1) = .902, and 1 event; second: P(K = 2) = .72, and 2 events."""
    curve = ct.reliability_curve([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.8, 0.9], partition=ct.EqualWidth(2))
    assert curve.pvalue == pytest.approx([2 * (1 - 0.504), 1])
    tests = curve.cell_tests("bonferroni")
    np.testing.assert_array_equal(tests.pvalue, curve.pvalue)
    assert tests.pvalue_adjusted == pytest.approx([1, 1])
    assert not tests.rejected.any()
    assert tests.n_cells == 2


@pytest.mark.parametrize("bars", ["consistency", "confidence"])
def test_pvalues_are_those_of_the_poisson_binomial_distribution(bars):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([1, 1, 1, 3], 150)
    y = draw_labels(np.roll(prob, 1, axis=1), rng)
    top, right = prob.max(axis=1), y == prob.argmax(axis=1)
    for partition in (ct.EqualWidth(6), ct.EqualMass(4), lambda p: (p[:, 1] < 0.8).astype(int)):
        curve = ct.reliability_curve(y, prob, partition=partition, bars=bars)
        label = naive.cells(partition, np.column_stack([1 - top, top]))
        members = [np.array([other == cell for other in label]) for cell in set(label)]
        members.sort(key=lambda cell: top[cell].mean())
        expected = [naive.two_sided(top[cell], right[cell].sum()) for cell in members]
        for found, exact in zip(curve.pvalue, expected, strict=True):
            if exact > 1e-12:
                assert found == pytest.approx(exact, rel=1e-4), partition
            else:
                assert exact < found <= 1e-12, partition


def test_far_tails_are_bounded():
    p, y = np.full(300, 0.5), np.repeat([0, 1], [298, 2])
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(1))
    (pvalue,) = curve.pvalue
    expected = 2 * binom.cdf(2, 300, 0.5)
    assert 1e-90 < expected < pvalue < 100 * expected
    assert f" {show_pvalue(pvalue, bound=True)} " in str(curve.cell_tests())
    (smallest,) = ct.reliability_curve(np.ones(2000), np.full(2000, 0.5), partition=ct.EqualWidth(1)).pvalue
    assert smallest == SMALLEST_PVALUE


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25), st.floats(0.001, 0.999))
@settings(max_examples=50, deadline=None)
def test_each_pvalue_is_valid_at_every_level(p, level):
    """Summed over all outcomes of the cell, not simulated: P(p-value <= level) <= level."""
    events = PoissonBinomial.of(np.array(p))
    rejected = [events.two_sided(k) <= level for k in events.counts]
    assert events.pmf[rejected].sum() <= level + 1e-9


@pytest.mark.slow(few_draws=True)
def test_corrections_are_those_of_statsmodels(network):
    for correction in CORRECTIONS:
        tests = network.cell_tests(correction, alpha=0.01)
        with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
            expected = multipletests(network.pvalue, alpha=0.01, method=correction)
        np.testing.assert_allclose(tests.pvalue_adjusted, expected[1], err_msg=correction)
        np.testing.assert_array_equal(tests.rejected, expected[1] <= 0.01, err_msg=correction)


@pytest.fixture(scope="module")
def calibrated_pvalues():
    """Unadjusted p-values of 6 cells on 200 calibrated data sets."""
    rng = np.random.default_rng(1)
    p = rng.beta(2, 1, 400)
    return [ct.reliability_curve(rng.random(400) < p, p, partition=ct.EqualMass(6)).pvalue for _ in range(200)]


@pytest.mark.slow
def test_the_probability_of_any_false_rejection_is_at_most_nominal(calibrated_pvalues):
    """The share of calibrated data sets with any rejection, within a one-sided binomial limit."""
    for correction in CORRECTIONS:
        rejected = sum(correct_pvalues(several, correction).min() <= 0.1 for several in calibrated_pvalues)
        assert rejected <= binom.ppf(1 - 1e-4, 200, 0.1), correction
    # The simulation can fail: single p-values at the same level reject more often.
    assert sum(several.min() <= 0.1 for several in calibrated_pvalues) > binom.ppf(1 - 1e-4, 200, 0.1)


def test_the_shifted_cell_is_found():
    rng = np.random.default_rng(2)
    p = rng.random(4000)
    curve = ct.reliability_curve(rng.random(4000) < p - 0.15 * (np.floor(5 * p) == 3), p, partition=ct.EqualWidth(5))
    tests = curve.cell_tests()
    assert tests.rejected.tolist() == [False, False, False, True, False]
    assert tests.conclusion.startswith(
        "After Holm's correction calibration is rejected in 1 of the 5 cells (bins) at the 5 % level. The event is "
        "less frequent than predicted in 1 of these. The largest deviation, -0.1"
    )
    assert tests.conclusion.endswith(", is in the cell from 0.6 to 0.8.")


def test_a_calibration_function_is_what_is_tested():
    rng = np.random.default_rng(3)
    p = rng.random(1200)
    y = rng.random(1200) < p**2

    def squared(prob):
        return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])

    known = ct.Consistency(calibration_function=squared)
    options = {"partition": ct.EqualWidth(4)}
    curve = ct.reliability_curve(y, p, resampling=known, **options)
    cell = np.floor(4 * p)
    expected = [naive.two_sided(p[cell == b] ** 2, y[cell == b].sum()) for b in range(4)]
    np.testing.assert_allclose(curve.pvalue, expected, rtol=1e-8)
    assert not curve.cell_tests().rejected.any()
    tests = ct.reliability_curve(y, p, **options).cell_tests()
    assert tests.rejected.all()


def test_resampled_bars_leave_the_tests_as_they_are():
    rng = np.random.default_rng(4)
    p = rng.random(500)
    y = rng.random(500) < p
    scheme = ct.Consistency(resample_predictions=True)
    options = {"partition": ct.EqualWidth(4)}
    resampled = ct.reliability_curve(y, p, resampling=scheme, n_resamples=19, rng=0, **options)
    np.testing.assert_array_equal(resampled.pvalue, ct.reliability_curve(y, p, **options).pvalue)


def test_an_impossible_label_makes_the_pvalue_of_its_cell_the_smallest():
    """Among 20 predictions of 0.4 one of 0 happened: the count of its cell is likely, its label is not."""
    p = np.append(np.full(20, 0.4), [0.0, 0.9])
    y = np.append(np.arange(20) < 7, [True, True])
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(2))
    assert curve.pvalue[0] == SMALLEST_PVALUE
    assert curve.pvalue[1] == 1
    tests = curve.cell_tests("holm-sidak")
    assert tests.rejected.tolist() == [True, False]
    assert "as frequent as predicted, but with a label that had been given probability 0, in 1 of these" in (
        tests.conclusion
    )


def test_cells_of_few_groups_are_undecidable():
    """Signs of G groups are one of 2 ** G patterns, so that no two-sided p-value is below 2 ** (1 - G)."""
    rng = np.random.default_rng(0)
    for n_groups, decidable in ((2, False), (3, False), (6, True)):
        group = np.repeat(np.arange(n_groups), 100)
        curve = ct.reliability_curve(rng.random(len(group)) < 0.24, np.full(len(group), 0.9), groups=group, rng=0)
        assert curve.smallest_pvalue == pytest.approx([2.0 ** (1 - n_groups)])
        tests = curve.cell_tests()
        assert tests.rejected.tolist() == [decidable]
        assert tests.undecidable.tolist() == [not decidable]
        assert ("undecidable" in str(tests)) != decidable
    least = f"no adjusted p-value below {2.0 ** (1 - 3):.4g} is possible in it"
    group = np.repeat(np.arange(3), 100)
    text = ct.reliability_curve(np.zeros(300), np.full(300, 0.9), groups=group, rng=0).cell_tests().conclusion
    assert f"1 cell (bin) is undecidable: it has so few observations or groups that {least}" in text


@pytest.mark.slow(few_draws=True)
def test_the_smallest_pvalue_is_that_of_equal_labels():
    """All counts of a cell, by the test itself; labels of probability 0 reject alone."""
    rng = np.random.default_rng(1)
    prob = rng.uniform(0.2, 0.9, 5)
    for options, slack in (({}, 1e-9), ({"sample_weight": [1.0, 2.0, 3.0, 1.0, 1.0], "n_resamples": 9_999}, 1e-3)):
        curves = [
            ct.reliability_curve(labels, prob, partition=ct.EqualWidth(1), rng=0, **options)
            for labels in np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
        ]
        found = min(curve.pvalue[0] for curve in curves)
        assert found == pytest.approx(
            curves[0].smallest_pvalue[0], abs=slack + 4 * np.sqrt(found / 10_000) * bool(options)
        )
    sure = ct.reliability_curve([0, 1], [0.0, 0.4], partition=ct.EqualWidth(1))
    assert sure.smallest_pvalue.tolist() == [0]
    assert not sure.cell_tests().undecidable.any()


def test_a_cell_of_one_observation_is_undecidable_among_others():
    y_true, prob = np.append(np.arange(100) % 2, 1), np.append(np.full(100, 0.1), 0.9)
    tests = ct.reliability_curve(y_true, prob, partition=ct.EqualWidth(2)).cell_tests()
    assert tests.rejected.tolist() == [True, False]
    assert tests.undecidable.tolist() == [False, True]
    assert tests.smallest_adjusted[1] == pytest.approx(0.2)  # the other cell is rejected first
    assert tests.to_frame()["undecidable"].tolist() == [False, True]
    assert "1 cell (bin) is undecidable: it has so few" in tests.conclusion


def test_refusals(network):
    with pytest.raises(ValueError, match=r"`correction` must be one of 'holm', 'bonferroni', .* got 'fdr_bh'"):
        network.cell_tests("fdr_bh")
    with pytest.raises(ValueError, match="`alpha` must lie strictly between 0 and 1, got 5"):
        network.cell_tests(alpha=5)


PRINTED = """
Tests of single cells (confidence, 10,000 observations, EqualWidth(5))
After Holm's correction calibration is rejected in 2 of the 4 cells (bins) at
the 5 % level. The event is less frequent than predicted in 2 of these. The
largest deviation, -0.160, is in the cell from 0.6 to 0.8.

 cell (bin)        count  expected  observed     p-value  adjusted p  rejected
 0.2000 to 0.4000     10    0.3466    0.4000      0.9540      0.9540
 0.4000 to 0.6000    162    0.5293    0.4877      0.3242      0.6484
 0.6000 to 0.8000    326    0.7026    0.5429     1.3e-09     3.9e-09         *
 0.8000 to 1.0000  9,502    0.9932    0.9576  < 1.2e-215  < 4.9e-215         *

  p-value: two-sided, from the exact Poisson-binomial distribution of the number
    of events, predictions fixed (valid at every sample size).
  If the model is calibrated, the probability that any cell is rejected is at
    most 5 %.
"""
PRINTED_WITHOUT_REJECTION = """
Tests of single cells (confidence, 899 observations, EqualMass(3))
After Bonferroni's correction calibration is rejected in none of the 3 cells
(bins) at the 1 % level. This does not prove that the model is calibrated.

 cell (bin)        count  expected  observed  p-value  adjusted p  rejected
 0.0000 to 0.9957    300    0.8911    0.9100   0.2716      0.8148
 0.9957 to 0.9998    300    0.9988    1.0000   1.0000      1.0000
 0.9998 to 1.0000    299    0.9999    1.0000   1.0000      1.0000

  p-value: two-sided, from the exact Poisson-binomial distribution of the number
    of events, predictions fixed (valid at every sample size).
  If the model is calibrated, the probability that any cell is rejected is at
    most 1 %.
"""


def print_it():
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    return ct.reliability_curve(y_true, y_prob, partition=ct.EqualWidth(5)).cell_tests()


def print_none():
    y_true, models = ct.datasets.load_digits_predictions()
    curve = ct.reliability_curve(y_true, models["neural_network"], partition=ct.EqualMass(3))
    return curve.cell_tests("bonferroni", alpha=0.01)


def test_what_is_printed():
    assert printed(print_it()) == PRINTED.strip("\n")
    assert printed(print_none()) == PRINTED_WITHOUT_REJECTION.strip("\n")


def test_as_frame_and_plain_objects(network):
    tests = network.cell_tests()
    frame = tests.to_frame()
    assert frame["rejected"].tolist() == tests.rejected.tolist()
    assert sum(tests.rejected) == 9
    content = json.loads(json.dumps(tests.to_dict(), allow_nan=False))
    assert content["count"][-1] == network.count[-1]
    assert (content["correction"], content["rejected"]) == ("holm", tests.rejected.tolist())
