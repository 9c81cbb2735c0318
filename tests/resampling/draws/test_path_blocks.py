"""Paths bounded by block and read in few of them, against plain NumPy."""

import numpy as np
import pytest

import caltest
from caltest._compiled._path_blocks import MINUS
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs import _validation
from caltest.resampling.draws._path_blocks import Path, PathBlocks
from caltest.resampling.draws._points import Points
from caltest.resampling.draws._tally import Tally
from caltest.statistics import ClasswiseKS
from tests.reference.cases import mostly_slow


def read(blocks, counts, labels, scale):
    """Largest excursion of one replicate, and of each path its largest distance from either end and its extremes."""
    largest, either, extremes = np.empty(1), np.empty((1, blocks.n_paths)), np.empty((1, blocks.n_paths, 3))
    arguments = counts[None], 0, labels[None], (np.empty(0, np.uint32), np.zeros(2, np.int64), 0, blocks.rows.usual)
    blocks.read(*arguments, scale=scale, largest=largest, either=either)
    blocks.read(*arguments, extremes=extremes)
    return largest[0], either[0], extremes[0]


def count(blocks, labels, event, usual):
    """Counters of the events that differ from those of the base path."""
    counts = np.zeros(blocks.n_counters, dtype=np.int32)
    for p, of_path in enumerate(event):
        now, before = labels == of_path, usual == of_path
        np.add.at(counts, blocks.rows.place[now & ~before, p], 1)
        np.add.at(counts, blocks.rows.place[before & ~now, p], MINUS)
    return counts


def plain(path, labels):
    """Highest and lowest value and end of a path, for labels ``(..., n_samples)``."""
    order = np.argsort(path.score, kind="stable")
    residual = np.cumsum(((labels == path.label) - path.expected)[..., order], axis=-1)
    ends = residual[..., np.append(np.diff(path.score[order]) > 0, True)]
    return np.maximum(0, ends.max(axis=-1)), np.minimum(0, ends.min(axis=-1)), ends[..., -1]


def predictions(n_samples, n_classes, decimals, rng):
    prob = rng.dirichlet(np.full(n_classes, 0.3), size=n_samples)
    if decimals is not None:
        prob = prob.round(decimals)
        prob[prob.sum(axis=1) == 0] = 1
    if n_samples % 2 and n_classes > 3:
        prob[:, 1] = 0  # a class without variance
    return prob / prob.sum(axis=1, keepdims=True)


