"""Null distributions: drawn from the right law, and the same whatever the threads and blocks."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import caltest
import caltest.resampling._draws
from caltest._compiled._draws import draw_counts
from caltest.predictions._sample import make_sample
from caltest.resampling._row_counts import AliasTables
from caltest.statistics._base import joint_null
from tests.reference import naive
from tests.reference.examples import TWO_OUTCOMES, draw_labels

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


FULL_DRAWS = [caltest.Consistency(), caltest.Consistency(resample_predictions=True), caltest.Bootstrap()]

# The same null whatever the work is cut into.

SCHEMES = [caltest.Consistency(), caltest.Consistency(resample_predictions=True)]


@pytest.fixture(params=SCHEMES, ids=["labels", "rows"])
def scheme(request):
    return request.param


def null_by(statistic, scheme, workers):
    """The null of a statistic, more draws than a block holds."""
    lens = caltest.Confidence() if isinstance(statistic, TWO_OUTCOMES) else None
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
    monkeypatch.setattr(caltest.resampling._draws, "_BLOCK_BYTES", n_bytes)
    monkeypatch.setattr(caltest.resampling._draws, "_BLOCK_REPLICATES", replicates)
    np.testing.assert_array_equal(null_by(any_default_statistic, scheme, 2), expected)


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
@pytest.mark.parametrize("n_resamples", [1, 17, 257])
def test_fewer_draws_are_the_first_of_more(any_simple_statistic, scheme, n_resamples):
    lens = caltest.Confidence() if isinstance(any_simple_statistic, TWO_OUTCOMES) else None
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
    """One 64-bit number draws a row and, with what is left of it, the outcome."""
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
    lens = caltest.Confidence() if isinstance(any_simple_statistic, TWO_OUTCOMES) else None
    y_true, y_prob = problem(80, 3)
    null = null_of(y_true, y_prob, any_simple_statistic, lens=lens, resampling=scheme, n_resamples=1000)
    other = redraw(y_prob, y_prob, any_simple_statistic, 400, lens, scheme.resample_predictions)
    assert_same_law(null, other)


# A known calibration function.


def sharper(prob):
    """A calibration function: outcomes are more certain than the model says."""
    return prob**2 / (prob**2).sum(axis=1, keepdims=True)


def test_errors_are_centred_on_the_calibration_function(views, any_simple_statistic):
    # Loops over the default grid would take a minute.
    statistic = any_simple_statistic if any_simple_statistic != caltest.SmoothECE() else caltest.SmoothECE(n_points=32)
    for view in views:
        prob, outcome = view.induced
        if (isinstance(any_simple_statistic, TWO_OUTCOMES) and prob.shape[1] > 2) or np.any(prob < 0):
            continue  # squares of a rest below 0 are not what a user would hand in
        result = caltest.calibration_test(
            view.y_true,
            view.y_prob,
            lens=view.lens,
            statistic=statistic,
            resampling=caltest.Consistency(calibration_function=sharper),
            n_resamples=1,
            method="monte-carlo",
            rng=0,
        )
        expected = naive.evaluate(statistic, prob, outcome, expected=sharper(prob))
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
    lens = caltest.Confidence() if isinstance(any_default_statistic, TWO_OUTCOMES) else None
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


@pytest.mark.parametrize("partition", REFITTED, ids=repr)
def test_bootstrapped_multiplicities_equal_copied_rows(partition):
    p = PROBLEMS["ties"](np.random.default_rng(0))
    sample = make_sample(np.random.default_rng(1).random(len(p)) < p**2, p)
    draws = caltest.Bootstrap().draws(40, rng=1)
    general = joint_null([caltest.ECE(partition)], sample, draws)[0]
    np.testing.assert_allclose(caltest.ECE(partition).null(sample, draws), general, rtol=0, atol=1e-12)


TREES = [
    caltest.VarianceTree(),
    caltest.VarianceTree(min_leaf=20),
    caltest.VarianceTree(min_split=30),
    caltest.VarianceTree(min_split=2),
    caltest.VarianceTree(min_leaf=5, max_cells=6),
    caltest.VarianceTree(max_cells=1),
]
CLASSES = {
    "spread": lambda rng: rng.dirichlet(np.ones(4), size=400),
    "ties": lambda rng: rng.multinomial(8, [0.4, 0.3, 0.2, 0.1], size=300) / 8,
    "sharp": lambda rng: rng.dirichlet(np.full(10, 0.02), size=500),
    "twins": lambda rng: np.repeat(rng.dirichlet(np.ones(3), size=200), 2, axis=1) / 2,  # equal columns
    "few": lambda rng: rng.dirichlet(np.ones(3), size=6),
    "constant": lambda _: np.tile([0.5, 0.25, 0.25], (40, 1)),
    "one": lambda _: np.array([[0.5, 0.25, 0.25]]),
}


@pytest.mark.parametrize("scheme", FULL_DRAWS[1:], ids=["rows", "bootstrap"])
@pytest.mark.parametrize("partition", TREES, ids=repr)
@pytest.mark.parametrize("problem", CLASSES)
def test_counted_leaves_equal_copied_rows(partition, problem, scheme):
    """The same draws, trees re-fitted: fast and general path agree to 1e-12."""
    prob = CLASSES[problem](np.random.default_rng(0))
    sample = make_sample(draw_labels(prob[::-1], np.random.default_rng(1)), prob)
    draws = scheme.draws(30, rng=1)
    for statistic in (caltest.ECE(partition), caltest.MCE(partition)):
        general = joint_null([statistic], sample, draws)[0]
        np.testing.assert_allclose(statistic.null(sample, draws), general, rtol=0, atol=1e-12)


@pytest.mark.parametrize("problem", CLASSES)
def test_counted_leaves_are_centred_on_the_calibration_function(problem):
    scheme = caltest.Consistency(resample_predictions=True, calibration_function=sharper)
    prob = CLASSES[problem](np.random.default_rng(0))
    sample = scheme.under_null(make_sample(draw_labels(prob, np.random.default_rng(1)), prob))
    draws = scheme.draws(20, rng=1)
    statistic = caltest.ECE(caltest.VarianceTree(min_leaf=10))
    general = joint_null([statistic], sample, draws)[0]
    np.testing.assert_allclose(statistic.null(sample, draws), general, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_trees_of_more_rows_than_16_bits_count():
    rng = np.random.default_rng(0)
    for prob in (rng.dirichlet(np.ones(3), size=70_000), rng.random(70_000)):
        sample = make_sample(np.zeros(70_000, dtype=int), prob)
        draws = caltest.Consistency(resample_predictions=True).draws(3, rng=1)
        general = joint_null([caltest.ECE()], sample, draws)[0]
        np.testing.assert_allclose(caltest.ECE().null(sample, draws), general, rtol=0, atol=1e-12)


def test_distances_never_see_an_empty_cell():
    """Resampled rows leave cells empty, where chi-squared would divide by 0."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.6, 60)
    for partition in (caltest.EqualWidth(200), caltest.EqualMass(60)):
        statistic = caltest.ECE(partition, lambda g, r: (np.square(r - g) / g).sum(axis=-1))
        sample = make_sample(rng.random(60) < p, p)
        draws = caltest.Consistency(resample_predictions=True).draws(30, rng=1)
        assert any(np.any(sums.count == 0) for sums in draws.cell_sums(sample, partition))
        assert np.all(np.isfinite(statistic.null(sample, draws)))


