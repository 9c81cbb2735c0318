"""Null distributions: drawn from the right law, and the same whatever the threads and blocks."""

from functools import cache

import naive
import numpy as np
import pytest
from conftest import TWO_OUTCOMES_ONLY, draw_labels

import caltest
from caltest import resampling
from caltest._sample import make_sample
from caltest.statistics._base import joint_null

STANDARD_ERRORS = 4


def problem(n, n_classes, seed=0):
    """Calibrated predictions with their labels."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    return draw_labels(prob, rng), prob


def null_of(y_true, y_prob, statistic=None, **options):
    options = {"n_resamples": 199, "rng": 3, "method": "monte-carlo", **options}
    return caltest.calibration_test(y_true, y_prob, statistic=statistic, **options).null_distribution


def drawn(prob, n_resamples, rng=1, scheme=None):
    """Outcomes ``(n_resamples, n_samples)`` in the caller's order, drawn for predictions."""
    sample = make_sample(np.zeros(len(prob), dtype=int), prob)
    scheme = caltest.Consistency() if scheme is None else scheme
    outcomes = np.concatenate([block for _, block in scheme.draws(n_resamples, rng).blocks(sample)])
    in_order = np.empty_like(outcomes)
    in_order[:, sample.row] = outcomes
    return in_order


def assert_close(value, expected, standard_error):
    assert abs(value - expected) <= STANDARD_ERRORS * standard_error


# The same null whatever the work is cut into.

SCHEMES = [caltest.Consistency(), caltest.Consistency(resample_predictions=True)]


@pytest.fixture(params=SCHEMES, ids=["labels", "rows"])
def scheme(request):
    return request.param


def null_by(statistic, scheme, workers):
    """The null of a statistic, more draws than a block holds."""
    lens = caltest.Confidence() if isinstance(statistic, TWO_OUTCOMES_ONLY) else None
    n, n_resamples = (50, 260) if scheme.resample_predictions else (300, 600)
    return null_of(*problem(n, 3), statistic, lens=lens, resampling=scheme, n_resamples=n_resamples, workers=workers)


null_by_one = cache(null_by)


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_do_not_matter(any_default_statistic, scheme, workers):
    expected = null_by_one(any_default_statistic, scheme, 1)
    np.testing.assert_array_equal(null_by(any_default_statistic, scheme, workers), expected)


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
@pytest.mark.parametrize(("n_bytes", "replicates"), [(1, (1, 1)), (2**21, (3, 7)), (2**30, (8, 1000))])
def test_blocks_do_not_matter(any_default_statistic, scheme, monkeypatch, n_bytes, replicates):
    expected = null_by_one(any_default_statistic, scheme, 1)
    monkeypatch.setattr(resampling, "_BLOCK_BYTES", n_bytes)
    monkeypatch.setattr(resampling, "_BLOCK_REPLICATES", replicates)
    np.testing.assert_array_equal(null_by(any_default_statistic, scheme, 2), expected)


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
@pytest.mark.parametrize("n_resamples", [1, 17, 257])
def test_fewer_draws_are_the_first_of_more(any_simple_statistic, scheme, n_resamples):
    lens = caltest.Confidence() if isinstance(any_simple_statistic, TWO_OUTCOMES_ONLY) else None
    options = {"lens": lens, "resampling": scheme}
    many, few = (null_of(*problem(40, 3), any_simple_statistic, n_resamples=n, **options) for n in (270, n_resamples))
    np.testing.assert_array_equal(few, many[:n_resamples])


def test_all_processors_draw_the_same():
    y_true, y_prob = problem(100, 3)
    np.testing.assert_array_equal(null_of(y_true, y_prob), null_of(y_true, y_prob, workers=-1))


def test_progress_is_told():
    seen = []
    y_true, y_prob = problem(30, 3)
    sample = make_sample(y_true, y_prob)
    draws = caltest.Consistency().draws(600, 0)
    statistic = caltest.ECE()
    null = draws.map(lambda part: statistic.null(sample, part), 2, lambda done, total: seen.append((done, total)))
    assert null.shape == (600,)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (600, 600)


