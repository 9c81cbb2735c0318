"""Resampled observations: from the right distribution, and counted as if they had been copied."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import caltest
from caltest._compiled._draws import random_words
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.resampling.draws._alias_tables import Strata
from caltest.resampling.draws._rows import BootstrapDraws, LeftOut, RowDraws
from caltest.resampling.draws._summaries import CellCounts
from caltest.resampling.engine._evaluation import null_values
from caltest.results._naming import describe
from tests.reference.cases import failures, mostly_slow
from tests.reference.examples import draw_labels, plain_statistics, simple_statistics
from tests.resampling.checks import (
    LABELS,
    ROWS,
    assert_close,
    assert_same_distribution,
    general_null,
    problem,
    sample_for,
)
from tests.resampling.draws.test_signs import problem as of_groups

KINDS = {"rows": RowDraws, "bootstrap": BootstrapDraws}


def assert_refitted_as_copied(partition, sample, draws):
    """Average and largest distances of cells that are fitted again to every resample, counted and copied."""
    statistics = caltest.ECE(partition), caltest.MCE(partition)
    assert all(draws.summarise(sample, statistic.summary(sample)) is not None for statistic in statistics)
    copied = [[statistic.evaluate(*block) for statistic in statistics] for block in draws.blocks(sample)]
    for statistic, expected in zip(statistics, np.concatenate(copied, axis=1), strict=True):
        np.testing.assert_allclose(null_values(statistic, sample, draws), expected, rtol=0, atol=1e-12)


def sharper(prob):
    """A calibration function: outcomes are more certain than predicted."""
    return prob**2 / (prob**2).sum(axis=1, keepdims=True)


# The distribution of the draws.


@pytest.mark.parametrize("n", mostly_slow([1, 7, 700]))
def test_observations_are_drawn_uniformly_with_replacement(n):
    n_resamples = 2000
    sample = make_sample(np.zeros(n, dtype=int), np.full(n, 0.5))
    rows = np.stack([resampled.row for resampled, _ in RowDraws.of(n_resamples, 4).blocks(sample)])
    assert rows.shape == (n_resamples, n)
    assert np.all(np.diff(rows, axis=1) >= 0)
    counts = np.bincount(rows.ravel(), minlength=n)
    chi_squared = ((counts - n_resamples) ** 2 / n_resamples).sum()
    assert_close(chi_squared, n - 1, np.sqrt(2 * (n - 1)))
    distinct = np.array([len(np.unique(row)) for row in rows])
    mean = n * (1 - (1 - 1 / n) ** n)
    assert_close(distinct.mean(), mean, distinct.std() / np.sqrt(n_resamples) + 1e-12)


def test_outcomes_and_rows_are_independent():
    """One 64-bit number draws an observation and, with what is left of it, the outcome."""
    prob = np.column_stack([1 - np.linspace(0.1, 0.9, 400), np.linspace(0.1, 0.9, 400)])
    sample = make_sample(np.zeros(400, dtype=int), prob)
    residual, spread = 0.0, 0.0
    for resampled, outcomes in RowDraws.of(500, 2).blocks(sample):
        residual += ((outcomes[0] - resampled.event) * (resampled.event - 0.5)).sum()
        spread += (resampled.event * (1 - resampled.event) * (resampled.event - 0.5) ** 2).sum()
    assert_close(residual, 0, np.sqrt(spread))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_bootstrap_keeps_outcomes_with_their_predictions(n_classes):
    sample = make_sample(*problem(60, n_classes))
    for resampled, outcomes in BootstrapDraws.of(20, 0).blocks(sample):
        np.testing.assert_array_equal(outcomes[0], resampled.outcome)
        assert len(np.unique(resampled.row)) < 60
    counts = BootstrapDraws.of(20, 0).row_counts(sample.n_samples)
    blocks = BootstrapDraws.of(20, 0).blocks(sample)
    place = np.argsort(sample.row)
    expected = [np.bincount(place[resampled.row], minlength=60) for resampled, _ in blocks]
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.slow
def test_bootstrapped_statistics_against_numpys_resampling():
    def check(statistic):
        y_true, y_prob = problem(80, 3)
        values = null_values(statistic, sample_for(statistic, y_true, y_prob), BootstrapDraws.of(200, rng=1))
        rows = np.random.default_rng(9).integers(80, size=(120, 80))
        samples = [sample_for(statistic, y_true[row], y_prob[row]) for row in rows]
        other = [float(statistic.evaluate(sample, sample.outcome)) for sample in samples]
        assert_same_distribution(values, np.array(other))

    assert failures({describe(statistic): statistic for statistic in plain_statistics()}, check) == {}


# Partitions that are fitted again: the same draws, counted or copied.


def left_out(sample):
    """Observations without one of 7 groups whose sizes differ by 1, and of squares modulo 13, in no order."""
    n = sample.n_samples
    even, uneven = np.random.default_rng(3).permutation(n) % 7, np.random.default_rng(4).permutation(n) ** 2 % 13
    groups = (np.unique(group, return_inverse=True)[1] for group in (even, uneven))
    return [LeftOut.each(group) for group in groups if n > 1]


EVENTS = {
    "spread": lambda rng: rng.random(400),
    "ties": lambda rng: rng.integers(0, 21, 300) / 20,
    "sharp": lambda rng: 1 / (1 + np.exp(-6 * rng.normal(size=500))),
    "few": lambda rng: rng.random(7),
    "constant": lambda _: np.full(50, 0.3),
    "one": lambda _: np.array([0.4]),
}
CLASSES = {
    "spread": lambda rng: rng.dirichlet(np.ones(4), size=400),
    "ties": lambda rng: rng.multinomial(8, [0.4, 0.3, 0.2, 0.1], size=300) / 8,
    "sharp": lambda rng: rng.dirichlet(np.full(10, 0.02), size=500),
    "twins": lambda rng: np.repeat(rng.dirichlet(np.ones(3), size=200), 2, axis=1) / 2,  # equal columns
    "few": lambda rng: rng.dirichlet(np.ones(3), size=6),
    "constant": lambda _: np.tile([0.5, 0.25, 0.25], (40, 1)),
    "one": lambda _: np.array([[0.5, 0.25, 0.25]]),
}
TREES = [
    caltest.VarianceTree(),
    caltest.VarianceTree(min_leaf=20),
    caltest.VarianceTree(min_split=30),
    caltest.VarianceTree(min_split=2),
    caltest.VarianceTree(min_leaf=5, max_cells=6),
    caltest.VarianceTree(max_cells=1),
]


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    "partition", mostly_slow([TREES[0], caltest.EqualMass(8), caltest.EqualMass("sqrt"), *TREES[1:]], 2), ids=repr
)
def test_refitted_intervals_equal_copied_observations(partition):
    """Two outcomes."""

    def check(make):
        p = make(np.random.default_rng(0))
        sample = make_sample(np.random.default_rng(1).random(len(p)) < p**2, p)
        assert partition.refits
        for draws in (RowDraws.of(20, rng=1), BootstrapDraws.of(20, rng=1), *left_out(sample)):
            assert_refitted_as_copied(partition, sample, draws)

    assert failures(EVENTS, check) == {}


@pytest.mark.parametrize("partition", mostly_slow(TREES[::-1], 2), ids=repr)
def test_refitted_leaves_equal_copied_observations(partition):
    """More than two outcomes."""

    def check(make):
        prob = make(np.random.default_rng(0))
        sample = make_sample(draw_labels(prob[::-1], np.random.default_rng(1)), prob)
        assert partition.refits_classes
        for draws in (RowDraws.of(20, rng=1), BootstrapDraws.of(20, rng=1), *left_out(sample)):
            assert_refitted_as_copied(partition, sample, draws)

    assert failures(CLASSES, check) == {}


@pytest.mark.parametrize("n_classes", mostly_slow([2, 3]))
@pytest.mark.parametrize("partition", [caltest.EqualWidth(5), caltest.EqualWidth(1), lambda p: (p[:, 0] > 0.3) + 0])
def test_observations_that_are_left_out_of_fixed_cells(partition, n_classes):
    """Also where some cells lose all observations, and where outcomes are simulated from other probabilities."""
    for n in (2, 40, 700):
        sample = make_sample(*problem(n, n_classes))
        sample = replace(sample, given_null=sharper(sample.prob))
        for draws in left_out(sample):
            assert_refitted_as_copied(partition, sample, draws)


def test_a_group_that_is_left_out_is_whole():
    """One replicate for each group, with the labels of the observations that are kept."""
    y_true, prob, group = of_groups(60, 3, 9)
    sample = make_sample(y_true, prob)
    blocks = list(LeftOut.each(group[sample.row]).blocks(sample))
    assert len(blocks) == 9
    for g, (kept, outcomes) in enumerate(blocks):
        np.testing.assert_array_equal(np.sort(kept.row), np.flatnonzero(group != g))
        np.testing.assert_array_equal(outcomes[0], y_true[kept.row])


@pytest.mark.slow
def test_refitted_leaves_of_any_number_of_classes():
    """Sums are made of four classes at a time; the last row has no next one to read what is left over from."""

    def check(n_classes):
        rng = np.random.default_rng(n_classes)
        for n in (2, 63):
            prob = rng.dirichlet(np.full(n_classes, 0.3), size=n)
            sample = make_sample(draw_labels(prob, rng), prob)
            assert_refitted_as_copied(caltest.VarianceTree(min_leaf=4), sample, RowDraws.of(4, rng=1))

    assert failures({str(k): k for k in (3, 5, 6, 7, 1000)}, check) == {}


@pytest.mark.slow(few_draws=True)
def test_refitted_leaves_are_centred_on_the_calibration_function():
    scheme = caltest.Consistency(resample_predictions=True, calibration_function=sharper)
    statistic = caltest.ECE(caltest.VarianceTree(min_leaf=10))

    def check(make):
        prob = make(np.random.default_rng(0))
        sample = scheme.under_null(make_sample(draw_labels(prob, np.random.default_rng(1)), prob))
        draws = scheme.draws(20, rng=1)
        expected = general_null(statistic, sample, draws)
        np.testing.assert_allclose(null_values(statistic, sample, draws), expected, rtol=0, atol=1e-12)

    assert failures(CLASSES, check) == {}


def test_means_of_trees_are_not_refitted_to_counts():
    """Rounding may move a mean across a value: observations are copied instead."""
    partition = caltest.VarianceTree(split="mean", min_split=20)
    for n_classes in (2, 3):
        sample = make_sample(*problem(60, n_classes))
        assert RowDraws.of(5, 0).summarise(sample, CellCounts(partition)) is None


@pytest.mark.slow
def test_trees_of_more_rows_than_16_bits_count():
    rng = np.random.default_rng(0)
    for prob in (rng.dirichlet(np.ones(3), size=70_000), rng.random(70_000)):
        sample = make_sample(np.zeros(70_000, dtype=int), prob)
        draws = RowDraws.of(3, rng=1)
        expected = general_null(caltest.ECE(), sample, draws)
        np.testing.assert_allclose(null_values(caltest.ECE(), sample, draws), expected, rtol=0, atol=1e-12)


def test_distances_are_not_evaluated_in_empty_cells():
    """Resampled observations leave cells empty, where chi-squared would divide by 0."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.6, 60)
    for partition in (caltest.EqualWidth(200), caltest.EqualMass(60)):
        statistic = caltest.ECE(partition, lambda g, r: (np.square(r - g) / g).sum(axis=-1))
        sample = make_sample(rng.random(60) < p, p)
        draws = RowDraws.of(30, rng=1)
        assert any(np.any(sums.count == 0) for sums in draws.summarise(sample, CellCounts(partition)))
        assert np.all(np.isfinite(null_values(statistic, sample, draws)))


