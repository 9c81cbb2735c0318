"""The smallest detectable error: how often the default test finds an error of the size that `detectable_error` returns.

``python benchmarks/detectable.py`` writes ``docs/data/detectable.csv`` and the table of
``docs/how-many-observations.md``, in about half an hour on one core. ``--page`` writes the table from the data that is
there, ``--data-sets`` sets how many data sets are drawn for each error.

The true probabilities are computed here, and the draws are new ones: data sets of the same predictions are ranked among
the same 9,999 draws, each by itself, which gives the p-values of `calibration_test` with these draws. With groups a
tenth of the data sets is drawn, and each is tested by `calibration_test` with its draws and random signs. So are states
of the whole prediction, each by its own 199 draws. They do not hold the predictions: the error that is simulated has
the printed percentage points, and the size is that of this error. ``--only`` measures some rows again.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed
    for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each
        os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.optimize import brentq  # noqa: E402
from scipy.stats import norm  # noqa: E402

import caltest  # noqa: E402
from benchmarks.machine import commit  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import mark, read, with_table  # noqa: E402
from caltest.predictions._sample import make_sample  # noqa: E402
from caltest.predictions._view import LensView  # noqa: E402
from caltest.resampling.draws._labels import OutcomeDraws  # noqa: E402
from caltest.resampling.engine._evaluation import Evaluation, Question  # noqa: E402
from caltest.resampling.engine._pvalues import RankedDraws  # noqa: E402
from caltest.streaming import CalibrationState, RedrawnCells  # noqa: E402

SEED = 20261126
LEVEL = 0.05
N_RESAMPLES = 9999
DATA_SETS = 4000
BLOCK = 100  # data sets that are evaluated together


class Row(NamedTuple):
    """A rejection rate at a size."""

    predictions: str
    n_samples: int
    kind: str
    family: str
    size: float
    points: float
    factor: float
    rate: float
    data_sets: int
    seconds: float  # of a processor


def risks(mean: float, spread: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return probabilities of an event whose logits are normal."""
    return 1 / (1 + np.exp(-rng.normal(mean, spread, n)))