def test_seeds_decide():
    y_true, y_prob = problem(100, 3)
    same = [null_of(y_true, y_prob, rng=seed) for seed in (7, 7, np.int64(7), np.random.default_rng(7))]
    for null in same[1:]:
        np.testing.assert_array_equal(null, same[0])
    assert np.any(null_of(y_true, y_prob, rng=8) != same[0])
    assert np.any(null_of(y_true, y_prob, rng=None) != null_of(y_true, y_prob, rng=None))


def test_a_generator_moves_on():
    y_true, y_prob = problem(100, 3)
    rng = np.random.default_rng(7)
    assert np.any(null_of(y_true, y_prob, rng=rng) != null_of(y_true, y_prob, rng=rng))


def test_labels_do_not_matter_to_the_null():
    y_true, y_prob = problem(100, 3)
    statistic = caltest.ECE()
    one, other = (null_of(labels, y_prob, statistic) for labels in (y_true, y_true[::-1]))
    np.testing.assert_array_equal(one, other)


# The law of the draws.


@pytest.mark.parametrize(("n_classes", "dtype"), [(2, np.uint8), (3, np.uint8), (256, np.uint8), (300, np.uint16)])
def test_frequencies_of_drawn_outcomes(n_classes, dtype):
    n, n_resamples = 50, 4000
    prob = np.random.default_rng(n_classes).dirichlet(np.full(n_classes, 5.0), size=n)
    outcomes = drawn(prob, n_resamples)
    assert outcomes.dtype == dtype
    assert outcomes.max() < n_classes
    counts = np.stack([(outcomes == k).sum(axis=0) for k in range(n_classes)], axis=1)
    expected = n_resamples * prob
    # Every class over all rows is a sum of independent indicators.
    standard_error = np.sqrt((expected * (1 - prob)).sum(axis=0))
    assert np.all(np.abs((counts - expected).sum(axis=0)) <= STANDARD_ERRORS * standard_error)
    # Every row is multinomial: mean and variance of Pearson's statistic are known.
    pearson = ((counts - expected) ** 2 / expected).sum(axis=1)
    mean = n_classes - 1
    variance = 2 * mean + ((1 / prob).sum(axis=1) - n_classes**2 - 2 * mean) / n_resamples
    assert_close(pearson.sum(), n * mean, np.sqrt(variance.sum()))


def test_rows_and_replicates_are_independent():
    """Neighbours agree as often as coins do, within a replicate (blocks of 1,024 rows end) and between replicates."""
    outcomes = drawn(np.full((5000, 2), 0.5), 200)
    for one, other in [
        (outcomes[:, 1:], outcomes[:, :-1]),
        (outcomes[:, 32:], outcomes[:, :-32]),
        (outcomes[:, 64:], outcomes[:, :-64]),
        (outcomes[:, 1024:], outcomes[:, :-1024]),
        (outcomes[1:], outcomes[:-1]),
        (outcomes[1:, 1:], outcomes[:-1, :-1]),
    ]:
        assert_close(np.mean(one == other), 0.5, 0.5 / np.sqrt(one.size))
    sums = outcomes.sum(axis=1)
    assert_close(sums.mean(), 2500, np.sqrt(1250 / 200))
    assert_close(sums.var(ddof=1), 1250, 1250 * np.sqrt(2 / 199))


def test_outcomes_and_rows_are_independent():
    """Rows are drawn by another stream than the outcomes."""
    prob = np.column_stack([1 - np.linspace(0.1, 0.9, 400), np.linspace(0.1, 0.9, 400)])
    sample = make_sample(np.zeros(400, dtype=int), prob)
    blocks = caltest.Consistency(resample_predictions=True).draws(500, 2).blocks(sample)
    residual, spread = 0.0, 0.0
    for resampled, outcomes in blocks:
        residual += ((outcomes[0] - resampled.event) * (resampled.event - 0.5)).sum()
        spread += (resampled.event * (1 - resampled.event) * (resampled.event - 0.5) ** 2).sum()
    assert_close(residual, 0, np.sqrt(spread))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_probability_zero_is_never_drawn(place):
    prob = np.insert(np.full((1000, 2), 0.5), place, 0.0, axis=1)
    outcomes = drawn(prob, 500)
    assert not np.any(outcomes == place)
    for k in {0, 1, 2} - {place}:
        assert np.any(outcomes == k)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probability_one_is_always_drawn(n_classes):
    certain = np.arange(2000) % n_classes
    assert np.all(drawn(np.eye(n_classes)[certain], 500) == certain)


