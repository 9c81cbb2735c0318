"""The Hosmer-Lemeshow test: other programs, cases by hand, exact distributions, ranks, and where its limit fails."""

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.diagnostic_gen import test_chisquare_binning as chisquare_binning

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.resampling.engine._evaluation import null_values
from tests.hypothesis_tests.classical.limits import check_size, rare_events
from tests.hypothesis_tests.problems import STANDARD_ERRORS, calibrated, words
from tests.results.printed import printed

TWO_GROUPS = [1, 1, 1, 0, 1, 1, 0, 0], [0.25] * 4 + [0.75] * 4


def groups_test(y_true, y_prob, method="auto", **options):
    return caltest.hosmer_lemeshow_test(y_true, y_prob, method=method, **{"n_resamples": 199, "rng": 0, **options})


# Other programs and formulas.


def test_textbook_form_of_statsmodels():
    for n_classes, reference in [(2, 0), (3, 0), (4, 2)]:
        y_true, y_prob = calibrated(200, n_classes, concentration=1.0)
        partition = caltest.AgainstRest(reference, caltest.EqualMass(10))
        result = groups_test(y_true, y_prob, "asymptotic", partition=partition, covariance="mean")
        freedom, order = 10 * (n_classes - 1), 1 - y_prob[:, reference]
        other = chisquare_binning(np.eye(n_classes)[y_true], y_prob, sort_var=order, bins=10, df=freedom)
        assert result.degrees_of_freedom == freedom, n_classes
        assert result.statistic == pytest.approx(other.statistic, rel=1e-9), n_classes
        assert result.pvalue == pytest.approx(other.pvalue, rel=1e-9), n_classes


def test_pseudo_inverse():
    for n_classes in (2, 3, 6):
        y_true, y_prob = calibrated(300, n_classes)
        statistic, sample = caltest.HosmerLemeshow(), make_sample(y_true, y_prob)
        cells = cells_of(sample, statistic.partition)
        value, rank = 0.0, 0
        for b in range(cells.n_cells):
            p, y = sample.prob[cells.index == b], sample.outcome[cells.index == b]
            sigma = np.diag(p.sum(axis=0)) - p.T @ p
            residual = (np.eye(n_classes)[y] - p).sum(axis=0)
            value += residual @ np.linalg.pinv(sigma, rcond=1e-10, hermitian=True) @ residual
            rank += np.linalg.matrix_rank(sigma, tol=1e-10, hermitian=True)
        result = groups_test(y_true, y_prob, "asymptotic")
        assert result.statistic == pytest.approx(value, rel=1e-8), n_classes
        assert result.degrees_of_freedom == rank, n_classes


# By hand.


def test_two_groups():
    """Two binomial variables with 4 trials at 1/4 and 3/4: (k - 1)^2 / (3/4) is 4/3, 0, 4/3, 16/3, 12."""
    result = groups_test(*TWO_GROUPS, partition=caltest.EqualMass(2))
    assert result.statistic == pytest.approx(16 / 3 + 4 / 3, rel=1e-12)
    pmf = stats.binom.pmf(np.arange(5), 4, 0.25)
    values = (np.arange(5) - 1) ** 2 * 4 / 3
    pairs = itertools.product(zip(values, pmf, strict=True), repeat=2)
    assert result.pvalue == pytest.approx(sum(p * q for (a, p), (b, q) in pairs if a + b > 6.6), rel=1e-10)
    assert result.method == "exact"
    assert result.degrees_of_freedom == 2
    np.testing.assert_array_equal(result.count, [4, 4])
    np.testing.assert_array_equal(result.expected, [[3, 1], [1, 3]])
    np.testing.assert_array_equal(result.observed, [[1, 3], [2, 2]])


def test_groups_of_a_known_calibration_function():
    """Expected numbers are those of the null hypothesis, and groups those of the predictions."""

    def squared(prob):
        return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])

    scheme = caltest.Consistency(calibration_function=squared)
    result = groups_test(*TWO_GROUPS, partition=caltest.EqualMass(2), resampling=scheme)
    np.testing.assert_allclose(result.expected[:, 1], [4 / 16, 4 * 9 / 16], rtol=1e-12)
    np.testing.assert_array_equal(result.observed[:, 1], [3, 2])
    event = (np.array([3, 2]) - result.expected[:, 1]) ** 2 / (4 * np.array([1 / 16 * 15 / 16, 9 / 16 * 7 / 16]))
    assert result.statistic == pytest.approx(event.sum(), rel=1e-12)


