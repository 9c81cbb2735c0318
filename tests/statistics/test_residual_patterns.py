"""Statistics of the residuals of equal predictions: moments, formulas by hand, levels, and odd data."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics import LeCessie, OsiusRojek, Stukel
from caltest.statistics._residual_patterns import Patterns
from tests.reference.cases import check_refused, mostly_slow
from tests.reference.residual_patterns import le_cessie, osius_rojek, stukel
from tests.statistics.problems import LEVELS, error, most_rejections

TWINS = {Stukel: stukel, OsiusRojek: osius_rojek, LeCessie: le_cessie}
EACH = pytest.mark.parametrize("statistic", [Stukel(), OsiusRojek(), LeCessie()], ids=str)


def risks(kind, n=200, seed=0):
    rng = np.random.default_rng(seed)
    p = {
        "usual": rng.uniform(0.02, 0.95, n),
        "ties": rng.choice([0.1, 0.3, 0.5, 0.8], n),
        "rare": rng.beta(1, 60, n).clip(1e-4),
        "grid": (np.arange(n) % 20 + 1) / 21,
        "constant": np.full(n, 0.2),
    }[kind]
    return (rng.random(n) < p).astype(int), p


@EACH
@pytest.mark.parametrize("kind", mostly_slow(["usual", "ties", "rare", "grid", "constant"]))
def test_equals_loops(statistic, kind):
    for seed in range(3):
        y, p = risks(kind, 60, seed)
        weight = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], 60)
        rows = np.column_stack([1 - p, p]).tolist()
        for options in ({}, {"sample_weight": weight}):
            slow = TWINS[type(statistic)](None, rows, y.tolist(), *options.values())
            assert error(y, p, statistic, **options) == pytest.approx(slow, rel=1e-9, abs=1e-12)


def test_stukel_is_the_score_test_of_two_features():
    y, p = risks("usual", 400)
    logit = np.log(p / (1 - p))
    features = np.column_stack([np.where(side, logit**2 / 2, 0.0) for side in (p > 0.5, p < 0.5)])
    score = features.T @ (y - p)  # with the offset the fitted probabilities of coefficients 0 are the predictions
    null = GLM(y, np.ones(400), family=Binomial(), offset=logit)
    assert GLM(y, features, family=Binomial(), offset=logit).score(np.zeros(2)) == pytest.approx(score)
    information = (features.T * null.family.variance(p)) @ features
    assert error(y, p, Stukel()) == pytest.approx(score @ np.linalg.solve(information, score), rel=1e-9)


def test_osius_and_rojek_in_terms_of_the_textbook():
    """2 (J - sum 1/m) for the ties, and the residual sum of squares without coefficients."""
    y, p = risks("ties", 300)
    level, place = np.unique(p, return_inverse=True)
    m, o = np.bincount(place), np.bincount(place, weights=y)
    v = m * level * (1 - level)
    chi_square = ((o - m * level) ** 2 / v).sum()
    spread = 2 * (len(m) - (1 / m).sum()) + ((1 - 2 * level) ** 2 / v).sum()
    result = caltest.calibration_test(y, p, statistic=OsiusRojek(), n_resamples=19, rng=0)
    assert result.statistic == pytest.approx(abs(chi_square - len(m)) / np.sqrt(spread), rel=1e-10)
    assert (result.chi_square, result.n_patterns) == (pytest.approx(chi_square), 4)


N_DRAWS = 4_000


@EACH
@pytest.mark.parametrize("kind", mostly_slow(["usual", "ties", "rare"]))
def test_limits_have_the_moments_of_draws(statistic, kind):
    """The mean and variance of T, and of Z, are exact: draws have them."""
    y, p = risks(kind, 400)
    sample = make_sample(y, p)
    drawn = (np.random.default_rng(1).random((N_DRAWS, 400)) < sample.event).astype(np.int64)
    values = statistic.evaluate(sample, drawn)
    if isinstance(statistic, OsiusRojek):
        values, mean, variance = values**2, 1.0, None
    else:
        limit = statistic.asymptotic_distribution(sample)
        if limit is None:
            assert (kind, type(statistic)) == ("rare", LeCessie)
            return
        mean, variance = limit.mean, limit.std**2
    assert abs(values.mean() - mean) < 4 * values.std() / np.sqrt(N_DRAWS)
    if isinstance(statistic, LeCessie):
        squares = (values - mean) ** 2
        assert abs(squares.mean() - variance) < 4 * squares.std() / np.sqrt(N_DRAWS)


@EACH
def test_what_must_not_count(statistic):
    """The order, the scale of the weights, which outcome is the event, and observations of weight 0."""
    for kind in ("usual", "ties"):
        y, p = risks(kind)
        value, order = error(y, p, statistic), np.random.default_rng(2).permutation(200)
        assert error(y[order], p[order], statistic) == pytest.approx(value, rel=1e-9)
        assert error(1 - y, 1 - p, statistic) == pytest.approx(value, rel=1e-6)
        assert error(y, p, statistic, sample_weight=np.full(200, 3.0)) == pytest.approx(value, rel=1e-9)
        weight = np.append(np.ones(200), np.zeros(5))
        more = error(np.append(y, np.ones(5, int)), np.append(p, np.full(5, 0.01)), statistic, sample_weight=weight)
        assert more == pytest.approx(value, rel=1e-9)


@EACH
def test_odd_data(statistic):
    y, p = risks("usual")
    value = error(y, p, statistic)
    assert error(np.append(y, [0, 1]), np.append(p, [0.0, 1.0]), statistic) == pytest.approx(value, rel=1e-12)
    assert error(np.append(y, 1), np.append(p, 0.0), statistic) == np.inf
    assert error([0, 1], [0.0, 1.0], statistic) == 0
    for labels, prob in (
        ([1], [0.3]),
        ([1], [0.5]),
        ([0, 1], [0.5, 0.5]),
        (np.arange(50) > 25, np.linspace(0.01, 0.99, 50)),
    ):
        for method in ("monte-carlo",) if isinstance(statistic, OsiusRojek) else ("monte-carlo", "asymptotic"):
            options = {"n_resamples": 19, "rng": 0, "method": method}
            if isinstance(statistic, LeCessie) and method == "asymptotic" and len(labels) < 6:
                with pytest.raises(ValueError, match="asymptotic"):
                    caltest.calibration_test(np.asarray(labels, int), prob, statistic=statistic, **options)
                continue
            result = caltest.calibration_test(np.asarray(labels, int), prob, statistic=statistic, **options)
            assert 0 <= result.statistic < np.inf
            assert 0 <= result.pvalue <= 1


@EACH
def test_power(statistic):
    """Risks that are too extreme are detected."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 600)
    y = (rng.random(600) < 0.5 + 0.6 * (p - 0.5)).astype(int)
    assert caltest.calibration_test(y, p, statistic=statistic, n_resamples=199, rng=0).pvalue <= 0.01


