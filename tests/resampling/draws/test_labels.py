"""Simulated labels: from the right distribution, and the same whatever the threads and blocks."""

import os

import numpy as np
import pytest

import caltest
import caltest.resampling.draws._labels
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._summaries import CellCounts, EntryCounts
from caltest.resampling.engine._evaluation import null_values
from caltest.results._naming import describe
from tests.reference.cases import failures, mostly_slow
from tests.reference.examples import default_statistics, draw_labels, plain_statistics, simple_statistics
from tests.resampling.checks import (
    LABELS,
    ROWS,
    STANDARD_ERRORS,
    assert_close,
    assert_same_distribution,
    general_null,
    nulls_of,
    problem,
    sample_for,
)

DEFAULTS = {describe(statistic): statistic for statistic in default_statistics()}
SCHEMES = pytest.mark.parametrize("scheme", [LABELS, ROWS], ids=["labels", "rows"])


def drawn(prob, n_resamples, rng=1, scheme=LABELS):
    """Outcomes ``(n_resamples, n_samples)`` in the caller's order, drawn for predictions."""
    sample = make_sample(np.zeros(len(prob), dtype=int), prob)
    outcomes = np.concatenate([block for _, block in scheme.draws(n_resamples, rng).blocks(sample)])
    in_order = np.empty_like(outcomes)
    in_order[:, sample.row] = outcomes
    return in_order


# The same null distribution whatever the work is cut into.


def null_by(statistic, scheme, workers=1, n_resamples=None):
    """The null distribution of a statistic, more draws than a block holds."""
    n, many = (40, 40) if scheme is ROWS else (60, 80)
    sample = sample_for(statistic, *problem(n, 3))
    return nulls_of(statistic, sample, scheme.draws(many if n_resamples is None else n_resamples, 3), workers)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("scheme", [LABELS, pytest.param(ROWS, marks=pytest.mark.nightly)], ids=["labels", "rows"])
def test_workers_blocks_and_their_number_do_not_matter(scheme, monkeypatch):
    expected = {name: null_by(statistic, scheme) for name, statistic in DEFAULTS.items()}

    def check(name):
        np.testing.assert_array_equal(null_by(DEFAULTS[name], scheme, 3), expected[name])
        for n_resamples in (1, 37):
            few = null_by(DEFAULTS[name], scheme, 1, n_resamples)
            np.testing.assert_array_equal(few, expected[name][:, :n_resamples])
        for n_bytes, replicates, n_resamples in [(1, (1, 1), 19), (2**21, (3, 7), None)]:
            with monkeypatch.context() as patch:
                patch.setattr(caltest.resampling.draws._labels, "_BLOCK_BYTES", n_bytes)
                patch.setattr(caltest.resampling.draws._labels, "_BLOCK_REPLICATES", replicates)
                cut = null_by(DEFAULTS[name], scheme, 2, n_resamples)
                np.testing.assert_array_equal(cut, expected[name][:, :n_resamples])

    assert failures(list(DEFAULTS), check) == {}


def test_all_processors_draw_the_same(monkeypatch):
    sample = make_sample(*problem(100, 3))
    expected = nulls_of(caltest.ECE(), sample, LABELS.draws(99, 0))
    for count in (3, None):  # None: a system that does not tell
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        np.testing.assert_array_equal(nulls_of(caltest.ECE(), sample, LABELS.draws(99, 0), -1), expected)


def test_progress_is_reported():
    calls = []
    sample = make_sample(*problem(30, 3))
    null = nulls_of(caltest.ECE(), sample, LABELS.draws(600, 0), 2, lambda done, total: calls.append((done, total)))
    assert null.shape == (1, 600)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1] == (600, 600)


def test_seeds_decide():
    sample = make_sample(*problem(100, 3))

    def null(seed):
        return null_values(caltest.ECE(), sample, LABELS.draws(50, seed))

    for seed in (7, np.int64(7), np.random.default_rng(7)):
        np.testing.assert_array_equal(null(seed), null(np.random.default_rng(7)))
    assert np.any(null(8) != null(7))
    assert np.any(null(None) != null(None))
    rng = np.random.default_rng(7)
    assert np.any(null(rng) != null(rng))  # a generator moves on


def test_labels_do_not_matter_to_the_null_distribution():
    y_true, y_prob = problem(100, 3)
    one, other = (
        null_values(caltest.ECE(), make_sample(labels, y_prob), LABELS.draws(50, 0))
        for labels in (y_true, y_true[::-1])
    )
    np.testing.assert_array_equal(one, other)


