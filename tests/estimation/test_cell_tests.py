"""Which cells carry the evidence: exact p-values, familywise control, and the stars in the diagram."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.resampling._multiple_testing import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, correct_pvalues
from tests.reference import naive
from tests.reference.examples import draw_labels

CORRECTIONS = UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE
TINY = np.finfo(float).tiny


@pytest.fixture(scope="module")
def network():
    return ct.reliability_curve(*ct.datasets.load_cifar10_vgg16())


def test_by_hand():
    """First cell: P(K = 0) = .504, P(K <= 1) = .902, and 1 event; second: P(K = 2) = .72, and 2 events."""
    curve = ct.reliability_curve([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.8, 0.9], partition=ct.EqualWidth(2))
    assert curve.pvalue == pytest.approx([2 * (1 - 0.504), 1])
    tests = curve.cell_tests("bonferroni")
    np.testing.assert_array_equal(tests.pvalue, curve.pvalue)
    assert tests.pvalue_corrected == pytest.approx([1, 1])
    assert not tests.rejected.any()
    assert "No cell carries evidence" in tests.conclusion


@pytest.mark.parametrize("partition", [ct.EqualWidth(6), ct.EqualMass(4), lambda p: (p[:, 1] < 0.8).astype(int)])
@pytest.mark.parametrize("bars", ["consistency", "confidence"])
def test_pvalues_are_those_of_the_poisson_binomial_law(partition, bars):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([1, 1, 1, 3], 150)
    y = draw_labels(np.roll(prob, 1, axis=1), rng)
    curve = ct.reliability_curve(y, prob, partition=partition, bars=bars)
    top, right = prob.max(axis=1), y == prob.argmax(axis=1)
    label = naive.cells(partition, np.column_stack([1 - top, top]))
    rows = [np.array([other == cell for other in label]) for cell in set(label)]
    rows.sort(key=lambda cell: top[cell].mean())
    expected = [naive.two_sided(top[cell], right[cell].sum()) for cell in rows]
    np.testing.assert_allclose(curve.pvalue, expected, rtol=1e-8, atol=1e-15)


def test_far_tails_keep_their_digits():
    p, y = np.full(300, 0.5), np.repeat([0, 1], [298, 2])
    (pvalue,) = ct.reliability_curve(y, p, partition=ct.EqualWidth(1)).pvalue
    assert pvalue == pytest.approx(2 * binom.cdf(2, 300, 0.5), rel=1e-9, abs=0)
    assert pvalue < 1e-80
    (smallest,) = ct.reliability_curve(np.ones(2000), np.full(2000, 0.5), partition=ct.EqualWidth(1)).pvalue
    assert smallest == TINY


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25), st.floats(0.001, 0.999))
@settings(max_examples=50, deadline=None)
def test_each_pvalue_is_valid_at_every_level(p, level):
    """Summed over all outcomes of the cell, not simulated: P(p-value <= level) <= level."""
    law = ct.laws.PoissonBinomial.of(np.array(p))
    rejected = [law.two_sided(k) <= level for k in law.counts]
    assert law.pmf[rejected].sum() <= level + 1e-9


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_corrections_are_those_of_statsmodels(network, correction):
    tests = network.cell_tests(correction, level=0.01)
    with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
        expected = multipletests(network.pvalue, alpha=0.01, method=correction)
    np.testing.assert_allclose(tests.pvalue_corrected, expected[1])
    np.testing.assert_array_equal(tests.rejected, expected[1] <= 0.01)


@pytest.fixture(scope="module")
def calibrated_pvalues():
    """Uncorrected p-values of 6 cells on 500 calibrated data sets."""
    rng = np.random.default_rng(1)
    p = rng.beta(2, 1, 400)
    return [ct.reliability_curve(rng.random(400) < p, p, partition=ct.EqualMass(6)).pvalue for _ in range(500)]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_familywise_error_is_at_most_nominal(calibrated_pvalues, correction, monkeypatch):
    """The share of calibrated data sets with any rejection, within a one-sided binomial limit."""
    monkeypatch.setattr("gc.collect", lambda: 0)  # statsmodels collects garbage at every correction of Holm's
    rejected = sum(correct_pvalues(several, correction).min() <= 0.1 for several in calibrated_pvalues)
    assert rejected <= binom.ppf(1 - 1e-4, 500, 0.1)


def test_without_correction_the_familywise_error_would_be_larger(calibrated_pvalues):
    """The simulation above can fail: single p-values at the same level reject more often."""
    assert sum(several.min() <= 0.1 for several in calibrated_pvalues) > binom.ppf(1 - 1e-4, 500, 0.1)


def test_the_shifted_cell_is_found():
    rng = np.random.default_rng(2)
    p = rng.random(4000)
    curve = ct.reliability_curve(rng.random(4000) < p - 0.15 * (np.floor(5 * p) == 3), p, partition=ct.EqualWidth(5))
    tests = curve.cell_tests()
    assert tests.rejected.tolist() == [False, False, False, True, False]
    assert "1 of 5 cells carry evidence" in tests.conclusion
    assert "less often than expected in 1 of them, more often in 0" in tests.conclusion


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
    assert ct.reliability_curve(y, p, **options).cell_tests().rejected.all()


def test_resampled_bars_leave_the_tests_as_they_are():
    rng = np.random.default_rng(4)
    p = rng.random(500)
    y = rng.random(500) < p
    rows = ct.Consistency(resample_predictions=True)
    options = {"partition": ct.EqualWidth(4)}
    resampled = ct.reliability_curve(y, p, resampling=rows, n_resamples=19, rng=0, **options)
    np.testing.assert_array_equal(resampled.pvalue, ct.reliability_curve(y, p, **options).pvalue)


def test_an_excluded_label_makes_its_cell_smallest():
    """Among 20 rows of 0.4 one of 0 happened: its cell's count is likely, its outcome is not."""
    p = np.append(np.full(20, 0.4), [0.0, 0.9])
    y = np.append(np.arange(20) < 7, [True, True])
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(2))
    assert curve.pvalue[0] == TINY
    assert curve.pvalue[1] == 1
    assert curve.cell_tests("holm-sidak").rejected.tolist() == [True, False]


