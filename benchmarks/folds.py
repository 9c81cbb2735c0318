"""Cross-validated predictions: how often calibrated models are rejected, and which rule combines the folds best.

``python benchmarks/folds.py`` writes ``docs/data/folds.csv`` and the tables of ``docs/cross-validation.md``, in about
15 minutes on one core. ``--page`` writes the tables from the data that is there, ``--data-sets`` sets how many data
sets are drawn in each setting.
"""

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed
    for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each
        os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import caltest  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import Studies  # noqa: E402

SEED = 20220503
LEVEL = 0.05
N_RESAMPLES = 999
DATA_SETS = 400


class Row(NamedTuple):
    """A rejection rate at the level."""

    study: str
    learner: str
    n_samples: int
    n_folds: int
    method: str
    rate: float
    data_sets: int


def assign(n_samples: int, n_folds: int) -> np.ndarray:
    """Return the fold of each observation; folds are equally large."""
    return np.arange(n_samples) % n_folds


def out_of_fold(fit: Callable, x: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the predictions for each fold of the model that was fitted to the others: ``fit(x, y, x_test)``."""
    prob = np.empty(len(y))
    for k in np.unique(fold):
        prob[fold == k] = fit(x[fold != k], y[fold != k], x[fold == k])
    return prob


def pvalue(y_true, y_prob, statistic, rng, n_resamples=N_RESAMPLES) -> float:
    """Return the p-value of one Monte Carlo test."""
    return caltest.calibration_test(
        y_true, y_prob, statistic=statistic, method="monte-carlo", n_resamples=n_resamples, rng=rng
    ).pvalue


# Models that are calibrated whatever the training labels were. X is uniform, and P(Y = 1 | X = x) = 0.2 + 0.6 x. A
# learner of scikit-learn divides the line into cells, and the prediction is the true probability of an event in a cell.


def true_probability(x: np.ndarray) -> np.ndarray:
    """Return P(Y = 1 | X = x)."""
    return 0.2 + 0.6 * x


def events_below(x: np.ndarray) -> np.ndarray:
    """Return the integral of the true probability from 0 to x."""
    return 0.2 * x + 0.3 * x**2


def calibrated_decisions(learner: Any) -> Callable:
    """Return the true probability of an event given the class that a learner decides for."""

    def fit(x, y, x_test):
        learner.fit(x[:, None], y)
        grid = np.linspace(0, 1, 2001)
        decided = learner.predict(grid[:, None])
        jump = np.flatnonzero(np.diff(decided))
        edges = np.concatenate([[0], (grid[jump] + grid[jump + 1]) / 2, [1]])
        which = decided[np.append(jump, len(grid) - 1)]
        events, width = np.diff(events_below(edges)), np.diff(edges)
        prob = {c: events[which == c].sum() / width[which == c].sum() for c in np.unique(which)}
        return np.array([prob[c] for c in which[np.searchsorted(edges[1:-1], x_test, side="right")]])

    return fit


def calibrated_leaves(learner: Any) -> Callable:
    """Return the true probability of an event in each leaf of a tree."""

    def fit(x, y, x_test):
        tree = learner.fit(x[:, None], y).tree_
        edges = np.concatenate([[0], np.sort(tree.threshold[tree.children_left >= 0]), [1]])
        prob = np.diff(events_below(edges)) / np.diff(edges)
        return prob[np.searchsorted(edges[1:-1], x_test, side="left")]

    return fit


def calibrated_learners() -> dict[str, Callable]:
    """Return learners whose models are calibrated."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return {
        "decisions of a logistic regression": calibrated_decisions(LogisticRegression()),
        "decisions of naive Bayes": calibrated_decisions(GaussianNB()),
        "leaves of a tree of depth 1": calibrated_leaves(DecisionTreeClassifier(max_depth=1, random_state=0)),
        "leaves of a tree of depth 2": calibrated_leaves(
            DecisionTreeClassifier(max_depth=2, min_samples_leaf=20, random_state=0)
        ),
    }


STATISTICS = {"Omnibus": caltest.Omnibus(), "ECE": caltest.ECE()}


def level_rates(fit: Callable, n: int, n_folds: int, rng: np.random.Generator) -> dict[str, bool]:
    """Return which tests reject on one data set."""
    x = rng.random(n)
    y, fold = (rng.random(n) < true_probability(x)).astype(int), assign(n, n_folds)
    prob, found = out_of_fold(fit, x, y, fold), {}
    for name, statistic in STATISTICS.items():
        found[f"{name}, pooled"] = pvalue(y, prob, statistic, rng, 199) <= LEVEL
        found[f"{name}, by fold"] = (
            caltest.calibration_test(
                y, prob, statistic=statistic, folds=fold, method="monte-carlo", n_resamples=N_RESAMPLES, rng=rng
            ).pvalue
            <= LEVEL
        )
    return found


def level(count: int) -> Iterator[Row]:
    """Yield how often calibrated models are rejected, pooled and fold by fold."""
    for learner, fit in calibrated_learners().items():
        for n_folds in (5, 10, 20):
            yield from rows(("level", learner, 200, n_folds), count, lambda rng: level_rates(fit, 200, n_folds, rng))  # noqa: B023


def level_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    methods = list(dict.fromkeys(frame["method"]))
    lines = [
        (f"{learner}, {n_folds} folds", *(f"{group.set_index('method')['rate'][m]:.3f}" for m in methods))
        for (learner, n_folds), group in frame.groupby(["learner", "n_folds"], sort=False)
    ]
    return table(("models", *methods), lines)


# Rules that combine p-values. All but Fisher's are valid under any dependence between the folds.


def average(p: np.ndarray) -> float:
    """Return the smallest level at which twice the mean rejects."""
    return 2 * p.mean()


