"""How often calibrated models are rejected, and intervals miss, where all labels of a group are one outcome.

``python -m benchmarks.group_copies`` writes docs/data/group-copies.csv, a row for each design that it ends, and
``--page`` the table of docs/grouped-evidence.md.

A group has a class, and observers see it through normal noise. A prediction is the probability of the class given what
was seen, and so it is calibrated. All observations of the group have its class. Their predictions are equal
("between"), or each is that of another observer ("within"). Wrong models add `SHIFT` to the last class's log-odds.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

import caltest
from benchmarks.machine import commit
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from caltest.estimation.errors._l2_interval import l2_distribution
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.cells._trees import VarianceTree

ROOT = Path(__file__).parents[1]
LEVEL, N_RESAMPLES, SEED, SHIFT = 0.05, 199, 20261128, 0.7
GROUPS = (10, 20, 40, 100, 300)
SIGNALS = (1.5, 1.0)  # distance of the classes in standard deviations of the noise, of both models


@dataclass(frozen=True)
class Design:
    """Groups that have one outcome each.

    ``size`` is the mean number of observations of a group; of ``unequal`` groups it is geometric. The last of
    ``n_classes`` classes happens in a share ``events`` of the groups, each other one as often as the rest.
    """

    n_groups: int
    size: int
    events: float
    sizes: str = "equal"
    predictions: str = "between"
    n_classes: int = 2

    def groups(self, rng):
        """Return the group of each observation."""
        each = rng.geometric(1 / self.size, self.n_groups) if self.sizes == "unequal" else self.size
        return np.repeat(np.arange(self.n_groups), each)

    @property
    def prior(self):
        """Probabilities of the classes."""
        k = self.n_classes
        return np.append(np.full(k - 1, (1 - self.events) / (k - 1)), self.events)

    def data(self, rng):
        """Return labels, the calibrated predictions of two models, and groups."""
        group = self.groups(rng)
        label = rng.choice(self.n_classes, self.n_groups, p=self.prior)
        models = []
        for signal in SIGNALS:
            shape = self.n_groups if self.predictions == "between" else len(group)
            own = label if self.predictions == "between" else label[group]
            seen = signal * np.eye(self.n_classes)[own] / np.sqrt(2) + rng.standard_normal((shape, self.n_classes))
            prob = special.softmax(np.log(self.prior) + signal / np.sqrt(2) * seen, axis=1)
            models.append(prob[group] if self.predictions == "between" else prob)
        return label[group], *models, group


def shifted(prob, shift):
    """Return predictions whose log-odds of the last class are moved."""
    moved = prob.copy()
    moved[:, -1] *= np.exp(shift)
    return moved / moved.sum(axis=1, keepdims=True)


def calibration_test(label, one, _, group, seed):
    """Return whether a calibrated model is rejected."""
    how = {"groups": group, "n_resamples": N_RESAMPLES, "rng": seed}
    return {"calibration_test": caltest.calibration_test(label, one, **how).pvalue}


def calibration_table(label, one, _, group, seed):
    """Return the p-values of all lenses and the smallest of single ones, adjusted."""
    found = caltest.calibration_table(label, one, groups=group, n_resamples=N_RESAMPLES, rng=seed)
    return {"calibration_table": found.pvalue, "calibration_table, whole": found.tests[0].pvalue}


def paired_test(label, one, two, group, seed):
    """Return the p-value of two calibrated models, and whether intervals of wrong ones hold the true difference.

    The log-odds of one model are wrong in all groups and those of the other one are right ("one"), or each model is
    wrong in half of the groups ("halves").
    """
    how = {"groups": group, "n_resamples": N_RESAMPLES, "rng": seed}
    half = (np.random.default_rng(seed).permutation(group[-1] + 1)[group] % 2 == 0)[:, None]
    wrong = shifted(one, SHIFT)
    pairs = {"one": (wrong, one), "halves": (np.where(half, wrong, one), np.where(half, one, wrong))}
    found = {"paired_test": caltest.paired_test(label, one, two, **how).pvalue}
    for name, pair in pairs.items():
        truth = np.subtract(*(squared_error(make_sample(label, p, groups=group), VarianceTree(), one) for p in pair))
        low, high = caltest.paired_test(label, *pair, **how).confidence_interval
        found[f"paired_test, {name}"] = float(low <= truth <= high)
    return found


def compare_models(label, one, two, group, seed):
    """Return the smallest p-values of both models, and that of their difference."""
    both = {"one": one, "two": two}
    found = caltest.compare_models(label, both, groups=group, n_resamples=N_RESAMPLES, rng=seed)
    return {
        "compare_models, models": min(model.pvalue_adjusted for model in found.models),
        "compare_models, pair": found.pvalue,
    }


def squared_error(sample, partition, truth):
    """Return the squared l2 error within cells of a sample, for true probabilities in the caller's order."""
    cells = cells_of(sample, partition)
    gap = (truth[sample.row] - sample.prob)[:, 1 if truth.shape[1] == 2 else 0 :]
    sums = np.stack([np.bincount(cells.index, column, cells.n_cells) for column in gap.T], axis=1)
    return float((np.square(sums).sum(axis=1) / np.maximum(cells.count, 1)).sum() / sample.n_samples)


