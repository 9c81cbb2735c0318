"""Distances to a smooth calibration curve: values of R, levels, and what must hold."""

import numpy as np
import pytest
from hypothesis import given

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics import E50, E90, ECI, ICI, Emax
from tests.reference.cases import check_refused, mostly_nightly, mostly_slow
from tests.reference.val_prob import breast_cancer, cat, digit_8
from tests.statistics.problems import LEVELS, PROFILE, error, event_problems, most_rejections

KINDS = (ICI, E50, E90, Emax, ECI)


@pytest.mark.parametrize(
    ("data", "lowess", "loess"),
    mostly_slow(
        [
            (
                breast_cancer,
                (0.03065682380505, 0.04573606046272, 0.04614120411065),
                (0.03484062983414, 0.04009230136764, 0.05358625704107, 0.06081318709852, 0.15190528605406),
            ),
            (
                digit_8,
                (0.022904973564451, 0.099591979867157, 0.197731814886007),
                (0.0220876196553412, 0.00589142042548277, 0.0529367895868258, 0.21444368089156063, 0.24385826264914651),
            ),
            (
                cat,
                (0.01420310672250, 0.07005957655554, 0.24345224894015),
                (0.0342270716836783, 0.0003733695779215, 0.0717889422443585, 0.7629189357420050, 1.2146861039046),
            ),
        ]
    ),
)
def test_r_agrees(data, lowess, loess):
    """rms 6.5.0 in R 4.2.2: `val.prob(p, y)[c("Eavg", "E90", "Emax")]`, mean, median, 90 % quantile and maximum of
    `abs(fitted(loess(y ~ p)) - p)`, and 100 times the mean of its square; both print 3 digits."""
    y, p = data()
    assert [error(y, p, kind("lowess")) for kind in (ICI, E90, Emax)] == pytest.approx(lowess, rel=1e-10)
    assert [error(y, p, kind()) for kind in KINDS] == pytest.approx(loess, rel=1e-10)


@pytest.mark.parametrize(("data", "index"), [(breast_cancer, 0.03655752741004), (cat, 0.0151649840602)])
def test_the_spline_of_rms_agrees(data, index):
    """`mean(abs(fitted(glm(y ~ rcs(qlogis(p), 5), binomial)) - p))` of predictions other than 0 and 1."""
    y, p = data()
    inner = (p > 0) & (p < 1)
    assert error(y[inner], p[inner], ICI("spline")) == pytest.approx(index, rel=1e-9)


def test_quantiles_of_weighted_distances():
    """Integer weights count as copies where the order statistics fall on them; weights of one change nothing."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 101)
    y = (rng.random(101) < p).astype(int)
    for kind in KINDS:
        assert error(y, p, kind(), sample_weight=np.full(101, 2.0)) == pytest.approx(error(y, p, kind()), rel=1e-12)
        zero = np.append(np.ones(101), 0.0)
        found = error(np.append(y, 1), np.append(p, 0.5), kind(), sample_weight=zero)
        assert found == pytest.approx(error(y, p, kind()), rel=1e-12)


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(event_problems())
def test_they_lie_in_order(problem):
    y, p = problem
    for smoother in ("loess", "lowess"):
        mean, median, upper, largest = (error(y, p, kind(smoother)) for kind in KINDS[:4])
        assert 0 <= median <= upper + 1e-12 <= largest + 2e-12
        assert mean <= largest + 1e-12


def test_the_complement_mirrors():
    """Splines to rounding; local regressions up to the interpolation between points that begin at the smallest one."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 400)
    y = (rng.random(400) < p).astype(int)
    for kind in KINDS:
        assert error(1 - y, 1 - p, kind("spline")) == pytest.approx(error(y, p, kind("spline")), rel=1e-9)
    for smoother, most in (("loess", 2e-3), ("lowess", 1e-3)):
        assert error(1 - y, 1 - p, ICI(smoother)) == pytest.approx(error(y, p, ICI(smoother)), abs=most)