def test_multiplicities_count_observations_and_events():
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    sample = make_sample(rng.random(3000) < p, p)
    draws = RowDraws.of(3, rng=1)
    blocks = [(drawn.row, outcomes[0]) for drawn, outcomes in draws.blocks(sample)]
    place = np.argsort(sample.row)
    for (row, outcome), drawn in zip(blocks, draws.multiplicities(sample), strict=True):
        np.testing.assert_array_equal(np.bincount(place[row], minlength=3000), drawn & 255)
        np.testing.assert_array_equal(np.bincount(place[row], weights=outcome, minlength=3000), drawn >> 8)


# A user's partition.


@dataclass(frozen=True)
class Halves(caltest.predictions.Partition):
    """Re-fits itself to two outcomes, as the contract asks."""

    refits = True

    def fit(self, prob):
        middle = np.median(prob[:, 1])
        return lambda new: (new[:, 1] >= middle).astype(np.int64)

    def refit(self, event, drawn):
        starts = [self._cut(event, times) for times in (drawn & 255).astype(int)]
        return np.array([[0, start, len(event)] for start in starts])

    @staticmethod
    def _cut(event, times):
        return int(np.searchsorted(event, np.median(np.repeat(event, times))))


class CopiedHalves(Halves):
    """The same cells, without the promise."""

    refits = False


