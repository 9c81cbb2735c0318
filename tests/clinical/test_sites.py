"""The measures of every site are those of its patients alone, and their tests those of subgroups."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit

import caltest
from caltest.clinical import calibration_by_site
from caltest.clinical._discrimination import c_statistic
from caltest.predictions._sample import make_sample
from caltest.results._text import to_text

QUICK = {"n_resamples": 299, "rng": 0}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    site, logit = np.repeat(["A", "B", "C", "D"], 120), rng.normal(-1, 1, 480)
    return (rng.random(480) < expit(logit + 1.2 * (site == "B"))).astype(int), expit(logit), site


@pytest.fixture(scope="module")
def result(problem):
    y, p, site = problem
    return calibration_by_site(y, p, site=site, **QUICK)


def test_each_site_has_the_numbers_of_its_patients(problem, result):
    y, p, site = problem
    assert [one.name for one in result] == ["A", "B", "C", "D"]
    for one in result:
        inside = site == one.name
        large = caltest.estimation.calibration_in_the_large(y[inside], p[inside])
        slope = caltest.estimation.calibration_slope(y[inside], p[inside])
        assert one.observed_expected.confidence_interval == large.confidence_interval
        assert one.calibration_slope.confidence_interval == slope.confidence_interval
        value, interval = c_statistic(make_sample(y[inside], p[inside]), 0.025)
        assert (one.c_statistic.estimate, one.c_statistic.confidence_interval) == (value, interval)
        assert (one.n_samples, one.n_events) == (120, y[inside].sum())
        assert one.expected_events == pytest.approx(p[inside].sum())


def test_tests_are_those_of_subgroups(problem, result):
    y, p, site = problem
    tests = caltest.subgroup_tests(y, p, subgroup=site, **QUICK)
    assert result.pvalue == tests.pvalue
    assert [one.pvalue for one in result] == [test.pvalue for test in tests]
    assert [one.pvalue_adjusted for one in result] == tests.pvalue_adjusted.tolist()
    assert result.rejected
    assert 'In the site "B" predicted risks are too low' in result.conclusion
    assert "subgroup" not in str(result)


def test_the_ici_of_a_site_is_that_of_its_patients(problem, result):
    y, p, site = problem
    for one in result:
        inside = site == one.name
        low, high = one.ici.confidence_interval
        assert one.ici.estimate == caltest.calibration_error(y[inside], p[inside], statistic=caltest.statistics.ICI())
        assert low <= one.ici.estimate <= high
        labels = (np.random.default_rng(1).random((400, 120)) < np.sort(p[inside])).astype(int)
        calibrated = caltest.statistics.ICI().evaluate(make_sample(y[inside], p[inside]), labels)
        error = calibrated.std() * np.sqrt(1 / 400 + 1 / 399)
        assert one.ici.if_calibrated == pytest.approx(calibrated.mean(), abs=4 * error)
    assert [one.ici.confidence_interval.low > 0 for one in result] == [False, True, False, False]
    few = calibration_by_site(np.arange(100) % 50 < 4, np.full(100, 0.08), site=np.arange(100) // 50, **QUICK)
    assert all(np.isnan(one.ici.estimate) for one in few)


def test_the_mean_of_ratios(problem, result):
    """By hand, from the variances of the predictions with the intercept of all sites."""
    y, p, site = problem
    events, expected = (np.array([each[site == one.name].sum() for one in result]) for each in (y, p))
    shift = brentq(lambda a: expit(a + logit(p)).sum() - y.sum(), -5, 5)
    moved = expit(shift + logit(p))
    mean, variance = (
        np.array([each[site == one.name].sum() for one in result]) for each in (moved, moved * (1 - moved))
    )
    ratio = result.summaries[0]
    effects = np.column_stack(
        [np.log((events + variance / mean / 2) / expected), variance / mean**2, (events - mean) / np.sqrt(variance)]
    )
    found = type(ratio).of("observed_expected", "O/E", effects, scale="log", missed=0.025)
    assert (ratio.estimate, *ratio.prediction_interval) == pytest.approx((found.estimate, *found.prediction_interval))
    assert ratio.pvalue == pytest.approx(found.pvalue)
    assert [one.name for one in result.summaries] == ["observed_expected", "calibration_slope", "c_statistic"]


@pytest.mark.slow(few_draws=True)
def test_frames_with_names_and_permuted_rows(problem, result):
    y, p, site = problem
    order = np.random.default_rng(1).permutation(480)
    frame = pd.DataFrame({"y": y, "p": p, "site": site}).iloc[order]
    found = calibration_by_site(frame["y"], frame["p"], site=frame["site"], **QUICK)
    columns = ["observed_expected", "calibration_slope_lower", "c_statistic_upper"]
    pd.testing.assert_frame_equal(found.to_frame()[columns], result.to_frame()[columns])
    with pytest.raises(ValueError, match="index"):
        calibration_by_site(frame["y"], frame["p"], site=frame["site"].sort_index(), **QUICK)


@pytest.mark.slow(few_draws=True)
def test_patients_with_several_rows_are_not_independent(problem):
    y, p, site = problem
    three = [np.repeat(each, 3) for each in (y, p, site, np.arange(480))]
    alone = calibration_by_site(y, p, site=site, **QUICK)
    found = calibration_by_site(*three[:2], site=three[2], groups=three[3], **QUICK)
    for one, other in zip(alone.summaries, found.summaries, strict=True):
        assert other.estimate == pytest.approx(one.estimate, rel=0.1), one.name
        widths = [np.diff(each.confidence_interval)[0] for each in (one, other)]
        assert widths[1] == pytest.approx(widths[0], rel=0.35), one.name


def test_sites_without_events(problem):
    y, p, site = problem
    y = np.where(site == "A", 0, np.where(site == "D", 1, y))
    found = calibration_by_site(y, p, site=site, **QUICK)
    assert found.sites[0].observed_expected.estimate == 0
    assert np.isnan(found.sites[0].c_statistic.estimate)
    assert any(note.code == "C214" for note in found.notes)
    assert [one.n_sites for one in found.summaries] == [4], "two sites have a slope, which is too few"
    assert "nan" not in str(found)


def test_bad_input(problem):
    y, p, site = problem
    with pytest.raises(ValueError, match="`site` must have two sites or more, got 'A' only"):
        calibration_by_site(y, p, site=np.repeat("A", 480), **QUICK)
    with pytest.raises(ValueError, match="`site` must have a label for each of the 480 observations"):
        calibration_by_site(y, p, site=site[:-1], **QUICK)
    with pytest.raises(ValueError, match="`site` must be one column"):
        calibration_by_site(y, p, site=np.column_stack([site, site]), **QUICK)
    with pytest.raises(ValueError, match="predicted risk of one event, got 3 classes"):
        calibration_by_site(np.arange(480) % 3, np.full((480, 3), 1 / 3), site=site, **QUICK)


@pytest.mark.slow(few_draws=True)
def test_sites_that_are_in_no_mean_are_counted(problem, result):
    """A c-statistic of 1 has no variance, so that its site is not in the mean."""
    y, p, site = problem
    assert "Not all" not in str(result)
    inside = site == "A"
    labels = np.where(inside, (p > np.quantile(p[inside], 0.8)).astype(int), y)
    said = " ".join(str(calibration_by_site(labels, p, site=site, **QUICK)).split())
    assert "Not all 4 sites are in every mean: slope of 3 and c-statistic of 3." in said


def test_long_names_of_sites_are_broken_between_words():
    """Nine columns of numbers left seven characters for a name, and broke "patients" of the heading."""
    rng = np.random.default_rng(0)
    risk = rng.beta(2, 4, 600)
    site = np.array(["St Mary's Teaching Hospital of the Northern Region", "B", "C"])[np.arange(600) % 3]
    result = calibration_by_site((rng.random(600) < risk).astype(int), risk, site=site, n_resamples=99, rng=0)
    words = to_text(result._describe(), 100).split()
    assert {"Teaching", "Hospital", "Northern", "patients", "(expected)"} <= set(words)