@pytest.mark.parametrize("smoother", mostly_slow(["loess", "lowess", "spline"]))
def test_a_known_calibration_function_has_no_more_error_than_its_labels(smoother):
    """Labels that follow a calibration function are near it, and far from the predictions."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 2_000)
    y = (rng.random(2_000) < p**2).astype(int)

    def squared(prob):
        return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])

    null = caltest.Consistency(calibration_function=squared)
    options = {"statistic": ICI(smoother), "n_resamples": 99, "rng": 0}
    assert caltest.calibration_test(y, p, resampling=null, **options).pvalue > 0.05
    assert caltest.calibration_test(y, p, **options).pvalue == 0.01


def test_signs_of_groups_have_the_observed_value():
    """All signs 1 are the labels themselves; splines are no function of the residuals and refuse groups."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 300)
    y, group = (rng.random(300) < p).astype(int), np.arange(300) // 6
    for smoother in ("loess", "lowess"):
        for weight in (None, rng.uniform(0.5, 2, 300)):
            sample = make_sample(y, p, groups=group, sample_weight=weight)
            for kind in KINDS:
                found = kind(smoother).evaluate_signs(sample, np.ones((2, 50), dtype=np.int8))
                assert found == pytest.approx(np.full(2, kind(smoother).evaluate(sample, sample.outcome)), rel=1e-9)
    with pytest.raises(ValueError, match="groups"):
        caltest.calibration_test(y, p, groups=group, statistic=ICI("spline"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic", mostly_nightly([ICI(), ICI("lowess"), ICI("spline"), E90(), Emax("lowess")]), ids=str
)
def test_levels(statistic):
    """Calibrated models are rejected as often as the level says: 50 observations, rounded, rare events."""
    rng = np.random.default_rng(0)
    designs = [lambda: rng.beta(1, 2, 50).clip(0.01, 0.99), lambda: np.round(rng.beta(1, 9, 100), 2).clip(0.01)]
    for draw in designs:
        pvalues = []
        for _ in range(500):
            p = draw()
            y = (rng.random(len(p)) < p).astype(int)
            pvalues.append(caltest.calibration_test(y, p, statistic=statistic, n_resamples=99, rng=rng).pvalue)
        rejected = (np.array(pvalues)[:, None] <= np.array(LEVELS) + 1e-12).sum(axis=0)
        assert (rejected <= most_rejections(500, 30)).all(), rejected


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: ICI("spines"), ValueError, "`smoother` must be one of 'loess', 'lowess', 'spline', got 'spines'."),
        (lambda: ICI(3), TypeError, "`smoother` must be one of 'loess', 'lowess', 'spline', got 3."),
        (lambda: ICI(span=0), ValueError, "`span` must be None or a number above 0 and at most 1, got 0."),
        (lambda: ICI(span="wide"), TypeError, "`span` must be None or a number above 0 and at most 1, got 'wide'."),
        (
            lambda: E50("spline", 0.5),
            ValueError,
            "`span` must be None for `smoother='spline'`, which has knots, got 0.5.",
        ),
        (
            lambda: error([0, 1, 1], [0.0, 0.5, 0.6], ICI("spline")),
            ValueError,
            "`y_prob` must be above 0 and below 1 for `smoother='spline'`",
        ),
    ],
)
def test_refusals(make, kind, message):
    check_refused(make, kind, message)


def test_it_is_for_two_outcomes():
    with pytest.raises(ValueError, match="ICI"):
        error([0, 1, 2], np.eye(3), ICI(), caltest.Canonical())


def test_names_of_other_packages():
    with pytest.raises(ValueError, match="lowess"):
        error([0, 1], [0.2, 0.6], "Eavg")
    with pytest.raises(ValueError, match="Kuiper"):
        error([0, 1], [0.2, 0.6], "CutoffError")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoother", ["loess", "spline"])
def test_what_is_evaluated_together_equals_what_is_evaluated_alone(smoother, weighted):
    """To the last digit: observed values, evaluated alone, are compared with those of simulated labels."""
    rng = np.random.default_rng(8)
    p = rng.beta(1, 3, 700)
    sample = make_sample(rng.random(700) < p, p, sample_weight=rng.uniform(0.5, 2, 700) if weighted else None)
    parts = [kind(smoother) for kind in KINDS]
    labels = (rng.random((9, 700)) < sample.event).astype(np.int8)
    together = parts[0].evaluate_companions(parts, sample, labels)
    assert together.tolist() == [part.evaluate(sample, labels).tolist() for part in parts]
    assert together[:, 3].tolist() == [float(part.evaluate(sample, labels[3])) for part in parts]
