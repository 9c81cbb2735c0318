"""Test whether two recalibration methods differ, from random halves of the data, and how often equal ones seem to.

``python benchmarks/resampled_halves.py`` prints the rejection rates of methods that are equal by construction (one
minute of processor time for each of six rows).
"""

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # this checkout, whatever is installed

import numpy as np
from scipy.stats import t as student

from benchmarks.markdown import table

SEED = 20200612
N_SPLITS = 10
"""Random halves of the observations; each half is once fitted to and once judged on."""


def halves(n_samples, rng, n_splits=N_SPLITS):
    """Yield the observations to fit and those to judge, sorted; each half of a split has both parts in turn."""
    for _ in range(n_splits):
        one, other = (np.sort(part) for part in np.array_split(rng.permutation(n_samples), 2))
        yield one, other
        yield other, one


def resampled_test(difference):
    """Return mean, standard error and p-value of differences ``(n_halves,)`` over random halves.

    The J halves share observations, so that the variance of their mean is not 1 / J of theirs, but
    1 / J + (size of a test set) / (size of a training set), here 1 / J + 1, of it (Nadeau and Bengio 2003). Mean over
    error is compared with Student's distribution with J - 1 degrees of freedom. This is an approximation.
    """
    count = len(difference)
    mean, error = float(np.mean(difference)), float(np.std(difference, ddof=1) * np.sqrt(1 / count + 1))
    if error == 0:
        return mean, error, 1.0
    return mean, error, float(2 * student.sf(abs(mean) / error, count - 1))


def ks(event, score):
    """Return the KS error."""
    order = np.argsort(score, kind="stable")
    return np.abs(np.cumsum(event[order] - score[order])).max() / len(event)


def ece(event, score):
    """Return the ECE in 25 cells of equal width."""
    cell = np.minimum((score * 25).astype(int), 24)
    return np.abs(np.bincount(cell, event - score, 25)).sum() / len(event)


def brier(event, score):
    """Return the Brier score of the event."""
    return ((event - score) ** 2).mean()


ERRORS = {"KS": ks, "ECE": ece, "Brier": brier}


def binned(event, score):
    """Return the map that histogram binning with 15 cells of equal width fits."""
    cell = np.minimum((score * 15).astype(int), 14)
    count = np.bincount(cell, minlength=15)
    middle = (np.arange(15) + 0.5) / 15
    value = np.where(count > 0, np.bincount(cell, event, 15) / np.maximum(count, 1), middle)
    return lambda new: value[np.minimum((new * 15).astype(int), 14)]


def smooth(event, score):
    """Return the map that adds a polynomial of degree 4, fitted to the residuals by least squares."""
    factor = np.linalg.lstsq(np.vander(score, 5), event - score, rcond=None)[0]
    return lambda new: np.clip(new + np.vander(new, 5) @ factor, 0, 1)


FITS = {"histogram binning": binned, "polynomial": smooth}


def without_fit(n_samples, rng):
    """Yield event and two predictions of each half: two over-confident predictions with their own noise, no fit."""
    prob = rng.beta(4, 1, n_samples)
    event = (rng.random(n_samples) < prob).astype(float)
    logit = 1.5 * np.log(prob / (1 - prob))
    noise = rng.normal(0, 0.7, (2, n_samples))
    for _, new in halves(n_samples, rng):
        yield event[new], *(1 / (1 + np.exp(-(logit + each)[new])) for each in noise)


def with_fit(fit, n_samples, rng):
    """Yield the same of two fits of one method: to the even and to the odd observations of the other half."""
    score = rng.beta(4, 1, n_samples)
    event = (rng.random(n_samples) < 1 / (1 + (1 / score - 1) ** 0.6)).astype(float)
    for known, new in halves(n_samples, rng):
        parts = (known[known % 2 == odd] for odd in (0, 1))
        yield event[new], *(fit(event[part], score[part])(score[new]) for part in parts)


def level(name, n_samples, n_sets, rng):
    """Return the share of data sets ``(n_errors,)`` in which two equal methods are distinguished at 5 %."""
    rejected = np.zeros(len(ERRORS))
    for _ in range(n_sets):
        drawn = with_fit(FITS[name], n_samples, rng) if name in FITS else without_fit(n_samples, rng)
        found = np.array([[e(event, a) - e(event, b) for e in ERRORS.values()] for event, a, b in drawn])
        rejected += [resampled_test(column)[2] <= 0.05 for column in found.T]
    return rejected / n_sets


def main():
    """Print the rejection rates."""
    parser = argparse.ArgumentParser(description="Rejection rates of equal methods.")
    parser.add_argument("--sets", type=int, default=1000, help="data sets of each row")
    asked = parser.parse_args()
    rows = []
    for name in ("none", *FITS):
        for n_samples in (900, 5000):
            rates = level(name, n_samples, asked.sets, np.random.default_rng(SEED))
            rows.append((f"{name}, {n_samples:,} observations", *(f"{100 * rate:.1f}" for rate in rates)))
            print(rows[-1], file=sys.stderr, flush=True)
    print(table(("fit", *(f"{name}, %" for name in ERRORS)), rows))


if __name__ == "__main__":
    main()