def test_slices_cover_all_replicates():
    draws = LABELS.draws(10, 0)
    parts = draws.slices(4)
    assert [(part.first, part.n_resamples) for part in parts] == [(0, 4), (4, 4), (8, 2)]
    assert [(part.first, part.n_resamples) for part in parts[1].slices(3)] == [(4, 3), (7, 1)]
    assert {part.seed for part in parts} == {draws.seed}


# The distribution of the draws.


@pytest.mark.parametrize(("n_classes", "dtype"), [(2, np.uint8), (3, np.uint8), (256, np.uint8), (300, np.uint16)])
def test_frequencies_of_drawn_outcomes(n_classes, dtype):
    n, n_resamples = 50, 4000
    prob = np.random.default_rng(n_classes).dirichlet(np.full(n_classes, 5.0), size=n)
    outcomes = drawn(prob, n_resamples)
    assert outcomes.dtype == dtype
    assert outcomes.max() < n_classes
    cells = outcomes.astype(np.int64) + n_classes * np.arange(n)
    counts = np.bincount(cells.ravel(), minlength=n * n_classes).reshape(n, n_classes)
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


def test_probability_zero_is_never_drawn():
    for place in (0, 1, 2):
        prob = np.insert(np.full((1000, 2), 0.5), place, 0.0, axis=1)
        outcomes = drawn(prob, 500)
        assert not np.any(outcomes == place), place
        for k in {0, 1, 2} - {place}:
            assert np.any(outcomes == k), (place, k)


def test_probability_one_is_always_drawn():
    for n_classes in (2, 3, 5):
        certain = np.arange(2000) % n_classes
        assert np.all(drawn(np.eye(n_classes)[certain], 500) == certain), n_classes


def test_certain_by_rounding():
    """What a user's lens returns may miss 1 and lie below 0: it is clipped and normalised to simulate labels."""
    drift = np.tile([0.6, 0.40001, -1e-5], (500, 1))
    sample = make_sample(np.zeros(500, dtype=int), np.full((500, 3), 1 / 3), lens=lambda _, outcome: (drift, outcome))
    assert np.all(sample.prob[:, 2] < 0)
    outcomes = np.concatenate([block for _, block in LABELS.draws(200, 1).blocks(sample)])
    assert not np.any(outcomes == 2)
    share = 0.6 / 1.00001
    assert_close(np.mean(outcomes == 0), share, np.sqrt(share * (1 - share) / outcomes.size))


def test_small_probabilities_are_drawn():
    prob = np.tile([1 - 2e-4, 1e-4, 1e-4], (1000, 1))
    outcomes = drawn(prob, 500)
    for k in (1, 2):
        assert_close(np.mean(outcomes == k), 1e-4, np.sqrt(1e-4 / outcomes.size))


# The distribution of statistics.


@pytest.mark.parametrize("n_classes", mostly_slow([2, 3, 10]))
def test_mean_square_of_a_single_cell_has_a_closed_form(n_classes):
    """E |S / n|^2 = sum p (1 - p) / n^2, with predictions fixed or resampled."""
    y_true, y_prob = problem(150, n_classes)
    sample = make_sample(y_true, y_prob)
    statistic = caltest.ECE(caltest.EqualWidth(1), caltest.predictions.squared_euclidean)
    for scheme, n_resamples in ((LABELS, 20_000), (ROWS, 4000)):
        null = null_values(statistic, sample, scheme.draws(n_resamples, 3))
        assert_close(null.mean(), (y_prob * (1 - y_prob)).sum() / 150**2, null.std() / np.sqrt(n_resamples), scheme)


def test_the_score_has_mean_zero_and_a_known_variance():
    y_true, y_prob = problem(200, 4)
    sample = make_sample(y_true, y_prob)
    score = caltest.TemperatureScore()
    signed = np.concatenate([score.signed(sample, outcomes) for _, outcomes in LABELS.draws(5000, 5).blocks(sample)])
    log_prob = np.log(y_prob)
    variance = ((y_prob * log_prob**2).sum(axis=1) - (y_prob * log_prob).sum(axis=1) ** 2).sum()
    assert_close(signed.mean(), 0, np.sqrt(variance / 5000))
    assert_close(signed.var(), variance, variance * np.sqrt(3 / 5000))


PLAIN = {describe(statistic): statistic for statistic in plain_statistics()}


