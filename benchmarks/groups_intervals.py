"""How often intervals and certificates of the l2 error are wrong, with groups and with weights.

``python -m benchmarks.groups_intervals`` writes docs/data/groups-intervals.csv, from which
``python benchmarks/validity.py --page`` makes a part of docs/validity.md.
"""

import argparse
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy import special, stats

from caltest.estimation.errors._l2_interval import l2_distribution
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of

SEED = 20261123
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Design:
    """Groups of observations whose labels share a latent normal variable, and a model that is wrong by a known shift.

    ``base`` is the prediction: "uniform" between .05 and .95, a number, or a number of classes, "3 classes". ``vary``
    says whether predictions vary within groups. ``sizes`` is "equal", "unequal" (exponential) or "half" (one group has
    half of the observations), ``weights`` "one", "20:1", "Pareto" or "zeros". The true probability of the event is
    ``shift`` larger; of more classes ``shift`` of the probability of the first goes to the second one.
    """

    n_groups: int
    size: int
    base: str
    vary: bool
    shift: float
    correlation: float
    sizes: str = "equal"
    weights: str = "one"

    def data(self, rng):
        """Return labels, predictions, true probabilities, groups and weights of one data set."""
        sizes = np.full(self.n_groups, self.size)
        if self.sizes == "half":
            sizes[0] = self.size * (self.n_groups - 1)
        elif self.sizes == "unequal":
            sizes = np.maximum(1, np.round(self.size * rng.exponential(size=self.n_groups))).astype(int)
        group = np.repeat(np.arange(self.n_groups), sizes)
        n = len(group)
        if self.base.endswith("classes"):
            n_classes = int(self.base.split()[0])
            logits = rng.normal(scale=1.5, size=(n, n_classes) if self.vary else (self.n_groups, n_classes))
            prob = special.softmax(logits if self.vary else logits[group], axis=1)
            truth = prob.copy()
            moved = self.shift * prob[:, 0]
            truth[:, 0] -= moved
            truth[:, 1] += moved
        else:
            if self.base == "uniform":
                event = rng.uniform(0.05, 0.95, n if self.vary else self.n_groups)
                event = event if self.vary else event[group]
            else:
                event = float(self.base) * (rng.uniform(0.8, 1.2, n) if self.vary else np.ones(n))
            true = event + self.shift * np.where(event + self.shift < 0.99, 1, -1)
            prob, truth = np.column_stack([1 - event, event]), np.column_stack([1 - true, true])
        latent = np.sqrt(self.correlation) * rng.standard_normal(self.n_groups)[group]
        latent += np.sqrt(1 - self.correlation) * rng.standard_normal(n)
        order = rng.permutation(prob.shape[1])  # which labels come together
        cumulative = np.cumsum(truth[:, order], axis=1)[:, :-1]
        label = order[(special.ndtr(latent)[:, None] > cumulative).sum(axis=1)]
        weight = {
            "one": lambda: None,
            "20:1": lambda: np.where(rng.random(n) < 0.1, 20.0, 1.0),
            "Pareto": lambda: rng.pareto(1.5, n) + 1,
            "zeros": lambda: (rng.random(n) < 0.5) * 1.0 * np.where(rng.random(n) < 0.5, 3, 1),
        }[self.weights]()
        return label, prob, truth, group if self.size > 1 else None, weight


def wrong(design, number):
    """Return whether a certificate, a certificate of few groups, and a lower end are wrong on one data set."""
    rng = np.random.default_rng([SEED, *np.frombuffer(repr(design).encode(), np.uint8), number])
    label, prob, truth, group, weight = design.data(rng)
    sample = make_sample(label, prob, groups=group, sample_weight=weight)
    found, cut = l2_distribution(sample, None, rng=number)
    cells = cells_of(sample, cut)
    gap = (truth - prob)[sample.row][:, 1 if prob.shape[1] == 2 else 0 :]
    own = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    sums = np.stack([np.bincount(cells.index, own * column, cells.n_cells) for column in gap.T], axis=1)
    target = float((np.square(sums).sum(axis=1) / cells.count).sum() / own.sum())
    above = found.above(target) <= 0.025
    if not design.shift > 0 or found.below(target) > 0.05:
        return False, False, above
    certified, _ = l2_distribution(sample, None, any_shock=True, rng=number)  # rejects less, with the same draws
    return True, certified.below(target) <= 0.05, above


