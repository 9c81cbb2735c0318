"""Data on which other programs printed numbers: made from a seed as in R, or that R brings (``mtcars.csv``).

From the recipes in the manuals and pages that are named at each function. Every function returns labels and risks.
"""

from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tests.reference.r_random import RRandom

_SLOPES = np.array([0.5, 1.2, -0.75, 0.8])


def fitted(x, y):
    """The logistic regression of labels on features, as ``glm(y ~ x, family = binomial)``."""
    return LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=500).fit(x, y)


def own_risks(x, y):
    x = np.asarray(x, dtype=float).reshape(len(y), -1)
    return np.asarray(y, dtype=int), fitted(x, y).predict_proba(x)[:, 1]


def resource_selection():
    """The example of ``hoslem.test`` in the manual of ResourceSelection (psolymos/ResourceSelection)."""
    rng = RRandom(123)
    x = rng.normal(500)
    return own_risks(x, rng.binary(expit(0.1 + 0.5 * x)))


def stats_geek():
    """J. Bartlett's article on the Hosmer-Lemeshow test at thestatsgeek.com (2014)."""
    rng = RRandom(43657)
    x = rng.normal(100)
    return own_risks(x, rng.uniform(100) < expit(x))


def mtcars(label, *features):
    """A logistic regression on R's data ``mtcars``."""
    file = Path(__file__).parent / "mtcars.csv"
    columns = file.read_text().splitlines()[0].split(",")
    data = dict(zip(columns, np.loadtxt(file, delimiter=",", skiprows=1).T, strict=True))
    return own_risks(np.column_stack([data[name] for name in features]), data[label])


def colon():
    """Deaths within five years on age and extent of the tumour in ``colon`` of R's survival, as in finalfit's manual.

    ``table(age, extent, death)`` of the rows with ``etype == 2``, ages up to 39, up to 59 and above, without the 14
    patients who were followed for a shorter time and lived.
    """
    lived = np.array([[2, 2, 25, 2], [11, 26, 165, 6], [3, 50, 211, 8]])
    died = np.array([[0, 6, 29, 1], [0, 5, 117, 9], [4, 14, 203, 16]])
    cells = np.array([[*(np.arange(1, 3) == a), *(np.arange(1, 4) == e)] for a in range(3) for e in range(4)])
    times = np.concatenate([lived.ravel(), died.ravel()])
    return own_risks(np.repeat(np.tile(cells, (2, 1)), times, axis=0), np.repeat(np.arange(24) >= 12, times))


def calibration_curves(seed, n_train, n_test=500):
    """New patients of CalibrationCurves: ``testdata`` (seed 1782, 1,000 for training), and its examples (1783, 500)."""
    rng, parts = RRandom(seed), []
    for n in (n_train, n_test):
        x = rng.normal(4 * n).reshape(4, n).T
        parts.append((x, rng.binary(expit(0.1 + x @ _SLOPES)).astype(int)))
    (x, y), (other, labels) = parts
    return labels, fitted(x, y).predict_proba(other)[:, 1]


def frozen():
    """The example of ``run.all.external`` of ebrahim.gof: a published model that is too steep for new patients."""
    rng = RRandom(1)
    x = rng.normal(1000)
    return rng.binary(expit(-1 + 0.6 * x)).astype(int), expit(-1 + 0.8 * x)


def uniform_feature(*, bent=False):
    """The examples of ``run.all.gof`` of ebrahim.gof: a model that fits, and one whose square is left out."""
    rng = RRandom(1)
    x = 6 * rng.uniform(500) - 3
    y = rng.binary(expit(0.6 * x))
    return own_risks(x, rng.binary(expit(0.6 * x + 0.5 * x**2)) if bent else y)


def gof_demo():
    """``gof_demo`` of ebrahim.gof (``data-raw/make_gof_demo.R``), whose risks leave out the square of the age."""
    rng = RRandom(2026)
    age, bmi = np.round(20 + 50 * rng.uniform(800), 1), np.round(27 + 4 * rng.normal(800), 1)
    sex, treated = rng.binary(np.full(800, 0.5)), rng.binary(np.full(800, 0.4))
    a, b = (age - 45) / 14, (bmi - 27) / 4
    y = rng.binary(expit(-0.6 + 0.8 * a - 0.7 * a**2 + 0.5 * b + 0.4 * sex - 0.3 * treated))
    return own_risks(np.column_stack([age, bmi, sex, treated]), y)


def pmcalibration():
    """README and vignette of pmcalibration (stephenrho/pmcalibration): an interaction that the model leaves out."""
    rng = RRandom(2345)
    x, z = rng.normal(1000), rng.normal(1000)
    return rng.binary(expit(-3 + x + z + 0.3 * x * z)).astype(int), expit(-3 + x + z)


def sequential_trials():
    """F. Harrell's page "Continuous Learning from Data" (fharrell.com, 2017): 1,169 of 50,000 trials.

    The posterior probability that the treatment works in trials that ran to their end, and whether it does, computed in
    R after ``set.seed(1)`` with ``Hmisc::gbayesMixPost``, as on the page.
    """
    y, p = np.loadtxt(Path(__file__).parent / "sequential_trials.csv", delimiter=",", skiprows=1).T
    return y.astype(int), p