@dataclass(frozen=True)
class HalvesOfClasses(Halves):
    """Re-fits itself to any number of outcomes."""

    refits_classes = True

    def refit_classes(self, sample, rows, outcomes):
        counts, predicted, observed = [], [], []
        for row, outcome in zip(rows, outcomes, strict=True):
            high = (sample.prob[row, 1] >= np.median(sample.prob[row, 1])).astype(int)
            cells = np.eye(2)[high]
            counts.append(cells.sum(axis=0))
            predicted.append(cells.T @ sample.null_prob[row])
            observed.append(cells.T @ np.eye(sample.n_outcomes)[outcome])
        return np.array(counts), np.array(predicted), np.array(observed)


@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_partition_of_the_user_that_refits(n_classes):
    """`refit` is about two outcomes; with three observations are copied, unless there is `refit_classes`."""
    y_true, prob = problem(50, n_classes)
    sample = make_sample(y_true, prob)
    for draws in left_out(sample):
        assert_refitted_as_copied(HalvesOfClasses(), sample, draws)
    summarised = {kind: ROWS.draws(5, 0).summarise(sample, CellCounts(kind())) is not None for kind in KINDS_OF_HALVES}
    assert summarised == {Halves: n_classes == 2, CopiedHalves: False, HalvesOfClasses: True}
    options = {"resampling": ROWS, "n_resamples": 19, "rng": 0, "method": "monte-carlo"}
    nulls = [
        caltest.calibration_test(y_true, prob, statistic=caltest.ECE(kind()), **options).null_distribution
        for kind in KINDS_OF_HALVES
    ]
    for null in nulls[1:]:
        np.testing.assert_allclose(null, nulls[0], rtol=0, atol=1e-12)