# The result.


@pytest.mark.slow(few_draws=True)
def test_groups_are_printed():
    two = groups_test(*TWO_GROUPS, partition=caltest.EqualMass(2))
    table = """
 group  observations  observed  expected
 1                 4         3         1
 2                 4         2         3
"""
    assert table in printed(two)
    y_true, y_prob = [0, 1, 2, 2, 0, 1], [[0.5, 0.25, 0.25]] * 6
    three = printed(groups_test(y_true, y_prob, partition=caltest.AgainstRest(0, caltest.EqualMass(1))))
    table = """
 group  observations  outcome 0  outcome 1  outcome 2
 1                 6      2 (3)    2 (1.5)    2 (1.5)
"""
    assert table in three
    assert "Outcomes of a group: observed number (expected number)." in three
    many = str(groups_test(*calibrated(100, 12), n_resamples=19))
    assert " group " not in many
    assert "Outcomes of a group" not in many
    assert "Outcomes of a group" not in printed(two)


@pytest.mark.slow(few_draws=True)
def test_mean_under_calibration_is_printed():
    """With the default covariance it is the degrees of freedom, with the textbook's it is less."""
    y_true, y_prob = calibrated(200, 2)
    for covariance, mean in [("observations", "10"), ("mean", "9.919")]:
        result = groups_test(y_true, y_prob, covariance=covariance)
        assert result.degrees_of_freedom == 10, covariance
        assert f"a calibrated model with these predictions has {mean} on average" in words(result), covariance


def test_groups_of_one_probability_take_the_confidence():
    problem = calibrated(50, 3)
    assert groups_test(*problem).lens == caltest.Canonical()
    assert groups_test(*problem, partition=caltest.EqualMass(5)).lens == caltest.Confidence()


def test_one_group_is_one_line_of_the_frame():
    result = groups_test(*calibrated(100, 3), partition=caltest.AgainstRest(0, caltest.EqualMass(4)))
    frame = result.to_frame()
    assert frame["group"].tolist() == [1, 2, 3, 4]
    names = [f"{what}_{k}" for k in range(3) for what in ("observed", "expected")]
    assert frame.columns.tolist() == ["group", "count", *names]
    assert frame["count"].sum() == 100
    np.testing.assert_array_equal(frame[["observed_0", "observed_1", "observed_2"]], result.observed)
    np.testing.assert_array_equal(frame["expected_2"], result.expected[:, 2])


# Exact distributions.


def test_exact_pvalue_by_enumeration():
    """All labels of 10 observations in 3 groups."""
    labels = list(itertools.product([0, 1], repeat=10))
    for seed, covariance in itertools.product(range(4), ("observations", "mean")):
        case = f"seed {seed}, {covariance}"
        rng = np.random.default_rng(seed)
        prob, y_true = rng.random(10), rng.integers(2, size=10)
        partition = caltest.EqualMass(3)
        sample = make_sample(y_true, prob)
        outcomes = np.array(labels, dtype=sample.outcome.dtype)
        values = caltest.HosmerLemeshow(partition, covariance).evaluate(sample, outcomes)
        mass = np.where(outcomes == 1, sample.event, 1 - sample.event).prod(axis=1)
        result = groups_test(y_true, prob, "exact", partition=partition, covariance=covariance)
        expected = mass[values >= result.statistic * (1 - 1e-9)].sum()
        assert result.pvalue == pytest.approx(expected, rel=1e-9), case
        assert result.noise_floor == pytest.approx((mass * values).sum(), rel=1e-9), case
        if covariance == "observations":
            assert (mass * values).sum() == pytest.approx(result.degrees_of_freedom, rel=1e-9), case


def test_mean_of_the_exact_distribution():
    """The number of groups, also where a few labels hold most of it; less for the textbook's larger variances."""
    for concentration in (0.05, 1.0):
        sample = make_sample(*calibrated(200, 2, concentration=concentration))
        rows, mean = (
            caltest.HosmerLemeshow(covariance=c).exact_distribution(sample).mean for c in ("observations", "mean")
        )
        assert rows == pytest.approx(10, rel=1e-12), concentration
        assert 0 < mean < 10, concentration