def test_prints_and_turns_into_plain_objects(network):
    tests = network.cell_tests()
    text = str(tests)
    for part in ("EqualWidth(n_cells=15)", "Confidence()", "p-value", " *", "Poisson-binomial", "4 of 11 cells"):
        assert part in text
    assert text.count(" *\n") == 4
    assert "<pre>" in tests._repr_html_()
    frame = tests.to_frame()
    assert frame["rejected"].tolist() == tests.rejected.tolist()
    content = json.loads(json.dumps(tests.to_dict(), allow_nan=False))
    assert content["cells"][-1]["count"] == network.count[-1]
    assert content["correction"] == "holm"


def test_bad_arguments(network):
    with pytest.raises(ValueError, match=r"`correction` must be one of 'holm', 'bonferroni', .* got 'fdr_bh'"):
        network.cell_tests("fdr_bh")
    with pytest.raises(ValueError, match="`level` must lie strictly between 0 and 1, got 5"):
        network.cell_tests(level=5)


@pytest.mark.parametrize("style", ["deviation", "classical"])
def test_stars_are_the_rejected_cells(network, style):
    tests = network.cell_tests()
    ax = ct.plot_reliability(network, Figure(layout="constrained").subplots(), style, tests=tests)
    (stars,) = [line for line in ax.get_lines() if line.get_marker() == "*"]
    np.testing.assert_allclose(stars.get_xdata(), network.predicted[tests.rejected])
    assert stars.get_label() == "carries evidence: corrected p ≤ 0.05 (holm)"
    circles = np.concatenate([line.get_xdata() for line in ax.get_lines() if line.get_marker() == "o"])
    np.testing.assert_allclose(np.sort(circles), network.predicted[~tests.rejected])


def test_no_stars_where_nothing_is_rejected():
    curve = ct.reliability_curve([0, 1], [0.5, 0.5])
    ax = ct.plot_reliability(curve, Figure(layout="constrained").subplots(), tests=curve.cell_tests())
    assert [line for line in ax.get_lines() if line.get_marker() == "*"] == []


@pytest.mark.parametrize("tests", ["holm", None])
def test_tests_of_another_curve_are_refused(network, tests):
    tests = tests or ct.reliability_curve([0, 1], [0.5, 0.5]).cell_tests()
    with pytest.raises(ValueError, match=r"`tests` must be the cell_tests\(...\) of this curve"):
        ct.plot_reliability(network, tests=tests)