GROUPS = ((5, 40), (10, 40), (20, 20), (50, 10), (200, 5))
SHIFT = {"uniform": 0.1, "0.5": 0.1, "0.1": 0.1, "0.02": 0.05, "0.005": 0.01}
SOME = {10, 50}
LARGE = ((400, 50), (4000, 5))  # random signs alone


def of_groups(n_groups, size):
    """Return models of so many groups, as arguments of `Design` after the first two, without the shift."""
    yield from (("uniform", False, 0.3), ("uniform", True, 0.3), ("0.1", True, 0.3), ("0.02", False, 0.3))
    yield from (("uniform", False, 0.3, "unequal"), ("0.02", False, 0.3, "unequal"), ("3 classes", True, 0.3))
    yield ("uniform", True, 0.2, "equal", "20:1")
    if n_groups in SOME:
        yield from ((base, True, r) for base in ("uniform", "0.02") for r in (0.0, 0.1, 0.5))
        yield from (("uniform", True, 0.3, "half"), ("10 classes", False, 0.1), ("0.5", False, 0.3))


def designs():
    """Return the designs of the table, each with a model that is wrong and with one that is calibrated."""
    chosen = [(n, size, *model) for n, size in GROUPS for model in of_groups(n, size)]
    chosen += [
        (n, 1, base, True, 0.0, "equal", weights)
        for n, bases in ((300, ("uniform", "0.1", "0.02", "3 classes")), (1000, ("0.005", "10 classes")))
        for weights in ("20:1", "Pareto", "zeros")
        for base in bases
    ]
    chosen += [(*size, *model) for size in LARGE for model in (("uniform", True, 0.3), ("0.02", True, 0.1))]
    chosen += [(20_000, 1, "0.005", True, 0.0, "equal", weights) for weights in ("20:1", "Pareto")]
    chosen += [(1000, 5, "10 classes", True, 0.1)]
    return [Design(*model[:4], shift, *model[4:]) for model in chosen for shift in (SHIFT.get(model[2], 0.5), 0.0)]


NOMINAL = {"interval": 0.05, "certificate": 0.05, "lower_end": 0.025}
"""Rates that are wrong at most, of each measured column."""


def limit(nominal, sets):
    """Return the largest rate that chance explains in one of many cells."""
    return float(stats.binom.ppf(1 - 1e-3, sets, nominal)) / sets


def main():
    """Measure, or go on with what is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--part", default="", help="only designs whose text has this part")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "data" / "groups-intervals.csv")
    options = parser.parse_args()
    names = [field.name for field in fields(Design)]
    rows = pd.read_csv(options.out, dtype={"base": str}).to_dict("records") if options.out.exists() else []
    known = {tuple(str(row[name]) for name in names) for row in rows if row["sets"] >= options.sets}
    for design in designs():
        if tuple(map(str, astuple(design))) in known or options.part not in repr(design):
            continue
        jobs = (joblib.delayed(wrong)(design, number) for number in range(options.sets))
        found = np.array(joblib.Parallel(options.workers)(jobs), dtype=float).mean(axis=0)
        rates = dict(zip(("interval", "certificate", "lower_end"), found.tolist(), strict=True))
        rows.append({**{name: getattr(design, name) for name in names}, "sets": options.sets, **rates})
        high = [name for name, most in NOMINAL.items() if rates[name] > limit(most, options.sets)]
        print(design, rates, *high, flush=True)
        options.out.parent.mkdir(exist_ok=True)
        pd.DataFrame(rows).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