def test_mean_under_the_null():
    """The sum of the ranks, for any number of outcomes."""
    for concentration, n_classes in itertools.product((0.5, 2.0), (2, 4)):
        sample = make_sample(*calibrated(200, n_classes, concentration=concentration))
        statistic = caltest.HosmerLemeshow()
        values = null_values(statistic, sample, caltest.Consistency().draws(4000, rng=0))
        error = values.std() / math.sqrt(len(values))
        difference = values.mean() - statistic.degrees_of_freedom(sample)
        assert abs(difference) < STANDARD_ERRORS * error, (concentration, n_classes)


@pytest.mark.slow(few_draws=True)
def test_exact_and_simulated_pvalues_agree():
    """Sharp predictions too, where some groups have next to no variance."""
    for concentration, seed in itertools.product((0.02, 0.1, 0.5), range(3)):
        case = f"concentration {concentration}, seed {seed}"
        y_true, y_prob = calibrated(100, 2, seed=seed, concentration=concentration)
        exact = groups_test(y_true, y_prob, "exact")
        drawn = groups_test(y_true, y_prob, "monte-carlo", n_resamples=9999, rng=seed)
        assert exact.statistic == pytest.approx(drawn.statistic, rel=1e-12), case
        error = math.sqrt(exact.pvalue * (1 - exact.pvalue) / 9999)
        assert abs(exact.pvalue - drawn.pvalue) < STANDARD_ERRORS * error + 1 / 10_000, case


def quantile_problems():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    yield "CIFAR-10", make_sample(y_true, y_prob, lens=caltest.Confidence())
    for n, concentration in [(100, 0.05), (100, 1.0), (400, 0.3), (2000, 0.05)]:
        yield f"n = {n}, {concentration}", make_sample(*calibrated(n, 2, concentration=concentration))
    rare = rare_events(np.random.default_rng(0), 100)
    yield "rare events", make_sample(np.zeros(100, dtype=int), rare)
    yield "two groups", make_sample(*TWO_GROUPS)


@pytest.mark.slow(few_draws=True)
def test_exact_quantiles_agree_with_draws():
    """Of sharp predictions too, whose rare large values make a grid over all of them coarse."""
    n_draws, resolution = 6_000, 0.01
    partitions = [caltest.AgainstRest(), caltest.EqualMass(2)]
    for (name, sample), partition in itertools.product(quantile_problems(), partitions):
        statistic = caltest.HosmerLemeshow(partition)
        null = statistic.exact_distribution(sample)
        drawn = null_values(statistic, sample, caltest.Consistency().draws(n_draws, rng=0))
        for q in (0.01, 0.05, 0.5, 0.95):
            case, x = f"{name}, {partition}, {q}", null.quantile(q)
            slack = STANDARD_ERRORS * math.sqrt(q * (1 - q) / n_draws)
            assert np.mean(drawn < x * (1 - resolution)) <= q + slack, case
            assert np.mean(drawn <= x * (1 + resolution)) >= q - slack, case
            x = np.quantile(drawn, q, method="inverted_cdf")
            share = np.mean(drawn <= x * (1 + 1e-9))
            slack = STANDARD_ERRORS * math.sqrt(share * (1 - share) / n_draws)
            assert abs(null.cdf(x) - share) <= slack, case


def test_exact_range_is_printed():
    """The 5 % quantile of sharp predictions was 0."""
    y_true, y_prob = calibrated(100, 2, concentration=0.05)
    exact = groups_test(y_true, y_prob, "exact")
    low, high = exact.noise_interval
    assert 0.1 < low < high
    assert f"({low:.4g} to {high:.4g})" in str(exact)


def test_exact_quantile_at_the_smallest_value():
    """P(C = 0) = 0.178 for two groups of 4 at 1/4 and 3/4."""
    null = caltest.HosmerLemeshow(caltest.EqualMass(2)).exact_distribution(make_sample(*TWO_GROUPS))
    zero = stats.binom.pmf(1, 4, 0.25) ** 2
    assert null.quantile(0.99 * zero) == 0
    assert null.quantile(1.01 * zero) == pytest.approx(4 / 3, rel=1 / 256)
    assert null.cdf(0.0) == pytest.approx(zero, rel=1e-9)