def test_certain_by_rounding():
    """Rows that miss 1, and a rest below 0, are normalised and clipped where outcomes are drawn."""
    drift = np.tile([0.6, 0.40001, 0.0], (500, 1))
    sample = make_sample(np.zeros(500, dtype=int), drift, lens=caltest.TopK(2))
    assert np.all(sample.prob[:, 2] < 0)
    outcomes = np.concatenate([block for _, block in caltest.Consistency().draws(200, 1).blocks(sample)])
    assert not np.any(outcomes == 2)
    share = 0.6 / 1.00001
    assert_close(np.mean(outcomes == 0), share, np.sqrt(share * (1 - share) / outcomes.size))


def test_small_probabilities_are_drawn():
    prob = np.tile([1 - 2e-4, 1e-4, 1e-4], (1000, 1))
    outcomes = drawn(prob, 500)
    for k in (1, 2):
        assert_close(np.mean(outcomes == k), 1e-4, np.sqrt(1e-4 / outcomes.size))


@pytest.mark.parametrize("n", [1, 7, 700])
def test_rows_are_drawn_uniformly_with_replacement(n):
    n_resamples = 2000
    sample = make_sample(np.zeros(n, dtype=int), np.full(n, 0.5))
    blocks = caltest.Consistency(resample_predictions=True).draws(n_resamples, 4).blocks(sample)
    rows = np.stack([resampled.row for resampled, _ in blocks])
    assert rows.shape == (n_resamples, n)
    counts = np.bincount(rows.ravel(), minlength=n)
    expected = n_resamples
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert_close(chi_squared, n - 1, np.sqrt(2 * (n - 1)))
    distinct = np.array([len(np.unique(row)) for row in rows])
    mean = n * (1 - (1 - 1 / n) ** n)
    assert_close(distinct.mean(), mean, distinct.std() / np.sqrt(n_resamples) + 1e-12)


# The law of statistics.


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_mean_square_of_a_single_cell_has_a_closed_form(n_classes):
    """E |S / n|^2 = sum p (1 - p) / n^2."""
    y_true, y_prob = problem(150, n_classes)
    null = null_of(y_true, y_prob, caltest.ECE(caltest.EqualWidth(1), caltest.squared_euclidean), n_resamples=20_000)
    assert_close(null.mean(), (y_prob * (1 - y_prob)).sum() / 150**2, null.std() / np.sqrt(20_000))


def test_mean_square_of_a_single_cell_with_rows_redrawn():
    """Given the rows as before; their average leaves the mean as it is."""
    y_true, y_prob = problem(150, 3)
    null = null_of(
        y_true,
        y_prob,
        caltest.ECE(caltest.EqualWidth(1), caltest.squared_euclidean),
        resampling=caltest.Consistency(resample_predictions=True),
        n_resamples=4000,
    )
    assert_close(null.mean(), (y_prob * (1 - y_prob)).sum() / 150**2, null.std() / np.sqrt(4000))


def test_the_score_has_mean_zero_and_a_known_variance():
    y_true, y_prob = problem(200, 4)
    sample = make_sample(y_true, y_prob)
    score = caltest.TemperatureScore()
    blocks = caltest.Consistency().draws(5000, 5).blocks(sample)
    signed = np.concatenate([score.signed(sample, outcomes) for _, outcomes in blocks])
    log_prob = np.log(y_prob)
    variance = ((y_prob * log_prob**2).sum(axis=1) - (y_prob * log_prob).sum(axis=1) ** 2).sum()
    assert_close(signed.mean(), 0, np.sqrt(variance / 5000))
    assert_close(signed.var(), variance, variance * np.sqrt(3 / 5000))