KINDS_OF_HALVES = (Halves, CopiedHalves, HalvesOfClasses)


# Fixed cells: sums are drawn from their own distributions, no observation is drawn one by one as in the general path.


def labels_by_class(prob):
    """A user's partition: no two classes share a cell."""
    return np.argmax(prob, axis=1)


FIXED = {
    "width 4": caltest.EqualWidth(4),
    "width 5, all axes": caltest.EqualWidth(5, axes="all"),
    "user": labels_by_class,
}


def fast_sums(draws, sample, partition):
    """Counts, predicted sums and outcome counts by the summary, ``(n_resamples, ...)``."""
    parts = list(draws.summarise(sample, CellCounts(partition)))
    observed = np.concatenate([part.observed_count for part in parts])

    def joined(name, shape):
        return np.concatenate([np.broadcast_to(getattr(p, name), (len(p.observed_count), *shape)) for p in parts])

    return joined("count", observed.shape[1:2]), joined("predicted_sum", observed.shape[1:]), observed


def copied_sums(draws, sample, partition):
    """The same from copied observations, in the cells of the sample."""
    cells = cells_of(sample, partition)
    place = np.argsort(sample.row)
    parts = []
    for drawn, outcomes in draws.blocks(sample):
        index = cells.index[place[drawn.row]]
        for outcome in outcomes:
            tables = [(1, 1), *((drawn.null_prob[:, k], outcome == k) for k in range(sample.n_outcomes))]
            parts.append(
                [[np.bincount(index, np.broadcast_to(w, len(index)), cells.n_cells) for w in pair] for pair in tables]
            )
    table = np.array(parts)  # replicate, outcome, predicted or observed, cell
    return table[:, 0, 0], np.moveaxis(table[:, 1:, 0], 1, -1), np.moveaxis(table[:, 1:, 1], 1, -1)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("make", [LABELS.draws, RowDraws.of, BootstrapDraws.of], ids=["labels", "rows", "bootstrap"])