def test_multiplicities_count_rows_and_events():
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    sample = make_sample(rng.random(3000) < p, p)
    draws = caltest.Consistency(resample_predictions=True).draws(3, rng=1)
    blocks = [(drawn.row, outcomes[0]) for drawn, outcomes in draws.blocks(sample)]
    place = np.argsort(sample.row)
    for (row, outcome), drawn in zip(blocks, draws.multiplicities(sample), strict=True):
        np.testing.assert_array_equal(np.bincount(place[row], minlength=3000), drawn & 255)
        np.testing.assert_array_equal(np.bincount(place[row], weights=outcome, minlength=3000), drawn >> 8)


# Cell sums drawn from their own laws: no outcome, no row is drawn one by one as in the general path.


def labels_by_class(prob):
    """A user's partition: no two classes share a cell."""
    return np.argmax(prob, axis=1)


FIXED = [caltest.EqualWidth(4), caltest.EqualWidth(5, axes="all"), labels_by_class]


def sums_of(draws, sample, partition, general):
    """Share, predicted sums and outcome counts of one partition by either path, ``(n_resamples, ...)``."""
    if not general:
        parts = list(draws.cell_sums(sample, partition))
    else:
        cells = sample.cells(partition)
        place = np.argsort(sample.row)
        parts = []
        for drawn, outcomes in draws.blocks(sample):
            index = cells.index[place[drawn.row]]
            for outcome in outcomes:
                tables = [(1, 1), *((drawn.null_prob[:, k], outcome == k) for k in range(sample.n_outcomes))]
                parts.append(
                    [
                        [np.bincount(index, np.broadcast_to(w, len(index)), cells.n_cells) for w in pair]
                        for pair in tables
                    ]
                )
        table = np.array(parts)  # replicate, outcome, predicted or observed, cell
        return table[:, 0, 0], np.moveaxis(table[:, 1:, 0], 1, -1), np.moveaxis(table[:, 1:, 1], 1, -1)
    observed = np.concatenate([part.observed_count for part in parts])

    def joined(name, shape):
        return np.concatenate([np.broadcast_to(getattr(p, name), (len(p.observed_count), *shape)) for p in parts])

    return joined("count", observed.shape[1:2]), joined("predicted_sum", observed.shape[1:]), observed