def redraw(y_prob, null_prob, statistic, n_resamples, lens=None, resample=False):
    """The null by NumPy's own generator, one draw after the other."""
    rng = np.random.default_rng(123456)
    values = []
    for _ in range(n_resamples):
        row = rng.integers(len(y_prob), size=len(y_prob)) if resample else np.arange(len(y_prob))
        labels = draw_labels(null_prob[row], rng)
        values.append(caltest.calibration_error(labels, y_prob[row], lens=lens, statistic=statistic))
    return np.array(values)


def assert_same_law(one, other):
    """Two samples agree in mean, standard deviation and five quantiles within 4 standard errors."""
    both = np.sqrt(1 / len(one) + 1 / len(other))
    joined = np.concatenate([one, other])
    sd = joined.std()
    kurtosis = np.mean((joined - joined.mean()) ** 4) / sd**4
    assert_close(one.mean(), other.mean(), sd * both)
    assert_close(one.std(), other.std(), sd * np.sqrt((kurtosis - 1) / 4) * both)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        quantile = np.quantile(joined, level)
        share = np.mean(joined <= quantile)
        assert_close(np.mean(one <= quantile), np.mean(other <= quantile), np.sqrt(share * (1 - share)) * both)


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
def test_another_generator_draws_the_same_law(any_simple_statistic, scheme):
    lens = caltest.Confidence() if isinstance(any_simple_statistic, TWO_OUTCOMES_ONLY) else None
    y_true, y_prob = problem(80, 3)
    null = null_of(y_true, y_prob, any_simple_statistic, lens=lens, resampling=scheme, n_resamples=1000)
    other = redraw(y_prob, y_prob, any_simple_statistic, 400, lens, scheme.resample_predictions)
    assert_same_law(null, other)


# A known calibration function.


def sharper(prob):
    """A calibration function: outcomes are more certain than the model says."""
    return prob**2 / (prob**2).sum(axis=1, keepdims=True)


def test_errors_are_centred_on_the_calibration_function(views, any_simple_statistic):
    for view in views:
        prob, outcome = view.induced
        if (isinstance(any_simple_statistic, TWO_OUTCOMES_ONLY) and prob.shape[1] > 2) or np.any(prob < 0):
            continue  # squares of a rest below 0 are not what a user would hand in
        result = caltest.calibration_test(
            view.y_true,
            view.y_prob,
            lens=view.lens,
            statistic=any_simple_statistic,
            resampling=caltest.Consistency(calibration_function=sharper),
            n_resamples=1,
            method="monte-carlo",
            rng=0,
        )
        expected = naive.evaluate(any_simple_statistic, prob, outcome, expected=sharper(prob))
        np.testing.assert_allclose(result.statistic, expected, rtol=1e-12, atol=1e-12, err_msg=str(view))


def test_outcomes_follow_the_calibration_function():
    y_true, y_prob = problem(80, 3)
    statistic = caltest.ECE(caltest.EqualWidth(3))
    scheme = caltest.Consistency(calibration_function=sharper)
    null = null_of(y_true, y_prob, statistic, resampling=scheme, n_resamples=4000)
    sample = scheme.under_null(make_sample(y_true, y_prob))
    rng = np.random.default_rng(99)
    labels = np.stack([draw_labels(sharper(y_prob), rng) for _ in range(2000)])
    assert_same_law(null, statistic.evaluate(sample, labels.astype(np.uint8)))


def test_a_true_calibration_function_is_not_rejected_and_the_identity_is():
    _, y_prob = problem(2000, 3)
    y_true = draw_labels(sharper(y_prob), np.random.default_rng(1))
    right = caltest.Consistency(calibration_function=sharper)
    assert caltest.calibration_test(y_true, y_prob, resampling=right, n_resamples=199, rng=0).pvalue > 0.05
    assert caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0).pvalue == 1 / 200


def test_the_identity_as_calibration_function_changes_nothing(any_default_statistic):
    lens = caltest.Confidence() if isinstance(any_default_statistic, TWO_OUTCOMES_ONLY) else None
    y_true, y_prob = problem(100, 3)
    options = {"lens": lens, "statistic": any_default_statistic}
    identity = caltest.Consistency(calibration_function=lambda prob: prob)
    np.testing.assert_array_equal(
        null_of(y_true, y_prob, **options), null_of(y_true, y_prob, resampling=identity, **options)
    )