def test_where_the_limit_fails():
    """The figure of the docstring."""
    check_size(caltest.HosmerLemeshow(), rare_events, 100, alpha=0.05, documented="0.13")


# Ranks and digits.


def test_names_of_the_classes_do_not_matter():
    y_true, y_prob = calibrated(120, 4)
    order = np.array([2, 0, 3, 1])
    renamed, columns = np.argsort(order)[y_true], y_prob[:, order]
    for partition, other in [
        (caltest.VarianceTree(), caltest.VarianceTree()),
        (caltest.AgainstRest(1, caltest.EqualMass(10)), caltest.AgainstRest(3)),
    ]:
        one = caltest.calibration_error(y_true, y_prob, statistic=caltest.HosmerLemeshow(partition))
        two = caltest.calibration_error(renamed, columns, statistic=caltest.HosmerLemeshow(other))
        assert one == pytest.approx(two, rel=1e-9), str(partition)


def test_almost_certain_classes():
    """Three classes, one of them at `sharp`: digits are kept, and the rank counts it."""
    statistic = caltest.HosmerLemeshow(caltest.AgainstRest(0, caltest.EqualMass(1)))
    for sharp in (1e-3, 1e-9, 1e-100, 1e-300):
        sample = make_sample(np.array([0, 1] * 4), np.array([[0.5, 0.5 - sharp, sharp]] * 8))
        assert statistic.degrees_of_freedom(sample) == 2, sharp
        # S = (0, 8 sharp, -8 sharp); multinomial with the same prediction throughout: sum of S_k^2 / E_k.
        expected = 8 * sharp**2 / (0.5 - sharp) + 8 * sharp
        value = statistic.evaluate(sample, sample.outcome)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-300, err_msg=str(sharp))


def test_ranks_of_classes_that_exclude_each_other():
    """Half of the predictions allow {0, 1}, half {2, 3}: rank 2, and a swap between the halves is impossible."""
    y_prob = np.array([[0.5, 0.5, 0, 0]] * 4 + [[0, 0, 0.25, 0.75]] * 4)
    statistic = caltest.HosmerLemeshow(caltest.AgainstRest(0, caltest.EqualWidth(1)))
    possible, swapped = np.array([0, 1, 1, 1, 2, 3, 3, 3]), np.array([0, 1, 1, 2, 2, 3, 3, 3])
    sample = make_sample(possible, y_prob)
    assert statistic.degrees_of_freedom(sample) == 2
    assert statistic.evaluate(sample, sample.outcome) == pytest.approx(1, rel=1e-12)  # 1^2 / (4 / 4), and 0
    assert statistic.evaluate(sample, swapped.astype(sample.outcome.dtype)) == np.inf


# Refusals.


def test_bad_arguments_are_refused():
    problem = calibrated(20, 3)
    for options, kind, message in [
        ({"covariance": "pooled"}, ValueError, "`covariance` must be one of 'observations', 'mean', got 'pooled'"),
        ({"covariance": 1}, TypeError, "`covariance` must be one of 'observations', 'mean', got 1"),
        ({"partition": "ten"}, TypeError, "`partition` must be a partition such as .*, got 'ten'"),
        ({"partition": caltest.AgainstRest(3)}, ValueError, "`k` must be less than the number of outcomes, 3, got 3"),
        ({"method": "exact"}, ValueError, 'method="exact" needs .* with 3 outcomes'),
        (
            {"partition": caltest.EqualMass(5), "lens": caltest.Canonical()},
            ValueError,
            "`EqualMass` needs a two-outcome lens .* got 3 outcomes",
        ),
    ]:
        with pytest.raises(kind, match=message):
            groups_test(*problem, **options)
    for make, kind, message in [
        (lambda: caltest.AgainstRest(-1), ValueError, "`k` must be an integer >= 0, got -1"),
        (lambda: caltest.AgainstRest(0, "ten"), TypeError, "`partition` must be a partition such as .*, got 'ten'"),
    ]:
        with pytest.raises(kind, match=message):
            make()


@pytest.mark.slow(few_draws=True)
def test_results_of_two_outcomes_can_be_pickled():
    y_true, y_prob = calibrated(200, 2)
    result = caltest.hosmer_lemeshow_test(y_true, y_prob)
    printed = str(result)  # with the smallest detectable error, which is found from the observations
    assert str(pickle.loads(pickle.dumps(result))) == printed