@pytest.mark.slow
@EACH
def test_levels(statistic):
    """Simulated labels hold the level with few events."""
    rng = np.random.default_rng(0)
    for n, a, b in ((60, 1, 4), (300, 1, 60)):
        pvalues = []
        for _ in range(150):
            p = rng.beta(a, b, n).clip(1e-3)
            y = (rng.random(n) < p).astype(int)
            pvalues.append(caltest.calibration_test(y, p, statistic=statistic, n_resamples=99, rng=rng).pvalue)
        rejected = (np.array(pvalues)[:, None] <= np.array(LEVELS) + 1e-12).sum(axis=0)
        assert (rejected <= most_rejections(150, 18)).all(), (n, rejected)


def test_the_limit_of_stukel_counts_the_sides():
    y, p = risks("usual")
    assert caltest.calibration_test(y, p, statistic=Stukel(), method="asymptotic").null.std == pytest.approx(2)
    low = caltest.calibration_test(y, p / 3, statistic=Stukel(), method="asymptotic")
    assert low.pvalue == pytest.approx(stats.chi2(1).sf(low.statistic), rel=1e-9)


@pytest.mark.slow(few_draws=True)
def test_the_normal_limit_is_refused_where_the_chi_square_is_skewed():
    """Its skewness is exact; that of a chi-squared number of J patterns is the root of 8 / J."""
    for kind, n, offered in (
        ("ties", 5_000, False),
        ("rare", 400, False),
        ("grid", 5_000, True),
        ("usual", 2_000, True),
    ):
        y, p = risks(kind, n)
        sample = make_sample(y, p)
        assert (OsiusRojek().asymptotic_distribution(sample) is not None) == offered, kind
    drawn = (np.random.default_rng(1).random((20_000, 300)) < risks("grid", 300)[1]).astype(np.int64)
    y, p = risks("grid", 300)
    order = np.argsort(p, kind="stable")
    sample = make_sample(y, p)
    z = OsiusRojek().signed(sample, sample.of_predictions(Patterns.of).residuals(sample, drawn[:, order]))
    patterns = sample.of_predictions(Patterns.of)
    v = patterns.variance
    central = 8 + 12 * patterns.excess / v**2 + (10 * patterns.third**2 + patterns.sixth) / v**3
    skewness = central.sum() / OsiusRojek._variance(patterns) ** 1.5
    assert abs((z**3).mean() - skewness) < 4 * (z**3).std() / np.sqrt(20_000)
    check_refused(
        lambda: caltest.calibration_test(*risks("ties"), statistic=OsiusRojek(), method="asymptotic"),
        ValueError,
        "asymptotic",
    )