def test_a_calibration_function_may_allow_what_the_model_excludes():
    y_prob = np.tile([0.5, 0.5, 0.0], (40, 1))
    scheme = caltest.Consistency(calibration_function=lambda prob: np.full_like(prob, 1 / 3))
    y_true = np.arange(40) % 3
    result = caltest.calibration_test(y_true, y_prob, resampling=scheme, n_resamples=199, rng=0)
    assert result.impossible_rows.size == 0
    assert result.pvalue > 0.05
    assert np.isfinite(result.null_distribution).all()


def test_a_calibration_function_may_exclude_what_the_model_allows():
    y_prob = np.tile([0.5, 0.25, 0.25], (40, 1))
    scheme = caltest.Consistency(calibration_function=lambda prob: prob @ [[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    y_true = np.zeros(40, dtype=int)
    y_true[17] = 2
    result = caltest.calibration_test(y_true, y_prob, resampling=scheme, n_resamples=199, rng=0)
    assert result.impossible_rows.tolist() == [17]
    assert result.pvalue == 1 / 200


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p: p[:, 0], r"`calibration_function` must return shape \(2, 3\), got \(2,\)"),
        (lambda p: p[:1], r"`calibration_function` must return shape \(2, 3\), got \(1, 3\)"),
        (lambda p: 2 * p, r"`calibration_function` must return probabilities that sum to 1, got"),
        (lambda p: p - [0.5, 0, 0] + [0, 0, 0.5], r"`calibration_function` must return probabilities that sum to 1"),
        (lambda p: np.full_like(p, np.nan), r"`calibration_function` must return probabilities that sum to 1"),
    ],
)
def test_what_a_calibration_function_must_return(function, message):
    scheme = caltest.Consistency(calibration_function=function)
    with pytest.raises(ValueError, match=message):
        caltest.calibration_test([0, 1], [[0.25, 0.5, 0.25]] * 2, resampling=scheme, n_resamples=9)


