"""Labels of many classes: the right probabilities, the labels of a loop in Python, the same however they are cut."""

from dataclasses import replace

import numpy as np
import pytest

import caltest
from caltest._compiled._alias import fill_row_records
from caltest.predictions._sample import make_sample
from caltest.resampling.draws import _alias_tables as _many_labels
from caltest.resampling.draws import _labels as _draws
from caltest.resampling.draws._summaries import EntryCounts
from caltest.resampling.engine._evaluation import null_values
from tests.reference.cases import mostly_slow
from tests.resampling.checks import LABELS, STANDARD_ERRORS

MASK = 2**64 - 1
N_CLASSES = (33, 100, 1000, 1001)


def problem(n_samples, n_classes, seed=0):
    """Predictions of float32 with a row that is certain, one that is uniform and zeros in all others."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.3), size=n_samples)
    prob[:, ::7] *= rng.random((n_samples, 1)) < 0.5
    prob[0] = np.eye(n_classes)[n_classes - 2]
    prob[n_samples // 2] = 1
    prob = (prob / prob.sum(axis=1, keepdims=True)).astype(np.float32)
    return prob.argmax(axis=1), prob


def drawn(sample, n_resamples, seed=1):
    return np.concatenate([block for _, block in LABELS.draws(n_resamples, seed).blocks(sample)])


def represented(records):
    """Return the probabilities that records stand for, in multiples of 2**-32 of a record."""
    n_rows, n_classes = records.shape
    threshold = (records >> np.uint64(32)).astype(np.float64)
    weight = np.zeros(records.shape)
    for i in range(n_rows):
        other = (records[i] & np.uint64(2**32 - 1)).astype(np.int64)
        weight[i] = threshold[i] + np.bincount(other, weights=2.0**32 - threshold[i], minlength=n_classes)
    return weight / 2.0**32 / n_classes


@pytest.mark.parametrize("n_classes", [2, 3, 17, *N_CLASSES])
@pytest.mark.parametrize("n_samples", [1, 2, 63])
def test_records_stand_for_the_probabilities(n_samples, n_classes):
    rng = np.random.default_rng(n_classes)
    _, prob = problem(n_samples, n_classes)
    cases = {
        "float32": prob,
        "sums of 0.99": 0.99 * prob.astype(np.float64),
        "rounded": np.round(prob.astype(np.float64), 2) + 1e-9 * np.eye(n_classes)[0],
        "below 0": prob.astype(np.float64) - 1e-12,
        "almost uniform": 1 + 1e-15 * rng.standard_normal((n_samples, n_classes)),
        "tiny": np.exp(-60 * rng.random((n_samples, n_classes))),
    }
    for name, given in cases.items():
        records = np.empty(given.shape, np.uint64)
        fill_row_records(given, 0, records)
        expected = np.clip(given.astype(np.float64), 0, None)
        expected /= expected.sum(axis=1, keepdims=True)
        found = represented(records)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2.0**-32, err_msg=name)
        assert np.all(found[given <= 0] == 0), name


def test_probabilities_of_both_precisions_have_the_same_records():
    _, prob = problem(63, 100)
    one, other = (np.empty(prob.shape, np.uint64) for _ in range(2))
    fill_row_records(prob, 0, one)
    fill_row_records(prob.astype(np.float64), 0, other)
    np.testing.assert_array_equal(one, other)


def mixed(x):
    """Splitmix64's finaliser."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def generated(seed, replicate, size):
    """Yield the 64-bit numbers of a replicate: 32 streams of xoshiro256++ in turn, one for each row modulo 32."""
    golden = 0x9E3779B97F4A7C15
    key = (mixed((seed + golden) & MASK) + replicate * 0xD1342543DE82EF95) & MASK
    key = mixed(key)
    state = [mixed((key + j * golden) & MASK) for j in range(4 * 32)]

    def rotated(x, k):
        return ((x << k) | (x >> (64 - k))) & MASK

    for i in range(size):
        lane = i % 32
        a, b, c, d = (state[32 * word + lane] for word in range(4))
        yield (rotated((a + d) & MASK, 23) + a) & MASK
        shifted = b << 17 & MASK
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        c, d = c ^ shifted, rotated(d, 45)
        for word, value in enumerate((a, b, c, d)):
            state[32 * word + lane] = value


def draw_in_python(prob, seed, n_resamples):
    """Draw labels by a loop over rows: a number times n_classes names the record and, below, the fraction."""
    n_samples, n_classes = prob.shape
    records = np.empty(prob.shape, np.uint64)
    fill_row_records(prob, 0, records)
    table = [[int(record) for record in row] for row in records]
    labels = np.empty((n_resamples, n_samples), dtype=np.int64)
    for r in range(n_resamples):
        for i, number in enumerate(generated(seed, r, n_samples)):
            own, fraction = divmod(number * n_classes >> 32, 2**32)
            threshold, other = divmod(table[i][own], 2**32)
            labels[r, i] = own if fraction < threshold else other
    return labels


