"""The kernel error against tuned NumPy and SciPy, one thread: ``python benchmarks/kernel_errors.py``.

10,000 observations of 10 classes, vague (Dirichlet) and sharp (the bundled VGG-16). Repetitions are interleaved, times
are CPU times of the process, and every pair of programs must agree.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from functools import partial
from statistics import median
from time import process_time

import numpy as np
from scipy.spatial.distance import cdist

import caltest
from caltest.statistics._similarity import median_distance

N, N_CLASSES, BANDWIDTH = 10_000, 10, 0.7
BLOCK = 1000
REPEATS = 5
N_MATVECS = 5


def cdist_loop(prob, residual, bandwidth):
    """The biased error by blocks of rows: the distances of SciPy, in-place exponential, one matrix product."""
    total = 0.0
    for i in range(0, len(prob), BLOCK):
        similar = cdist(prob[i : i + BLOCK], prob, "cityblock")
        similar *= -0.5 / bandwidth
        np.exp(similar, out=similar)
        similar *= residual[i : i + BLOCK] @ residual.T
        total += similar.sum()
    return total / len(prob) ** 2


def stored_matrix(prob, residual, bandwidth):
    """H itself, n x n."""
    terms = cdist(prob, prob, "cityblock")
    terms *= -0.5 / bandwidth
    np.exp(terms, out=terms)
    terms *= residual @ residual.T
    return terms


def stored_bootstrap(terms, times):
    """w'Hw for each bootstrap sample by a product with the stored matrix."""
    return np.array([w @ (terms @ w) for w in times])


def interleaved(runs, repeats=REPEATS):
    """Median CPU seconds of each; the first round warms up."""
    seconds = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            begin = process_time()
            run()
            if repeat:
                seconds[name].append(process_time() - begin)
    return {name: median(taken) for name, taken in seconds.items()}


def main():
    """Print times and ratios."""
    rng = np.random.default_rng(1)
    vague = rng.dirichlet(np.full(N_CLASSES, 0.5), size=N)
    label = (rng.random((N, 1)) > np.cumsum(vague, axis=1)).sum(axis=1).clip(max=N_CLASSES - 1)
    residual = np.eye(N_CLASSES)[label] - vague
    biased = caltest.SKCE(bandwidth=BANDWIDTH, estimator="biased")
    own = caltest.calibration_error(label, vague, statistic=biased)
    np.testing.assert_allclose(own, cdist_loop(vague, residual, BANDWIDTH), rtol=1e-11)

    taken = interleaved({
        "point value, caltest": lambda: caltest.calibration_error(label, vague, statistic=biased),
        "point value, cdist loop": lambda: cdist_loop(vague, residual, BANDWIDTH),
        "exact median distance": lambda: median_distance(vague, squared=False),
    })  # fmt: skip
    for name, seconds in taken.items():
        print(f"{name:<46} {seconds:8.3f} s  {seconds / taken['point value, caltest']:6.1f} x")

    terms = stored_matrix(vague, residual, BANDWIDTH)
    times = rng.multinomial(N, np.full(N, 1 / N), size=N_MATVECS).astype(float)
    skce = caltest.SKCE(bandwidth=BANDWIDTH)
    taken = interleaved({
        "1,000-draw bootstrap null, caltest": lambda: caltest.skce_test(label, vague, statistic=skce, n_resamples=1000),
        f"the same by a stored matrix ({N_MATVECS} draws, scaled)": lambda: stored_bootstrap(terms, times),
    }, repeats=3)  # fmt: skip
    first, second = taken
    taken[second] *= 1000 / N_MATVECS
    for name, seconds in taken.items():
        print(f"{name:<46} {seconds:8.3f} s  {seconds / taken[first]:6.1f} x")

    sharp_label, sharp = caltest.datasets.load_cifar10_vgg16()
    for kind, y_true, y_prob in (("vague", label, vague), ("sharp", sharp_label, sharp)):
        for n_resamples in (199, 999):
            options = {"statistic": caltest.SKCE(), "n_resamples": n_resamples, "rng": 0}
            run = partial(caltest.calibration_test, y_true, y_prob, **options)
            seconds = interleaved({"": run}, repeats=3)[""]
            print(f"{f'whole test, {kind}, {n_resamples} draws':<46} {seconds:8.3f} s")


if __name__ == "__main__":
    main()