def draw_by_numpy(statistic, y_prob, scheme, n_resamples):
    """The null distribution by NumPy's generator, one draw after the other."""
    rng = np.random.default_rng(123456)
    if scheme is ROWS:
        values = []
        for row in rng.integers(len(y_prob), size=(n_resamples, len(y_prob))):
            sample = sample_for(statistic, draw_labels(y_prob[row], rng), y_prob[row])
            values.append(float(statistic.evaluate(sample, sample.outcome)))
        return np.array(values)
    labels = [draw_labels(y_prob, rng) for _ in range(n_resamples)]
    samples = [sample_for(statistic, drawn, y_prob) for drawn in labels]
    return statistic.evaluate(samples[0], np.stack([sample.outcome for sample in samples]))


@pytest.mark.slow
@SCHEMES
def test_another_generator_draws_the_same_distribution(scheme):
    def check(statistic):
        y_true, y_prob = problem(80, 3)
        few, many = (100, 200) if scheme is ROWS else (200, 500)
        null = null_values(statistic, sample_for(statistic, y_true, y_prob), scheme.draws(many, 3))
        assert_same_distribution(null, draw_by_numpy(statistic, y_prob, scheme, few))

    assert failures(PLAIN, check) == {}


# Summaries.


@pytest.mark.slow(few_draws=True)
def test_summaries_count_the_labels_of_the_general_path():
    """Predictions fixed: counts of classes in cells and of entries are those of the same draws."""

    def check(statistic):
        for n_classes in (2, 4):
            sample = sample_for(statistic, *problem(70, n_classes))
            draws = LABELS.draws(40, 1)
            summary = statistic.summary(sample)
            counts_cells = isinstance(summary, CellCounts) and sample.n_outcomes > 2
            fast = counts_cells or isinstance(summary, EntryCounts)
            if not fast:
                continue
            assert draws.summarise(sample, summary) is not None
            expected = general_null(statistic, sample, draws)
            np.testing.assert_allclose(null_values(statistic, sample, draws), expected, rtol=0, atol=1e-12)

    assert failures({describe(statistic): statistic for statistic in simple_statistics()}, check) == {}
    kinds = {type(statistic.summary(sample_for(statistic, *problem(20, 3)))).__name__ for statistic in PLAIN.values()}
    of_paths = {"PathExtremes", "LargestExcursion"}
    assert kinds == {"NoneType", "CellCounts", "EntryCounts", "EntrySums", *of_paths}


def test_weights_and_two_outcomes():
    """Weighted samples have no summary; the counts of two outcomes are drawn from their own distributions."""
    y_true, y_prob = problem(60, 2)
    draws = LABELS.draws(4000, 1)
    for statistic in (caltest.ECE(), caltest.statistics.SCE()):
        weighted = make_sample(y_true, y_prob, sample_weight=np.arange(60.0))
        assert draws.summarise(weighted, statistic.summary(weighted)) is None
        expected = general_null(statistic, weighted, draws.slices(50)[0])
        np.testing.assert_array_equal(null_values(statistic, weighted, draws.slices(50)[0]), expected)
        sample = make_sample(y_true, y_prob)
        assert_same_distribution(null_values(statistic, sample, draws), general_null(statistic, sample, draws))


def test_two_threads_have_parts_as_long_as_one():
    """What a part prepares for all its replicates, such as records of many classes, is not prepared more often."""
    draws, lengths = caltest.Consistency().draws(999, 0), {}
    for workers in (1, 2, 8):
        parts = draws.map(lambda part: np.full(part.n_resamples, part.n_resamples), workers)
        lengths[workers] = parts.max()
        assert len(parts) == 999
        assert 999 / lengths[workers] >= workers
    assert lengths[1] == lengths[2] > lengths[8]


def test_many_classes_are_drawn_in_one_part_while_labels_take_little_memory(monkeypatch):
    draws = caltest.Consistency().draws(999, 0)

    def parts(n_classes):
        sample = make_sample(np.zeros(100, dtype=int), np.full((100, n_classes), 1 / n_classes))
        least, found = draws.least_together(sample), []
        draws.map(lambda part: np.zeros(found.append(part.n_resamples) or 1), 1, None, least)
        return found

    assert parts(1000) == [999]
    assert parts(3) == [250, 250, 250, 249]
    monkeypatch.setattr(caltest.resampling.draws._labels, "_PART_BYTES", 2**16)
    assert parts(1000) == [327, 327, 327, 18]  # labels of two bytes