@pytest.mark.parametrize("n_classes", [33, 100, pytest.param(1000, marks=pytest.mark.slow), 1001])
@pytest.mark.parametrize("n_samples", mostly_slow([1, 2, 63, 1025], 3))
def test_labels_of_a_loop_in_python(n_samples, n_classes, monkeypatch):
    label, prob = problem(n_samples, n_classes)
    sample = make_sample(label, prob)
    draws = LABELS.draws(3, 5)
    expected = draw_in_python(prob, int(draws.seed), 3)
    for kept, band in [(2**24, 2**19), (0, 2**19), (0, 1)]:
        monkeypatch.setattr(_many_labels, "_KEPT_RECORDS", kept)
        monkeypatch.setattr(_many_labels, "_BAND_RECORDS", band)
        found = np.concatenate([block for _, block in draws.blocks(replace(sample))])
        np.testing.assert_array_equal(found, expected)
    assert found.dtype == (np.uint8 if n_classes <= 256 else np.uint16)


@pytest.mark.slow(few_draws=True)
def test_more_classes_than_16_bits_count():
    n_classes = 70_001
    prob = np.zeros((3, n_classes))
    prob[0, -1] = prob[1, 0] = 1
    prob[2, [5, 69_999]] = 0.5
    found = drawn(make_sample([n_classes - 1, 0, 5], prob), 40)
    assert (found[:, 0] == n_classes - 1).all()
    assert (found[:, 1] == 0).all()
    assert set(found[:, 2]) == {5, 69_999}
    np.testing.assert_array_equal(found, draw_in_python(prob, int(LABELS.draws(40, 1).seed), 40))


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_frequencies(n_classes):
    """Every class over all rows, and every entry of a row by Pearson's statistic of its likely outcomes."""
    n, n_resamples = 64, 4000
    label, prob = problem(n, n_classes, seed=3)
    outcomes = drawn(make_sample(label, prob), n_resamples, 7).astype(np.int64)
    counts = np.bincount((outcomes + n_classes * np.arange(n)).ravel(), minlength=n * n_classes).reshape(n, n_classes)
    assert np.all(counts[prob == 0] == 0)
    p = prob / prob.sum(axis=1, keepdims=True, dtype=np.float64)
    expected = n_resamples * p
    deviation = np.abs((counts - expected).sum(axis=0))
    assert np.all(deviation <= STANDARD_ERRORS * np.sqrt((expected * (1 - p)).sum(axis=0)) + 1e-6)
    likely = (expected > 1) & (p < 1)
    pearson = ((counts - expected) ** 2 / np.where(likely, expected, 1))[likely]
    mean = (1 - p)[likely]
    # The variance of the square of a binomial deviation over its mean, and that squares are nearly independent.
    variance = 2 * mean**2 + mean * (1 - 6 * p[likely] * mean) / expected[likely]
    assert abs((pearson - mean).sum()) <= STANDARD_ERRORS * np.sqrt(variance.sum())


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_classes", [33, *(pytest.param(k, marks=pytest.mark.slow) for k in N_CLASSES[1:])])
def test_workers_and_blocks_do_not_matter(n_classes, monkeypatch):
    sample = make_sample(*problem(130, n_classes))
    statistic = caltest.statistics.ConfidenceECE()

    def null(workers):
        return LABELS.draws(150, 2).map(lambda part: null_values(statistic, replace(sample), part), workers)

    expected = null(1)
    for n_bytes, replicates, together in [(1, (1, 1), (7, 9)), (2**30, (8, 1000), (64, 512)), (2**12, (3, 7), (1, 1))]:
        with monkeypatch.context() as patch:
            patch.setattr(_draws, "_BLOCK_BYTES", n_bytes)
            patch.setattr(_draws, "_BLOCK_REPLICATES", replicates)
            patch.setattr(_many_labels, "_TOGETHER", together)
            for workers in (1, 2):
                np.testing.assert_array_equal(null(workers), expected)


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_counts_are_those_of_the_labels(n_classes):
    label, prob = problem(130, n_classes)
    sample = make_sample(label, prob)
    draws, row = LABELS.draws(90, 4), np.arange(130)
    outcomes = np.concatenate([block for _, block in draws.blocks(sample)])
    cell = np.random.default_rng(0).integers(0, 40, size=prob.shape).astype(np.uint16)
    counted = np.concatenate(list(draws.summarise(sample, EntryCounts(cell, 40))))
    expected = [np.bincount(cell[row, drawn], minlength=40) for drawn in outcomes]
    np.testing.assert_array_equal(counted, expected)
    ece = caltest.ECE(caltest.VarianceTree(max_cells=4))
    np.testing.assert_allclose(null_values(ece, sample, draws), ece.evaluate(sample, outcomes), rtol=1e-12)