def draw(prob, n_replicates, rng):
    """Labels ``(n_replicates, n_samples)`` drawn from predictions."""
    drawn = np.cumsum(prob, axis=1)[:, :-1] < rng.random((n_replicates, len(prob), 1))
    return drawn.sum(axis=2).astype(outcome_dtype(prob.shape[1]))


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 15, 16, 33])
def test_equals_plain_numpy(n_classes):
    rng = np.random.default_rng(n_classes)
    for n_samples in (1, 2, 64, 700):
        for decimals in (None, 1):
            prob = predictions(n_samples, n_classes, decimals, rng)
            top = prob.argmax(axis=1)
            event = [*range(n_classes), top]
            paths = [Path(prob[:, k], prob[:, k], k) for k in range(n_classes)]
            paths.append(Path(prob.max(axis=1), prob.max(axis=1), top))
            (drawn,) = draw(prob, 1, rng)
            variance = np.array([(path.expected * (1 - path.expected)).sum() for path in paths])
            scale = np.sqrt(np.where(variance > 1e-12, variance, 0))
            for usual in (None, top, np.where(prob.max(axis=1) > 0.5, top, -1)):
                dtype = outcome_dtype(n_classes)
                for n_blocks in (None, 5) if n_samples == 700 else (None,):
                    options = {"usual": usual, "n_blocks": n_blocks}
                    blocks = PathBlocks.of(paths, len(paths), n_samples, dtype, **options)
                    for labels in (drawn, top, np.zeros(n_samples, int), rng.integers(n_classes, size=n_samples)):
                        counts = count(blocks, labels, event, np.full(n_samples, -1) if usual is None else usual)
                        largest, either, extremes = read(blocks, counts, labels.astype(dtype), scale)
                        expected = np.array([plain(path, labels) for path in paths])
                        np.testing.assert_allclose(extremes, expected, rtol=1e-12, atol=1e-12)
                        far = np.maximum(expected[:, 0], -expected[:, 1])
                        without = np.where(far > 0.5, np.inf, 0)
                        standardised = np.where(scale > 0, far / np.where(scale > 0, scale, 1), without).max()
                        np.testing.assert_allclose(largest, standardised, rtol=1e-12, atol=1e-12)
                        high, low, end = expected.T
                        from_end = np.maximum(high - end, end - low)
                        np.testing.assert_allclose(either, np.maximum(far, from_end), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_few_blocks_of_many_rows():
    """Counts of 16 bits and bounds of 32: more blocks and a larger unit, and all labels at one end of the path."""
    n_samples = 200_000
    score = np.linspace(0.1, 0.9, n_samples)
    blocks = PathBlocks.of([Path(score, score, 1)], 1, n_samples, np.dtype(np.uint8), n_blocks=1)
    assert blocks.n_blocks >= 7
    assert np.diff(blocks.paths.start[0]).max() < 2**16
    for labels in (score < 0.5, score >= 0.5, score > 0, score < 0):
        counts = count(blocks, labels, [1], np.full(n_samples, -1))
        *_, extremes = read(blocks, counts, labels.astype(np.uint8), np.ones(1))
        np.testing.assert_allclose(extremes[0], plain(Path(score, score, 1), labels), rtol=1e-12, atol=1e-9)


PREDICTIONS = {
    "sharp": lambda n, k, rng: rng.dirichlet(np.full(k, 0.05), size=n),
    "even": lambda n, k, rng: rng.dirichlet(np.ones(k), size=n),
    "one decimal": lambda n, k, rng: predictions(n, k, 1, rng),
    "two decimals": lambda n, k, rng: predictions(n, k, 2, rng),
    "one-hot": lambda n, k, rng: np.eye(k)[rng.integers(k, size=n)],
    "one-hot and sharp": lambda n, k, rng: np.where(
        rng.random((n, 1)) < 0.7, np.eye(k)[rng.integers(k, size=n)], rng.dirichlet(np.full(k, 0.1), size=n)
    ),
    "constant": lambda n, k, rng: np.full((n, k), 1 / k),
    "one class never": lambda n, k, rng: np.column_stack([np.zeros(n), rng.dirichlet(np.ones(k - 1), size=n)]),
}


@pytest.mark.parametrize(
    ("single", "most_classes"),
    [(False, 33), *(pytest.param(single, 300, marks=pytest.mark.slow) for single in (False, True))],
)
@pytest.mark.parametrize("kind", mostly_slow(PREDICTIONS))
def test_classwise_ks_of_many_replicates(kind, single, most_classes, monkeypatch):
    """17 and 40 replicates are counted in parts; labels are drawn, impossible, or all of one class."""
    if single:
        monkeypatch.setattr(_validation, "LARGE", 0)
        monkeypatch.setattr(_validation, "MANY", 2)
    rng = np.random.default_rng(0)
    for n_samples, n_classes, n_replicates in (
        *((n, 3, 17) for n in (1, 2, 63, 64, 65, 129)),
        (1000, 10, 40),
        (300, 17, 1),
        (500, 33, 17),
        (130, 300, 3),
    ):
        if n_classes > most_classes:
            continue
        prob = PREDICTIONS[kind](n_samples, n_classes, rng).astype(np.float32 if single else np.float64)
        prob /= prob.sum(axis=1, keepdims=True)
        sample = make_sample(np.zeros(n_samples, dtype=int), prob)
        assert sample.given.dtype == prob.dtype
        expected = sample.null_prob
        wild = rng.integers(n_classes, size=(2, n_samples)).astype(outcome_dtype(n_classes))
        labels = np.concatenate([draw(expected, n_replicates, rng), wild, np.zeros_like(wild[:1])])
        variance = (expected * (1 - expected)).sum(axis=0)
        ends = (plain(Path(p, p, k), labels) for k, p in enumerate(expected.T))
        far = np.stack([np.maximum(high, -low) for high, low, _ in ends], axis=1)
        naive = np.where(variance > 0, far / np.sqrt(np.where(variance > 0, variance, 1)), np.where(far > 0, np.inf, 0))
        value = caltest.statistics.ClasswiseKS().evaluate(sample, labels)
        np.testing.assert_allclose(value, naive.max(axis=1), rtol=1e-11, atol=1e-11, err_msg=f"{n_samples} {n_classes}")
        shaped = caltest.statistics.ClasswiseKS().evaluate(sample, labels[:2].astype(np.int64).reshape(2, 1, -1))
        np.testing.assert_array_equal(shaped, value[:2, None])


def test_predictions_are_read_where_they_are(monkeypatch):
    """Of large data no sorted copy is made, unless a class is always 0 or 1; what is read is the same."""
    rng = np.random.default_rng(0)
    for name, share, is_in_place in (("even", 0, True), ("sharp", 0.97, True), ("one class never", 0, False)):
        prob = PREDICTIONS[name](1000, 5, rng)
        usual = np.eye(5)[prob.argmax(axis=1)]
        prob = share * usual + (1 - share) * prob  # few labels depart from the usual one
        labels = draw(prob, 9, rng)
        found = []
        for large in (prob.size, prob.size // 4):
            monkeypatch.setattr("caltest.statistics._cumulative.LARGE", large)
            base = make_sample(labels[0], prob)
            some = LensView(base).take(np.flatnonzero(rng.permutation(1000) % 2) if not found else found[0][1])
            values, kept = [], some.base_row
            for view in (LensView(base), some):
                summary = ClasswiseKS().summary(view.sample)
                assert summary is not None
                assert bool(summary.blocks.paths.by_row) == (is_in_place and large < prob.size)
                values.append(ClasswiseKS().evaluate(view.sample, view.outcomes(labels)))
                if share:
                    tally = Tally(base.once(Points.of), [(view, summary)])
                    values.append(tally.of_labels(labels)[view, summary])
            found.append((values, kept))
        np.testing.assert_array_equal(found[0][0], found[1][0])