@pytest.mark.parametrize("scheme", FULL_DRAWS, ids=["labels", "rows", "bootstrap"])
@pytest.mark.parametrize("partition", FIXED, ids=["4", "5", "user"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_drawn_cell_sums_follow_the_law_of_drawn_rows(scheme, partition, n_classes):
    """Every projection of the sums has the law that rows drawn one by one give it."""
    y_true, y_prob = problem(300, n_classes, seed=3)
    sample = make_sample(y_true, y_prob)
    fast = sums_of(scheme.draws(3000, rng=1), sample, partition, general=False)
    slow = sums_of(scheme.draws(1000, rng=2), sample, partition, general=True)
    np.testing.assert_allclose(fast[0].sum(axis=1), 300)
    np.testing.assert_allclose(fast[1].sum(axis=(1, 2)), 300, rtol=1e-9)
    np.testing.assert_allclose(fast[2].sum(axis=-1), fast[0])
    weights = np.random.default_rng(5)
    for _ in range(3):
        a, b, c = (weights.normal(size=part.shape[1:]) for part in fast)
        one, other = (
            (count * a).sum(axis=1) + (predicted * b).sum(axis=(1, 2)) + (observed * c).sum(axis=(1, 2))
            for count, predicted, observed in (fast, slow)
        )
        assert_same_law(one, other)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_of_large_cells_are_drawn_in_strata(n_classes):
    """A cell of more rows than a stratum holds: mean and variance of its sums are known."""
    n, n_resamples = 5000, 2000
    y_true, y_prob = problem(n, n_classes, seed=4)
    sample = make_sample(y_true, y_prob)
    prob = sample.prob[:, 1]
    (count, predicted, observed) = sums_of(
        caltest.Consistency(resample_predictions=True).draws(n_resamples, rng=3), sample, caltest.EqualWidth(1), False
    )
    np.testing.assert_array_equal(count, n)
    for values, variance in ((predicted, prob.var()), (observed, prob.mean() * (1 - prob.mean()))):
        assert_close(values[:, 0, 1].mean(), n * prob.mean(), np.sqrt(n * variance / n_resamples))
        assert_close(values[:, 0, 1].var(), n * variance, n * variance * np.sqrt(2 / n_resamples))
    residual = observed[:, 0, 1] - predicted[:, 0, 1]
    variance = n * (prob * (1 - prob)).mean()
    assert_close(residual.var(), variance, variance * np.sqrt(2 / n_resamples))


@pytest.mark.parametrize("drift", [0.0, 1e-6])
def test_probability_zero_is_never_drawn_in_a_stratum(drift):
    event = np.repeat([0.0, 0.5, 1.0], 200)
    sample = make_sample((event > 0.2).astype(int), np.column_stack([1 - event, event * (1 - drift * (event < 1))]))
    draws = caltest.Consistency(resample_predictions=True).draws(200, rng=1)
    _, predicted, observed = sums_of(draws, sample, caltest.EqualWidth(3), general=False)
    for cell, outcome in ((0, 1), (2, 0)):
        np.testing.assert_array_equal(observed[:, cell, outcome], 0)
    np.testing.assert_allclose(predicted[:, 2, 1], observed[:, 2, 1], rtol=1e-12, atol=0)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 1000])