def test_drawn_cell_sums_follow_the_distribution_of_drawn_observations(make, n_classes):
    """Every projection of the sums has the distribution that observations drawn one by one give it."""
    y_true, y_prob = problem(300, n_classes, seed=3)
    sample = make_sample(y_true, y_prob)
    for name, partition in FIXED.items():
        fast = fast_sums(make(3000, rng=1), sample, partition)
        slow = copied_sums(make(1000, rng=2), sample, partition)
        np.testing.assert_allclose(fast[0].sum(axis=1), 300, err_msg=name)
        np.testing.assert_allclose(fast[1].sum(axis=(1, 2)), 300, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(fast[2].sum(axis=-1), fast[0], err_msg=name)
        weights = np.random.default_rng(5)
        for _ in range(3):
            a, b, c = (weights.normal(size=part.shape[1:]) for part in fast)
            one, other = (
                (count * a).sum(axis=1) + (predicted * b).sum(axis=(1, 2)) + (observed * c).sum(axis=(1, 2))
                for count, predicted, observed in (fast, slow)
            )
            assert_same_distribution(one, other, name)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_observations_of_large_cells_are_drawn_in_strata(n_classes):
    """A cell of more observations than a stratum holds: mean and variance of its sums are known."""
    n, n_resamples = 5000, 2000
    sample = make_sample(*problem(n, n_classes, seed=4))
    prob = sample.prob[:, 1]
    count, predicted, observed = fast_sums(RowDraws.of(n_resamples, rng=3), sample, caltest.EqualWidth(1))
    np.testing.assert_array_equal(count, n)
    for values, variance in ((predicted, prob.var()), (observed, prob.mean() * (1 - prob.mean()))):
        assert_close(values[:, 0, 1].mean(), n * prob.mean(), np.sqrt(n * variance / n_resamples))
        assert_close(values[:, 0, 1].var(), n * variance, n * variance * np.sqrt(2 / n_resamples))
    residual = observed[:, 0, 1] - predicted[:, 0, 1]
    variance = n * (prob * (1 - prob)).mean()
    assert_close(residual.var(), variance, variance * np.sqrt(2 / n_resamples))


@pytest.mark.parametrize("drift", [0.0, 1e-7])
def test_probability_zero_is_never_drawn_in_a_stratum(drift):
    """With drift the two probabilities do not sum to 1, and both outcomes are drawn as classes."""
    event = np.repeat([0.0, 0.5, 1.0], 200)
    sample = make_sample((event > 0.2).astype(int), np.column_stack([1 - event, event * (1 - drift * (event < 1))]))
    _, predicted, observed = fast_sums(RowDraws.of(200, rng=1), sample, caltest.EqualWidth(3))
    for cell, outcome in ((0, 1), (2, 0)):
        np.testing.assert_array_equal(observed[:, cell, outcome], 0)
    np.testing.assert_allclose(predicted[:, 2, 1], observed[:, 2, 1], rtol=1e-12, atol=0)


def events_one_by_one(sample, partition, draws):
    """Counts, predicted sums and event counts of the strata of one replicate, in a loop over its random numbers."""
    strata = Strata.of(cells_of(sample, partition).index, cells_of(sample, partition).n_cells)
    words = np.empty((1, 2**14), dtype=np.uint64)
    random_words(draws.seed, draws.first, words)
    stream = iter(words[0].tolist())

    def take(n):
        """Numbers are made 32 at a time; what is left over is not used."""
        some = [next(stream) for _ in range(-(-n // 32) * 32)]
        return some[:n]

    def look_up(word, table):
        begin, end = strata.tables.begin[table], strata.tables.end[table]
        product = word * int(end - begin)
        number, fraction = product >> 64, product >> 32 & 0xFFFFFFFF
        entry = begin + number
        return number if fraction < strata.tables.thresholds[entry] else int(strata.tables.alias[entry])

    n, n_strata = sample.n_samples, len(strata.start) - 1
    counts = [n + 1]
    while sum(counts) > n:
        counts = [look_up(word, table) for table, word in enumerate(take(n_strata))]
    for word in take(n - sum(counts)):
        counts[look_up(word, n_strata)] += 1
    predicted, events = np.zeros(n_strata), np.zeros(n_strata)
    for b, count in enumerate(counts):
        rows = strata.row[strata.start[b] : strata.start[b + 1]]
        for word in take(count):
            p = sample.null_prob[rows[(word >> 32) * len(rows) >> 32], 1]
            predicted[b] += p
            events[b] += (word & 0xFFFFFFFF) / 2**32 < p
    return tuple(strata.sum_by_cell(np.array(values)[None])[0] for values in (counts, predicted, events))


@pytest.mark.parametrize("n", mostly_slow([1, 2, 63, 3000]))
def test_drawn_sums_equal_a_loop_over_the_same_random_numbers(n):
    def check(make):
        p = make(np.random.default_rng(n), n)
        sample = make_sample((p > 0.5).astype(int), p)
        for partition in (caltest.EqualWidth(15), caltest.EqualWidth(1)):
            draws = RowDraws.of(3, rng=1)
            count, predicted, observed = fast_sums(draws, sample, partition)
            for r, draw in enumerate(draws.slices(1)):
                expected = events_one_by_one(sample, partition, draw)
                found = count[r], predicted[r, :, 1], observed[r, :, 1]
                for value, wanted in zip(found, expected, strict=True):
                    np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12 * n)

    kinds = {
        "spread": lambda rng, n: rng.random(n),
        "ties": lambda rng, n: rng.integers(0, 11, n) / 10,
        "certain": lambda rng, n: rng.integers(0, 2, n).astype(float),
        "rare": lambda rng, n: np.full(n, 0.001),
    }
    assert failures(kinds, check) == {}


# Every statistic.


@pytest.mark.slow
def test_summaries_agree_with_the_general_path():
    """Cells that are fitted again: the same draws; cells that stay: the same distribution."""

    def check(statistic):
        for n_classes in (2, 3):
            sample = sample_for(statistic, *problem(70, n_classes))
            summary = statistic.summary(sample)
            for make in KINDS.values():
                draws = make.of(1000, 1)
                if summary is None or draws.summarise(sample, summary) is None:
                    continue
                if getattr(summary.partition, "depends_on_sample", False):
                    some = draws.slices(12)[0]
                    one, other = null_values(statistic, sample, some), general_null(statistic, sample, some)
                    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
                    continue
                other = general_null(statistic, sample, draws.slices(100)[0])
                if np.ptp(other) > 1e-12:
                    assert_same_distribution(null_values(statistic, sample, draws), other)

    assert failures({describe(statistic): statistic for statistic in simple_statistics()}, check) == {}


def test_weights_have_no_summary():
    sample = make_sample(*problem(40, 3), sample_weight=np.arange(1.0, 41.0))
    for make in KINDS.values():
        assert make.of(5, 0).summarise(sample, CellCounts(caltest.EqualWidth(3))) is None
        for drawn, _ in make.of(3, 0).blocks(sample):
            np.testing.assert_allclose(drawn.weight * 20.5, drawn.row + 1, rtol=1e-14)


def test_the_bootstrap_draws_whole_groups():
    y_true, prob, group = of_groups(90, 3, 9)
    sample = make_sample(y_true, prob, groups=group)
    for drawn, outcomes in BootstrapDraws.of(5, 0).blocks(sample):
        assert np.array_equal(outcomes[0], drawn.outcome)
        times = np.bincount(drawn.group, minlength=9) / 10
        assert times.sum() == 9
        assert np.array_equal(times, np.rint(times))
    grouped = caltest.bootstrap_interval(y_true, prob, groups=group, n_resamples=99, rng=0)
    assert grouped.estimate == caltest.calibration_error(y_true, prob)
    weighted = caltest.bootstrap_interval(y_true, prob, sample_weight=np.arange(90), n_resamples=49, rng=0)
    assert weighted.estimate == caltest.calibration_error(y_true, prob, sample_weight=np.arange(90))