def l2_interval(label, one, _, group, seed):
    """Return p-values of no error of a calibrated model, and of the true error of a wrong one on both sides."""
    right, cut = l2_distribution(make_sample(label, one, groups=group), None, rng=seed)
    sample = make_sample(label, shifted(one, SHIFT), groups=group)
    found, cut = l2_distribution(sample, None, rng=seed)
    truth = squared_error(sample, cut, one)
    certified, cut = l2_distribution(sample, None, any_shock=True, rng=seed)
    return {
        "l2_interval, calibrated": 2 * right.above(0.0),
        "l2_interval, lower": 2 * found.above(truth),
        "l2_interval, upper": 2 * found.below(truth),
        "equivalence_test": certified.below(squared_error(sample, cut, one)),
    }


def event(label, one, _, group, seed):
    """Return p-values of a calibrated model, and whether the interval of a wrong one holds its shift."""
    del seed
    wrong = shifted(one, SHIFT)[:, 1]
    large = caltest.estimation.calibration_in_the_large(label, one[:, 1], groups=group)
    off = caltest.estimation.calibration_in_the_large(label, wrong, groups=group)
    slope = caltest.estimation.calibration_slope(label, one[:, 1], groups=group)
    low, high = off.intercept_interval
    return {
        "calibration_in_the_large": large.pvalue,
        "calibration_in_the_large, interval": 0.0 if low > -SHIFT or high < -SHIFT else 1.0,
        "calibration_slope": slope.pvalue,
    }


def bootstrap_interval(label, one, _, group, seed):
    """Return whether the interval of the squared error of a wrong model leaves out its mean."""
    wrong = shifted(one, SHIFT)
    low, high = caltest.bootstrap_interval(
        label, wrong, statistic=caltest.SquaredL2(), groups=group, n_resamples=N_RESAMPLES, rng=seed
    )
    truth = squared_error(make_sample(label, wrong, groups=group), VarianceTree(), one)
    return {"bootstrap_interval": 0.0 if truth < low or truth > high else 1.0}


ABOVE = ("bootstrap_interval",)
"""What fails in a design, as the page says."""
ASKED = (calibration_test, calibration_table, paired_test, compare_models, l2_interval, event, bootstrap_interval)
METHODS: dict[str, Callable] = {one.__name__: one for one in ASKED}


def designs():
    """Return the designs: both rates and kinds of predictions for each number of groups, and three classes."""
    sizes, copies = itertools.cycle(("equal", "unequal")), itertools.cycle((2, 5, 20))
    kinds = (("between", 2), ("between", 3), ("within", 2))
    return [
        Design(n, next(copies), events, next(sizes), *kind)
        for kind, events, n in itertools.product(kinds, (0.3, 0.05), GROUPS)
    ]


def measure(method, design, n_sets, seed=SEED):
    """Return how often the p-values of a method are at most `LEVEL`, by name, and the processor time of a data set."""
    begin, found = time.process_time(), []
    for number in range(n_sets):
        rng = np.random.default_rng([seed, *np.frombuffer(repr(design).encode(), np.uint8), number])
        found.append(METHODS[method](*design.data(rng), number))
    frame = pd.DataFrame(found)
    return (frame <= LEVEL * (1 + 1e-9)).mean().to_dict(), (time.process_time() - begin) / n_sets


def levels_table(frame):
    """Return the largest rates of each method, with the numbers of designs."""
    kinds = {
        "equal predictions": ("between", 2),
        "predictions that differ": ("within", 2),
        "three classes": ("between", 3),
    }
    rows = []
    for name, some in frame.groupby("method", sort=False):
        cells = []
        for predictions, n_classes in kinds.values():
            own = some[(some["predictions"] == predictions) & (some["n_classes"] == n_classes)]
            cells.append(f"{100 * own['rate'].max():.1f} ({len(own)})" if len(own) else "")
        rows.append((name, *cells))
    sets = " or ".join(map(str, sorted(frame["data sets"].unique())))
    return f"{table(('what', *kinds), rows)}\n{sets} data sets in each design, {N_RESAMPLES} draws.\n"


def main():
    """Measure and write data, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=300)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--kinds", nargs="+", default=["between", "within"], help="of predictions")
    parser.add_argument("--classes", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--groups", nargs="+", type=int, default=list(GROUPS))
    parser.add_argument("--page", action="store_true", help="measure nothing: write the table from the data")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "data" / "group-copies.csv")
    options = parser.parse_args()
    if options.page:
        page = ROOT / "docs" / "grouped-evidence.md"
        page.write_text(with_table(page.read_text(), mark("group_copies"), levels_table(pd.read_csv(options.out))))
        return
    warnings.simplefilter("ignore")
    for design in designs():
        chosen = design.n_groups in options.groups and design.n_classes in options.classes
        if not chosen or design.predictions not in options.kinds:
            continue
        for method in options.methods:
            if method in {"event", "bootstrap_interval"} and design.n_classes > 2:
                continue
            rates, seconds = measure(method, design, options.data_sets)
            rest = {"data sets": options.data_sets, "commit": commit()}
            rows = [asdict(design) | {"method": name, "rate": rate} | rest for name, rate in rates.items()]
            pd.DataFrame(rows).to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
            print(
                design, *(f"{name}: {100 * rate:.1f}" for name, rate in rates.items()), f"{seconds:.3f} s", flush=True
            )


if __name__ == "__main__":
    main()