def of_network(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return some of the bundled predictions."""
    prob = caltest.datasets.load_cifar10_vgg16()[1]
    return np.asarray(prob[rng.permutation(len(prob))[:n]], dtype=np.float64)


class Design(NamedTuple):
    """Groups of some predictions: all as large, or in proportion to 1, 2, 3 and so on; weights are log-normal."""

    prob: Callable[[int, np.random.Generator], np.ndarray]
    n_groups: int = 0
    unequal: bool = False
    icc: float = 0.0
    weighted: bool = False

    def more(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return the groups or the weights of observations."""
        if self.weighted:
            return {"sample_weight": rng.lognormal(0, 1, n)}
        if not self.n_groups:
            return {}
        size = np.arange(self.n_groups) + 1.0 if self.unequal else np.ones(self.n_groups)
        return {"groups": np.searchsorted(np.cumsum(size) / size.sum(), (rng.permutation(n) + 0.5) / n)}


def around_20(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return risks around 20 %."""
    return risks(-1.6, 1.2, n, rng)


def ten_classes(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return probabilities of ten classes."""
    return rng.dirichlet(np.full(10, 0.5), n)


WITH_GROUPS = {
    ("10 groups, icc 0.05", 300): Design(around_20, 10, icc=0.05),
    ("10 unequal groups, icc 0.2", 1_000): Design(around_20, 10, unequal=True, icc=0.2),
    ("30 groups, icc 0", 2_000): Design(around_20, 30),
    ("30 unequal groups, icc 0.05", 2_000): Design(around_20, 30, unequal=True, icc=0.05),
    ("200 groups, icc 0.05", 1_000): Design(around_20, 200, icc=0.05),
    ("200 unequal groups, icc 0.2", 1_000): Design(around_20, 200, unequal=True, icc=0.2),
    ("ten classes, 30 groups, icc 0.05", 1_000): Design(ten_classes, 30, icc=0.05),
    ("ten classes, 200 unequal groups, icc 0.05", 2_000): Design(ten_classes, 200, unequal=True, icc=0.05),
    ("log-normal weights", 2_000): Design(around_20, weighted=True),
    ("ten classes, log-normal weights", 2_000): Design(ten_classes, weighted=True),
}

DESIGNS = {
    ("risks around 20 %", 200): around_20,
    ("risks around 20 %", 2_000): around_20,
    ("risks around 20 %", 10_000): around_20,
    ("risks around 1 %", 5_000): lambda n, rng: risks(-5.1, 1, n, rng),
    ("sharp, around 50 %", 1_000): lambda n, rng: risks(0, 4, n, rng),
    ("three different risks", 200): lambda n, rng: rng.choice([0.1, 0.3, 0.6], n),
    ("ten classes, Dirichlet(0.5)", 2_000): ten_classes,
    ("ten classes, Dirichlet(0.5)", 10_000): ten_classes,
    ("ten classes, sharp network", 2_000): of_network,
}


def of_logits(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return probabilities of five or ten classes whose logits are normal, some classes rarer than others."""
    k, spread = (5, 2) if n < 5_000 else (10, 3)
    odds = np.exp(rng.normal(0, spread, (n, k)) + np.linspace(1, -1, k))
    return odds / odds.sum(axis=1, keepdims=True)


OF_STATES = {
    ("state of three classes", 200): lambda n, rng: rng.dirichlet(np.ones(3), n),
    ("state of three classes", 2_000): lambda n, rng: rng.dirichlet(np.ones(3), n),
    ("state of five classes, normal logits", 3_000): of_logits,
    ("state of ten classes, normal logits", 5_000): of_logits,
    ("state of ten classes, sharp network", 10_000): of_network,
}


def simulate(true_prob: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a label for each observation."""
    return (np.cumsum(true_prob, axis=1)[:, :-1] < rng.random((len(true_prob), 1))).sum(axis=1)


def simulate_alike(
    true_prob: np.ndarray, groups: np.ndarray, correlation: float, rng: np.random.Generator
) -> np.ndarray:
    """Return a label for each observation, from normal variables that are correlated within groups."""
    shared, own = rng.standard_normal(groups.max() + 1), rng.standard_normal(len(groups))
    latent = math.sqrt(correlation) * shared[groups] + math.sqrt(1 - correlation) * own
    bounds = norm.ppf(np.minimum(np.cumsum(true_prob, axis=1)[:, :-1], 1.0))
    return (latent[:, None] >= bounds).sum(axis=1)


def latent_correlation(prob: np.ndarray, groups: np.ndarray, icc: float) -> float:
    """Return the correlation of the normal variables at which labels have an intraclass correlation."""
    bounds, deviation = norm.ppf(np.cumsum(prob, axis=1)[:, :-1]), np.sqrt(prob * (1 - prob))
    node, share = np.polynomial.hermite_e.hermegauss(60)
    share = share / share.sum()

    def excess(correlation: float) -> float:
        total = 0.0  # over pairs of the same group
        below = np.zeros((len(prob), len(node)))
        for k in range(prob.shape[1]):
            above = (
                norm.cdf((bounds[:, k, None] - math.sqrt(correlation) * node) / math.sqrt(1 - correlation))
                if k < bounds.shape[1]
                else np.ones_like(below)
            )
            given = above - below - prob[:, k, None]
            below = above
            for values, weight, sign in ((given, share, 1), (deviation[:, k, None], np.ones(1), -icc)):
                sums = np.stack([np.bincount(groups, one) for one in values.T])
                total += sign * float(weight @ (np.square(sums).sum(axis=1) - np.square(values).sum(axis=0)))
        return total

    return float(brentq(excess, 0.0, 0.99)) if icc else 0.0


def true_probability(prob: np.ndarray, family: str, size: float, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the true probabilities ``(n_samples, n_classes)`` of predictions with an error."""
    log_prob = np.log(prob)
    weight = np.ones(len(prob)) if weight is None else weight
    if family == "temperature":
        odds = np.exp(log_prob / size)
    elif family == "shift":
        column = 1 if prob.shape[1] == 2 else (weight @ prob).argmax()
        odds = prob * np.where(np.arange(prob.shape[1]) == column, np.exp(size), 1.0)
    else:
        logit = size * (log_prob[:, 1] - log_prob[:, 0])
        constant = brentq(lambda a: weight @ (1 / (1 + np.exp(-a - logit)) - prob[:, 1]), -50, 50, xtol=1e-12)
        odds = np.exp(np.column_stack([np.zeros(len(prob)), constant + logit]))
    return odds / odds.sum(axis=1, keepdims=True)


class DefaultTest:
    """The default test of some predictions, with its draws."""

    def __init__(self, prob: np.ndarray, rng: np.random.Generator) -> None:
        self.sample = make_sample(np.zeros(len(prob), dtype=int), prob)
        question = Question(caltest.Omnibus().for_sample(self.sample), LensView(self.sample))
        draws = OutcomeDraws.of(N_RESAMPLES, rng)
        self._evaluation = Evaluation([question], self.sample, draws)
        self._ranked = RankedDraws.of(self._evaluation.nulls(draws)[0])

    def power(self, true_prob: np.ndarray, count: int, rng: np.random.Generator) -> float:
        """Return the share of data sets with these probabilities that is rejected."""
        rejected = 0
        for _ in range(count // BLOCK):
            labels = np.stack([simulate(true_prob, rng) for _ in range(BLOCK)]).astype(self.sample.outcome.dtype)
            rejected += self._ranked.rejected(self._evaluation.of_labels(labels)[0], LEVEL).sum()
        return float(rejected / (count // BLOCK * BLOCK))


def measure_designed(name: str, n: int, count: int) -> Iterator[Row]:
    """Yield the rejection rates of each kind of error with groups or weights."""
    rng, design = np.random.default_rng([SEED, n, *name.encode()]), WITH_GROUPS[name, n]
    prob, more = design.prob(n, rng), design.more(n, rng)
    prob = np.column_stack([1 - prob, prob]) if prob.ndim == 1 else prob
    how = {**more, "icc": design.icc}
    caltest.detectable_error(prob, n_resamples=99, **how)  # may compile
    start = time.process_time()
    found = caltest.detectable_error(prob, rng=rng, **how)
    seconds = time.process_time() - start
    groups = more.get("groups", np.arange(n))
    correlation = latent_correlation(prob, groups, design.icc)
    for error in found.errors:
        true_prob = true_probability(prob, error.family, error.size, more.get("sample_weight"))
        rejected = 0
        for _ in range(count):
            labels = simulate_alike(true_prob, groups, correlation, rng)
            test = caltest.calibration_test(labels, prob, n_resamples=999, rng=rng, **more)
            rejected += test.rejected
        size = error.size, error.points, error.factor
        yield Row(name, n, error.kind, error.family, *size, rejected / count, count, seconds)


def measure(name: str, n: int, count: int) -> Iterator[Row]:
    """Yield the rejection rate of each kind of error at its smallest detectable size."""
    rng = np.random.default_rng([SEED, n, *name.encode()])
    prob = DESIGNS[name, n](n, rng)
    prob = np.column_stack([1 - prob, prob]) if prob.ndim == 1 else prob
    caltest.detectable_error(prob, n_resamples=99)  # may compile
    start = time.process_time()
    found = caltest.detectable_error(prob, rng=rng)
    seconds = time.process_time() - start
    test = DefaultTest(prob, rng)
    for error in found.errors:
        rate = test.power(true_probability(test.sample.prob, error.family, error.size), count, rng)
        size = error.size, error.points, error.factor
        yield Row(name, n, error.kind, error.family, *size, rate, count, seconds)


def measure_of_state(name: str, n: int, count: int) -> Iterator[Row]:
    """Yield the rejection rates of states of the whole prediction."""
    rng = np.random.default_rng([SEED, n, *name.encode()])
    prob = OF_STATES[name, n](n, rng)

    def state(true_prob: np.ndarray, seed: int) -> CalibrationState:
        empty = CalibrationState(prob.shape[1], caltest.Canonical(), RedrawnCells(rng=seed))
        return empty.update(simulate(true_prob, rng), prob)

    calm = next(test for test in (state(prob, seed).test() for seed in range(100)) if test.decision == "not rejected")
    _ = calm.verdict  # may compile
    start = time.process_time()
    found = state(prob, 0).test().extend(type(calm), pvalue=1.0).verdict.detectable
    seconds = time.process_time() - start
    for error in found.errors:
        sign = 1 if error.size > (0 if error.family == "shift" else 1) else -1

        def moved(amount: float, error=error, sign=sign) -> np.ndarray:
            size = sign * amount if error.family == "shift" else math.exp(sign * amount)
            return true_probability(prob, error.family, size)

        def excess(amount: float, error=error, moved=moved) -> float:
            return float(50 * np.abs(moved(amount) - prob).sum(axis=1).mean() - error.points)

        amount = brentq(excess, 1e-6, 6.0)
        rejected = sum(state(moved(amount), seed).test().rejected for seed in range(count))
        size = sign * amount if error.family == "shift" else math.exp(sign * amount)
        yield Row(name, n, error.kind, error.family, size, error.points, error.factor, rejected / count, count, seconds)


def rates_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    lines = []
    for (name, n), group in frame.groupby(["predictions", "n_samples"], sort=False):
        numbers = zip(group["size"], group["points"], group["rate"], strict=True)
        cells = [f"{size:.2f}: {points:.2g} points, **{rate:.3f}**" for size, points, rate in numbers]
        lines.append((name, f"{n:,}", *cells, f"{group['seconds'].iloc[0]:.2f} s"))
    head = ("predictions", "observations", "too low", "too high", "too extreme", "not extreme enough", "time")
    return table(head, lines)


def main() -> None:
    """Measure, and write data and table."""
    parser = argparse.ArgumentParser(description="Power at the smallest detectable error.")
    parser.add_argument("--data-sets", type=int, default=DATA_SETS, help="data sets per error (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the table from the data")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and page")
    parser.add_argument("--only", default="", help="predictions that are measured again, by a part of their name")
    asked = parser.parse_args()
    data, page = asked.docs / "data" / "detectable.csv", asked.docs / "how-many-observations.md"
    if not asked.page:
        measured = commit()
        rows, designs = [], [*DESIGNS, *WITH_GROUPS, *OF_STATES]
        for name, n in designs:
            if asked.only not in name:
                continue
            few = asked.data_sets // 10
            if (name, n) in OF_STATES:
                rows += measure_of_state(name, n, few)
            else:
                rows += measure_designed(name, n, few) if (name, n) in WITH_GROUPS else measure(name, n, 10 * few)
            print(*rows[-4:], sep="\n", flush=True)
        about = f"# seed: {SEED}; commit: {measured}; date: {datetime.now(UTC):%Y-%m-%d}; resamples: {N_RESAMPLES}\n"
        frame = pd.DataFrame(rows)
        if asked.only:  # the other rows stay
            stored = read(data.read_text())
            about = data.read_text().partition("\n")[0] + "\n"
            again = {name for name, _ in designs if asked.only in name}
            kept = stored["predictions"].isin({name for name, _ in designs} - again)
            frame = pd.concat([stored[kept], frame])
        data.write_text(about + frame.to_csv(index=False, float_format="%.5g"))
    page.write_text(with_table(page.read_text(), mark("detectable"), rates_table(read(data.read_text()))))
    print(f"written: {data}, {page}")


if __name__ == "__main__":
    main()