def test_alias_tables_draw_their_law(size):
    mass = np.random.default_rng(size).exponential(size=size) ** 4
    if size > 2:
        mass[1] = 0
    tables = AliasTables.of([mass, np.array([0.0, 1.0])]).take(np.array([0, 1, 0]))
    drawn = np.empty((40_000, 3), dtype=np.int64)
    draw_counts(*tables.arrays, np.uint64(7), 0, drawn)
    assert np.all(drawn[:, 1] == 1)
    counts = np.bincount(drawn[:, [0, 2]].ravel(), minlength=size)
    expected = 80_000 * mass / mass.sum()
    assert not np.any(counts[mass == 0])
    likely = expected > 5
    assert_close(
        (np.square(counts - expected)[likely] / expected[likely]).sum(), likely.sum(), np.sqrt(2 * likely.sum()) + 1
    )


# The bootstrap.


def test_bootstrap_keeps_outcomes_with_their_predictions(any_simple_statistic):
    """Against NumPy's own resampling of rows."""
    lens = caltest.Confidence() if isinstance(any_simple_statistic, TWO_OUTCOMES) else None
    y_true, y_prob = problem(80, 3)
    sample = make_sample(y_true, y_prob, lens=lens)
    null = any_simple_statistic.null(sample, caltest.Bootstrap().draws(1000, rng=1))
    rng = np.random.default_rng(9)
    rows = rng.integers(80, size=(400, 80))
    other = [
        caltest.calibration_error(y_true[row], y_prob[row], lens=lens, statistic=any_simple_statistic) for row in rows
    ]
    assert_same_law(null, np.array(other))


def test_bootstrap_gives_no_pvalue():
    with pytest.raises(ValueError, match=r"`resampling` must be a Consistency.*got Bootstrap\(\)"):
        null_of(*problem(20, 3), resampling=caltest.Bootstrap())


@dataclass(frozen=True)
class Halves(caltest.Partition):
    """A user's partition that re-fits itself to two outcomes, as the contract asks."""

    refits = True

    def fit(self, prob):
        middle = np.median(prob[:, 1])
        return lambda new: (new[:, 1] >= middle).astype(np.int64)

    def refit(self, event, drawn):
        return np.tile([0, len(event) // 2, len(event)], (len(drawn), 1))


def test_a_partition_of_the_user_that_refits_serves_three_outcomes():
    """`refit` is a promise about two outcomes; with three the rows are copied and `fit` is called."""
    rng = np.random.default_rng(0)
    prob, rows = rng.dirichlet(np.ones(3), size=50), caltest.Consistency(resample_predictions=True)
    found, plain = (
        caltest.calibration_test(
            rng.integers(3, size=50) * 0, prob, statistic=caltest.ECE(cells), resampling=rows, n_resamples=19, rng=0
        )
        for cells in (Halves(), HalvesOfAnySample())
    )
    assert found.null_distribution.tolist() == plain.null_distribution.tolist()


class HalvesOfAnySample(Halves):
    refits = False