# Refusals, and what is left alone.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: caltest.Consistency(resample_predictions=1), r"`resample_predictions` must be True or False, got 1"),
        (lambda: caltest.Consistency(resample_predictions="no"), r"`resample_predictions` must be True or False"),
        (
            lambda: caltest.Consistency(calibration_function=0.5),
            r"`calibration_function` must be a function .* got 0.5",
        ),
        (lambda: caltest.Consistency().draws(0), r"`n_resamples` must be an integer >= 1, got 0"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("rng", [-1, 1.5, True, "0", [1, 2], np.random.RandomState(0)], ids=repr)
def test_what_is_no_source_of_randomness(rng):
    with pytest.raises(ValueError, match=r"`rng` must be None, an integer >= 0 or a numpy.random.Generator, got"):
        caltest.calibration_test([0, 1], [0.25, 0.75], n_resamples=9, rng=rng)


@pytest.mark.parametrize("n_resamples", [0, -5, 99.0, "99", None, True])
def test_what_is_no_number_of_resamples(n_resamples):
    with pytest.raises(ValueError, match=r"`n_resamples` must be an integer >= 1, got"):
        caltest.calibration_test([0, 1], [0.25, 0.75], n_resamples=n_resamples)


@pytest.mark.parametrize("workers", [0, -2, 1.0, None])
def test_what_is_no_number_of_workers(workers):
    with pytest.raises(ValueError, match=r"`workers` must be"):
        caltest.calibration_test([0, 1], [0.25, 0.75], n_resamples=9, workers=workers)


def test_resampling_must_be_a_law_under_the_null():
    for scheme in (caltest.Consistency, "bootstrap", 3):
        with pytest.raises(ValueError, match=r"`resampling` must be a Consistency\(...\), the law under the null"):
            caltest.calibration_test([0, 1], [0.25, 0.75], resampling=scheme)


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
@pytest.mark.parametrize("writeable", [True, False])
def test_the_callers_arrays_are_left_alone(any_problem, scheme, writeable):
    y_true, y_prob = any_problem.y_true.copy(), any_problem.y_prob.copy()
    y_true.flags.writeable = y_prob.flags.writeable = writeable
    caltest.calibration_test(y_true, y_prob, resampling=scheme, n_resamples=9, rng=0)
    np.testing.assert_array_equal(y_true, any_problem.y_true)
    np.testing.assert_array_equal(y_prob, any_problem.y_prob)
    assert y_prob.flags.writeable == writeable


def test_not_even_users_functions_reach_the_callers_arrays():
    def lens(prob, outcome):
        prob[:] = 1 / prob.shape[1]
        outcome[:] = 0
        return prob, outcome

    def region(prob):
        prob[:] = 0
        return np.ones(len(prob), dtype=bool)

    def function(prob):
        prob[:] = 0.5
        return prob

    def partition(prob):
        return np.zeros(len(prob), dtype=int)

    y_true, y_prob = np.array([0, 1, 1]), np.array([[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]])
    caltest.calibration_test(
        y_true,
        y_prob,
        lens=lens,
        region=region,
        statistic=caltest.ECE(partition),
        resampling=caltest.Consistency(calibration_function=function),
        n_resamples=9,
    )
    assert y_true.tolist() == [0, 1, 1]
    assert y_prob.tolist() == [[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]]


# Resampled rows as multiplicities: the fast path of binned statistics for two outcomes.

PROBLEMS = {
    "spread": lambda rng: rng.random(400),
    "ties": lambda rng: rng.integers(0, 21, 300) / 20,
    "sharp": lambda rng: 1 / (1 + np.exp(-6 * rng.normal(size=500))),
    "few": lambda rng: rng.random(7),
    "constant": lambda _: np.full(50, 0.3),
    "one": lambda _: np.array([0.4]),
}
REFITTED = [
    caltest.EqualWidth(10),
    caltest.EqualWidth(7, closed="right"),
    caltest.Edges([0.2, 0.5], closed="right"),
    caltest.EqualMass(8),
    caltest.VarianceTree(),
    caltest.VarianceTree(min_leaf=20),
    caltest.VarianceTree(min_split=30),
    caltest.VarianceTree(min_leaf=5, max_cells=6),
]


@pytest.mark.parametrize("partition", REFITTED, ids=repr)
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("statistic_type", [caltest.ECE, caltest.MCE])
def test_multiplicities_equal_copied_rows(partition, problem, statistic_type):
    """The same draws, partitions re-fitted: fast and general path agree to 1e-12."""
    rng = np.random.default_rng(0)
    p = PROBLEMS[problem](rng)
    sample = make_sample(rng.random(len(p)) < p, p)
    draws = caltest.Consistency(resample_predictions=True).draws(40, rng=1)
    statistic = statistic_type(partition)
    assert partition.refits
    general = joint_null([statistic], sample, draws)[0]
    np.testing.assert_allclose(statistic.null(sample, draws), general, rtol=0, atol=1e-12)


def test_distances_never_see_an_empty_cell():
    """Resampled rows leave cells empty, where chi-squared would divide by 0."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.6, 300)
    statistic = caltest.ECE(caltest.EqualWidth(10), lambda g, r: (np.square(r - g) / g).sum(axis=-1))
    sample = make_sample(rng.random(300) < p, p)
    draws = caltest.Consistency(resample_predictions=True).draws(30, rng=1)
    general = joint_null([statistic], sample, draws)[0]
    np.testing.assert_allclose(statistic.null(sample, draws), general, rtol=0, atol=1e-12)


def test_multiplicities_count_rows_and_events():
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    sample = make_sample(rng.random(3000) < p, p)
    draws = caltest.Consistency(resample_predictions=True).draws(3, rng=1)
    blocks = [(drawn.row, outcomes[0]) for drawn, outcomes in draws.blocks(sample)]
    counted = [pair for rows, events in draws.multiplicities(sample) for pair in zip(rows, events, strict=True)]
    place = np.argsort(sample.row)
    for (row, outcome), (rows, events) in zip(blocks, counted, strict=True):
        np.testing.assert_array_equal(np.bincount(place[row], minlength=3000), rows)
        np.testing.assert_array_equal(np.bincount(place[row], weights=outcome, minlength=3000), events)
