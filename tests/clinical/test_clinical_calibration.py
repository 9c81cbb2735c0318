"""The measures of a validation equal those of R and of statsmodels, and mirror what is done to the data."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import caltest
from caltest.clinical import clinical_calibration
from tests.reference.val_prob import breast_cancer, cat, digit_8

QUICK = {"n_resamples": 99, "rng": 0}


@pytest.fixture(scope="module")
def problem():
    """Risks that are too extreme, of patients in 30 sites."""
    rng = np.random.default_rng(0)
    logit = rng.normal(-1, 1, 300)
    return (rng.random(300) < expit(0.2 + 0.6 * logit)).astype(int), expit(logit), np.arange(300) % 30


@pytest.fixture(scope="module")
def result(problem):
    y, p, _ = problem
    return clinical_calibration(y, p, thresholds=[0.1, 0.3], **QUICK)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            breast_cancer,
            (0.9257814692182, 0.6706361573080, 0.6730827869808, 0.0190852199969, 0.6539975669839, 0.0940055984155),
        ),
        (
            digit_8,
            (0.9941342061311, 0.8388923840441, 0.5188725982702, 0.0333191454836, 0.4855534527866, 0.0184953142249),
        ),
        (
            cat,
            (0.9897983333333, 0.7728675687600, 0.4610822805780, 0.0480015393885, 0.4130807411895, 0.0225791566150),
        ),
    ],
)
def test_val_prob_of_r_agrees(data, expected):
    """rms 6.5.0 in R 4.2.2: `val.prob(p, y)[c("C (ROC)", "R2", "D", "U", "Q", "Brier")]`, which prints 3 digits.

    All but the Brier score leave out predictions of 0 and 1 there. Its C puts logits into cells, as lrm does.
    """
    y, p = data()
    whole = clinical_calibration(y, p, **QUICK)
    inner = (p > 0) & (p < 1)
    found = whole if inner.all() else clinical_calibration(y[inner], p[inner], **QUICK)
    names = ("r2", "discrimination_index", "unreliability_index", "quality_index")
    assert [found[name].estimate for name in names] == pytest.approx(expected[1:-1], abs=1e-6)
    assert [whole[name].estimate for name in names] == pytest.approx(expected[1:-1], abs=1e-6)
    assert whole["brier"].estimate == pytest.approx(expected[-1], abs=1e-9)
    assert found["c_statistic"].estimate == pytest.approx(expected[0], abs=0.002)


@pytest.mark.slow(few_draws=True)
def test_numbers_are_those_of_their_own_functions(problem, result):
    y, p, _ = problem
    large, slope = caltest.estimation.calibration_in_the_large(y, p), caltest.estimation.calibration_slope(y, p)
    assert result["observed_expected"].confidence_interval == large.confidence_interval
    assert result["intercept"].estimate == large.intercept
    assert (result["calibration_slope"].estimate, result["calibration_slope"].pvalue) == (slope.estimate, slope.pvalue)
    assert result["intercept_of_slope"].estimate == slope.intercept
    assert result["brier"].estimate == pytest.approx(caltest.estimation.brier_score(y, p))
    for name in ("ICI", "E50", "E90", "Emax", "ECI"):
        statistic = getattr(caltest.statistics, name)()
        assert result[name].estimate == pytest.approx(caltest.calibration_error(y, p, statistic=statistic))
    test = caltest.calibration_test(y, p, **QUICK)
    assert (result.pvalue, result.conclusion, result.decision) == (test.pvalue, test.conclusion, test.decision)
    assert result.verdict.to_dict() == test.verdict.to_dict()


def test_pvalues_and_noise_floors_are_those_of_simulated_labels(problem):
    y, p, _ = problem
    found = clinical_calibration(y, p, n_resamples=999, rng=1)
    alone = caltest.calibration_test(y, p, statistic=caltest.statistics.ICI(), n_resamples=999, rng=2)
    spread = alone.null.std * np.sqrt(2 / 999)
    assert found["ICI"].if_calibrated == pytest.approx(alone.noise_floor, abs=4 * spread)
    assert found["ICI"].pvalue == pytest.approx(alone.pvalue, abs=4 * np.sqrt(0.5 / 999))
    assert found["brier"].if_calibrated == pytest.approx(np.mean(p * (1 - p)))


@pytest.mark.slow(few_draws=True)
def test_rows_columns_and_weights_of_one_change_nothing(problem, result):
    y, p, site = problem
    expected = result.to_frame()
    order = np.random.default_rng(1).permutation(len(y))
    cases = [
        (y, np.column_stack([1 - p, p]), {}),
        (y, p, {"sample_weight": np.full(len(y), 3.0)}),
        (y, p, {"groups": np.arange(len(y))}),
        (pd.Series(np.where(y == 1, "yes", "no")), pd.DataFrame({"yes": p, "no": 1 - p}), {}),
        (np.append(y, 1), np.append(p, 0.1), {"sample_weight": np.append(np.ones(len(y)), 0.0)}),
        (y[order], p[order], {}),
    ]
    for labels, prob, more in cases:
        found = clinical_calibration(labels, prob, thresholds=[0.1, 0.3], **more, **QUICK)
        given = ["estimate", "lower", "upper"]
        pd.testing.assert_frame_equal(found.to_frame()[given], expected[given], rtol=1e-9)
    assert site.max() == 29


@pytest.mark.slow(few_draws=True)
def test_integer_weights_count_as_copies(problem):
    """Estimates do; labels are not repeated, so that intervals are wider than those of copies."""
    y, p, _ = problem
    times = 1 + np.arange(len(y)) % 3
    weighted = clinical_calibration(y, p, sample_weight=times, thresholds=[0.3], **QUICK)
    copies = clinical_calibration(np.repeat(y, times), np.repeat(p, times), thresholds=[0.3], **QUICK)
    same = ["observed_expected", "calibration_slope", "brier", "scaled_brier", "r2", "c_statistic"]
    a, b = weighted.to_frame().loc[same], copies.to_frame().loc[same]
    np.testing.assert_allclose(a.estimate, b.estimate, rtol=1e-9)
    assert (a.upper - a.lower > b.upper - b.lower).all()
    assert weighted.net_benefits[0].estimate == pytest.approx(copies.net_benefits[0].estimate)


@pytest.mark.slow(few_draws=True)
def test_the_complement_mirrors(problem, result):
    y, p, _ = problem
    other = clinical_calibration(1 - y, 1 - p, **QUICK)
    for name in ("calibration_slope", "brier", "scaled_brier", "r2", "discrimination_index", "quality_index"):
        assert other[name].estimate == pytest.approx(result[name].estimate, rel=1e-6), name
        assert other[name].confidence_interval == pytest.approx(result[name].confidence_interval, rel=1e-5), name
    assert other["c_statistic"].confidence_interval == pytest.approx(result["c_statistic"].confidence_interval)
    low, high = other["intercept"].confidence_interval
    assert (-high, -low) == pytest.approx(result["intercept"].confidence_interval, abs=1e-6)


@pytest.mark.slow(few_draws=True)
def test_groups_widen_intervals_of_copies(problem):
    """Every patient three times: with groups the intervals are about those of the patients."""
    y, p, _ = problem
    once = clinical_calibration(y, p, thresholds=[0.3], **QUICK)
    three = [np.repeat(each, 3) for each in (y, p, np.arange(len(y)))]
    found = clinical_calibration(*three[:2], groups=three[2], thresholds=[0.3], **QUICK)
    for name in ("brier", "scaled_brier", "r2", "discrimination_index", "quality_index", "c_statistic"):
        widths = [np.diff(each[name].confidence_interval)[0] for each in (once, found)]
        assert widths[1] == pytest.approx(widths[0], rel=0.05), name
    for name in ("ICI", "E90"):
        assert np.diff(found[name].confidence_interval)[0] > 0.7 * np.diff(once[name].confidence_interval)[0]


def test_few_events_are_said(problem):
    y, p, _ = problem
    some = np.flatnonzero(y)[:7].tolist() + np.flatnonzero(1 - y)[:60].tolist()
    found = clinical_calibration(y[some], p[some], **QUICK)
    assert any("only 7 events" in note.text for note in found.notes)


def test_separated_labels():
    """There is no slope, the c-statistic is 1 and has one limit, and nothing is said that is not known."""
    p = np.linspace(0.05, 0.95, 40)
    found = clinical_calibration((p > 0.5).astype(int), p, **QUICK)
    assert found["calibration_slope"].estimate == np.inf
    assert found["c_statistic"].estimate == 1
    assert found["c_statistic"].confidence_interval == pytest.approx((0.025 ** (1 / 20), 1.0))
    assert "nan" not in str(found)


@pytest.mark.slow(few_draws=True)
def test_odd_predictions():
    rng = np.random.default_rng(3)
    p = rng.beta(1, 3, 200)
    cases = [np.round(p, 1), np.where(p < 0.2, 0.0, p), np.full(200, 0.25), np.where(p > 0.5, 1.0, 0.25)]
    for prob in cases:
        y = (rng.random(200) < prob).astype(int)
        found = clinical_calibration(y, prob, thresholds=[0.5], **QUICK)
        assert "nan" not in str(found)
        for measure in found:
            low, high = measure.confidence_interval
            assert np.isnan(low) or low <= high, measure


def test_bad_input(problem):
    y, p, _ = problem
    for thresholds, error in (([0.1, 1.0], ValueError), (["a"], TypeError), (0.2, TypeError), ("0.2", TypeError)):
        with pytest.raises(error, match=r"`thresholds` must be risks strictly between 0 and 1, such as \[0.1, 0.2\]"):
            clinical_calibration(y, p, thresholds=thresholds, **QUICK)
    with pytest.raises(ValueError, match="must hold events and other observations, got 0 events among 300"):
        clinical_calibration(np.zeros(300, dtype=int), p, **QUICK)
    with pytest.raises(ValueError, match="`y_prob` must be the predicted risk of one event, got 3 classes"):
        clinical_calibration(np.arange(30) % 3, np.full((30, 3), 1 / 3), **QUICK)
    with pytest.raises(ValueError, match="smoother"):
        clinical_calibration(y, p, smoother="kernel", **QUICK)