def geometric(p: np.ndarray) -> float:
    """Return e times the geometric mean."""
    return math.e * math.exp(np.log(p).mean())


def harmonic(p: np.ndarray) -> float:
    """Return the harmonic mean times its constant (Vovk & Wang 2020, proposition 6)."""
    from scipy.optimize import brentq

    k = len(p)
    if k == 2:
        factor = 2.0
    else:
        y = brentq(lambda y: y**2 - k * ((y + 1) * math.log1p(y) - y), 1e-3, 1e6)
        factor = (y + k) ** 2 / ((y + 1) * k)
    return factor / (1 / p).mean()


def order(p: np.ndarray, k: int) -> float:
    """Return Rueger's rule: K / k times the k-th smallest."""
    return len(p) / k * np.sort(p)[k - 1]


def grid_harmonic(p: np.ndarray) -> float:
    """Return 0 if the grid harmonic rule rejects, else 1 (Vovk, Wang & Wang 2022); it is better than Hommel's."""
    k = len(p)
    scaled = k * (1 / np.arange(1, k + 1)).sum() * p / LEVEL
    return float((np.where(scaled <= k, 1 / np.ceil(scaled), 0)).sum() < 1 - 1e-12)


def fisher(p: np.ndarray) -> float:
    """Return Fisher's combination, which needs independent p-values."""
    from scipy.stats import chi2

    return chi2.sf(-2 * np.log(p).sum(), 2 * len(p))


RULES = {
    "Bonferroni": lambda p: len(p) * p.min(),
    "K / 2 times the second smallest": lambda p: order(p, 2),
    "twice the median": lambda p: order(p, (len(p) + 1) // 2),
    "twice the mean": average,
    "e times the geometric mean": geometric,
    "harmonic mean": harmonic,
    "Bonferroni and geometric": lambda p: 2 * min(len(p) * p.min(), geometric(p)),
    "grid harmonic": grid_harmonic,
    "largest": lambda p: p.max(),
    "Fisher (independent only)": fisher,
}


def learners() -> dict[str, Any]:
    """Return learners whose models are miscalibrated."""
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    return {
        "logistic regression": LogisticRegression(C=1e6, max_iter=1000),
        "naive Bayes": GaussianNB(),
        "gradient boosting": GradientBoostingClassifier(n_estimators=40, max_depth=2, random_state=0),
        "random forest": RandomForestClassifier(n_estimators=40, min_samples_leaf=5, random_state=0),
    }


N_FEATURES, SHARED = 8, 0.35
"""Features are normal with this correlation; their effects on the log odds and the constant are fixed."""


def features(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels; the log odds are linear but for one interaction."""
    x = math.sqrt(SHARED) * rng.normal(size=(n, 1)) + math.sqrt(1 - SHARED) * rng.normal(size=(n, N_FEATURES))
    logit = 0.6 * x[:, 0] + 0.4 * x[:, 1] - 0.3 * x[:, 2] + 0.3 * x[:, 0] * x[:, 3] - 0.4
    return x, (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)


SETTINGS = {
    "logistic regression": ((150, 5), (300, 5), (300, 10)),
    "naive Bayes": ((150, 5), (300, 5), (300, 10)),
    "gradient boosting": ((300, 5), (1_000, 5)),
    "random forest": ((1_000, 5), (3_000, 5)),
}
"""Observations and folds: where the power is neither 0 nor 1."""


def power_rates(learner: Any, n: int, n_folds: int, rng: np.random.Generator) -> dict[str, bool]:
    """Return which rules reject on one data set."""
    x, y = features(n, rng)
    fold = assign(n, n_folds)
    prob = out_of_fold(lambda a, b, c: learner.fit(a, b).predict_proba(c)[:, 1], x, y, fold)
    p = np.array([pvalue(y[fold == k], prob[fold == k], None, rng) for k in range(n_folds)])
    return {name: bool(rule(p) <= LEVEL * (1 + 1e-12)) for name, rule in RULES.items()}


def power(count: int) -> Iterator[Row]:
    """Yield how often the rules reject miscalibrated models."""
    for name, learner in learners().items():
        for n, n_folds in SETTINGS[name]:
            yield from rows(("power", name, n, n_folds), count // 2, lambda rng: power_rates(learner, n, n_folds, rng))  # noqa: B023


def power_table(frame: pd.DataFrame) -> str:
    """Return the table of the page: the mean over the settings too."""
    found = frame.set_index(["learner", "n_samples", "n_folds", "method"])["rate"].unstack("method")
    found = found.reindex(frame[["learner", "n_samples", "n_folds"]].drop_duplicates().apply(tuple, axis=1))
    heads = [f"{learner}, {n:,}, {k}" for learner, n, k in found.index]
    lines = [(rule, *(f"{rate:.2f}" for rate in found[rule]), f"{found[rule].mean():.3f}") for rule in RULES]
    return table(("rule", *heads, "mean"), lines)


def rows(setting: tuple[str, str, int, int], count: int, measure: Callable) -> Iterator[Row]:
    """Yield the rejection rates of one setting: study, learner, observations, folds."""
    seeds = np.random.SeedSequence([SEED, *", ".join(map(str, setting)).encode()]).spawn(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        found = [measure(np.random.default_rng(seed)) for seed in seeds]
    for method in found[0]:
        yield Row(*setting, method, float(np.mean([one[method] for one in found])), count)


STUDIES = Studies(
    "folds",
    SEED,
    N_RESAMPLES,
    DATA_SETS,
    {
        "level": (level, level_table, "cross-validation.md"),
        "power": (power, power_table, "cross-validation.md"),
    },
)


if __name__ == "__main__":
    STUDIES.main("Tests of cross-validated predictions.")
