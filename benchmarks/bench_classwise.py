"""The class-wise ECE of 10 classes against a tuned NumPy loop, in the same run, interleaved, one thread: CPU time.

``pytest benchmarks/bench_classwise.py``. The loop is what a careful NumPy user would write; nothing of caltest is used.
"""

from statistics import median
from time import process_time

import numpy as np
import pytest

import caltest

B, B_LOOP, REPEATS, N_CELLS = 9999, 499, 7, 15


def tuned_loop(y_prob, n_resamples, seed):
    """Return null values of the class-wise ECE; every pass over the data is one NumPy call into a reused buffer.

    Measured to help: SFC64 and float32 uniforms, comparing with all thresholds in one call and adding bytes, one table
    of cells from which the drawn class selects, one bincount for all classes (a scatter and np.add.reduceat is slower).
    """
    n_samples, n_classes = y_prob.shape
    cell = np.searchsorted(np.arange(1, N_CELLS) / N_CELLS, y_prob, side="right") + N_CELLS * np.arange(n_classes)
    predicted = np.bincount(cell.ravel(), weights=y_prob.ravel(), minlength=N_CELLS * n_classes)
    thresholds = np.ascontiguousarray(np.cumsum(y_prob, axis=1)[:, :-1].T, dtype=np.float32)
    cells, first = cell.ravel(), np.arange(n_samples) * n_classes
    uniform = np.empty(n_samples, dtype=np.float32)
    above = np.empty(thresholds.shape, dtype=bool)
    drawn = np.empty(n_samples, dtype=np.uint8)
    entry, selected = np.empty(n_samples, dtype=np.intp), np.empty(n_samples, dtype=np.intp)
    count = np.empty((n_resamples, N_CELLS * n_classes), dtype=np.intp)
    rng = np.random.Generator(np.random.SFC64(seed))
    for row in count:
        rng.random(out=uniform, dtype=np.float32)
        np.greater_equal(uniform, thresholds, out=above)
        np.add.reduce(above.view(np.uint8), axis=0, out=drawn)
        np.add(first, drawn, out=entry)
        np.take(cells, entry, out=selected, mode="clip")
        row[:] = np.bincount(selected, minlength=N_CELLS * n_classes)
    return np.abs(count - predicted).sum(axis=1) / n_samples / n_classes


def flat_predictions():
    """Ten classes, all of them likely."""
    y_prob = np.random.default_rng(0).dirichlet(np.ones(10), size=10_000)
    return y_prob.argmax(axis=1), y_prob


@pytest.mark.parametrize("load", [caltest.datasets.load_cifar10_vgg16, flat_predictions], ids=["vgg16", "flat"])
def test_ratio(load, capsys):
    """Null distributions agree, and how long they take."""
    y_true, y_prob = load()
    y_prob = y_prob.astype(float)
    options = {"statistic": caltest.statistics.SCE(N_CELLS), "n_resamples": B}
    runs = {
        "calibration_test": (lambda seed: caltest.calibration_test(y_true, y_prob, rng=seed, **options), 1),
        "tuned NumPy loop": (lambda seed: tuned_loop(y_prob, B_LOOP, seed), B / B_LOOP),
    }
    seconds = {name: [] for name in runs}
    answers = {}
    for repeat in range(REPEATS + 1):
        for name, (run, scale) in runs.items():
            begin = process_time()
            answers[name] = run(repeat)
            if repeat:  # the first round warms up
                seconds[name].append(scale * (process_time() - begin))
    own, loop = answers["calibration_test"].null_distribution, answers["tuned NumPy loop"]
    assert abs(own.mean() - loop.mean()) < 4 * np.sqrt(own.var() / len(own) + loop.var() / len(loop))
    fast, slow = median(seconds["calibration_test"]), median(seconds["tuned NumPy loop"])
    with capsys.disabled():
        print(f"\nSCE, 10,000 x 10, {B} draws: {fast:.3f} s, tuned NumPy loop {slow:.3f} s, {slow / fast:.1f} x")
