"""How often intervals of `paired_test` and `unpaired_test` with groups or weights miss the true difference.

``python -m benchmarks.groups_comparisons`` writes docs/data/groups-comparisons.csv, from which
``python benchmarks/validity.py --page`` makes a part of docs/validity.md.
"""

import argparse
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy import special
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of

LEVEL = 0.05
N_RESAMPLES = 199
SEED = 20261123


@dataclass(frozen=True)
class Design:
    """Two models and observations in groups.

    Attributes
    ----------
    sizes : tuple of int
        Sizes of the groups; of size 1, observations are independent.
    kind : str
        "opposite": both models differ from the truth by a constant; "crossed": the second one by a constant of opposite
        sign on the two sides of 0.5; "noisy": the second one has noise too; "rare": the true probability is .04 to .06;
        "few cells": it has two values, so that models differ by a constant in every cell; or a number of classes, of
        which the first model favours the first one and the second model the last one.
    shifts : tuple of float
        By how much the models differ from the truth: of probabilities, or of logits where there are more classes.
    varies : bool
        Whether predictions vary within groups.
    correlation : float
        Latent correlation of labels of a group; with more classes, that of copies of a common label.
    weights : str
        "one", "20:1", "pareto", "zeros" (a third of the observations), "exponential" or "dominated" (one observation
        has half of the weight).
    lens : lens
        The lens.
    is_paired : bool
        Whether models have the same observations.
    """

    sizes: tuple[int, ...]
    kind: str
    shifts: tuple[float, float]
    varies: bool = False
    correlation: float = 0.0
    weights: str = "one"
    lens: object = field(default_factory=caltest.Canonical)
    is_paired: bool = True

    @property
    def has_groups(self):
        """Whether any group has several observations."""
        return max(self.sizes) > 1

    def sample(self, rng):
        """Return both predictions, the truth, labels, groups and weights of one data set."""
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        wide = (lambda x: x) if self.varies else (lambda x: x[: len(self.sizes)][group])
        if "classes" in self.kind:
            one, two, truth = self._classes(wide, len(group), rng)
        else:
            one, two, truth = (np.column_stack([1 - p, p]) for p in self._events(wide, len(group), rng))
        return one, two, truth, self._labels(truth, group, rng), group, self._weights(len(group), rng)

    def _classes(self, wide, n, rng):
        n_classes = int(self.kind.split()[0])
        truth = wide(rng.dirichlet(np.full(n_classes, 0.5), n))
        tilted = [
            truth * np.exp(shift * (np.arange(n_classes) == k))
            for shift, k in zip(self.shifts, (0, n_classes - 1), strict=True)
        ]
        return *(p / p.sum(axis=1, keepdims=True) for p in tilted), truth

    def _events(self, wide, n, rng):
        truth = wide(rng.uniform(0.04, 0.06, n) if self.kind == "rare" else rng.uniform(0.25, 0.75, n))
        if self.kind == "few cells":
            truth = np.where(np.arange(n) % 2, 0.3, 0.6)
        a, b = self.shifts
        two = truth + b * (np.where(truth < 0.5, -1, 1) if self.kind == "crossed" else 1)
        if self.kind == "noisy":
            two = two + wide(rng.uniform(-0.1, 0.1, n))
        return (truth + a).clip(0, 1), two.clip(0, 1), truth

    def _labels(self, truth, group, rng):
        number, n = len(self.sizes), len(group)
        if truth.shape[1] == 2:
            shared = rng.standard_normal(number)[group]
            latent = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * rng.standard_normal(n)
            return (latent < special.ndtri(truth[:, 1])).astype(int)
        copies = rng.random(n) < np.sqrt(self.correlation)
        uniform = np.where(copies, rng.random(number)[group], rng.random(n))
        return (uniform[:, None] >= np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)

    def _weights(self, n, rng):
        if self.weights == "one":
            return None
        return {
            "20:1": lambda: np.where(rng.random(n) < 0.1, 20.0, 1.0),
            "pareto": lambda: 1 + rng.pareto(1.5, n),
            "zeros": lambda: (rng.random(n) > 1 / 3).astype(float) * rng.exponential(size=n),
            "exponential": lambda: rng.exponential(size=n),
            "dominated": lambda: np.where(np.arange(n) == n // 2, n - 1.0, 1.0),
        }[self.weights]()

    @property
    def name(self):
        """The design in words."""
        some = f"{self.sizes[0]}" if len(set(self.sizes)) == 1 else f"{min(self.sizes)} to {max(self.sizes)}"
        size = f"{len(self.sizes)} groups of {some}" if self.has_groups else f"{len(self.sizes)} observations"
        vary = " within" if self.varies and self.has_groups else ""
        shifts = ", ".join(f"{shift:+g}" for shift in self.shifts)
        lens = "" if self.lens == caltest.Canonical() else f", {self.lens}"
        weights = "" if self.weights == "one" else f", weights {self.weights}"
        return f"{'' if self.is_paired else 'unpaired, '}{size}, {self.kind}{vary} {shifts}{lens}{weights}"


def unequal(n_groups, n):
    """Return sizes that grow in proportion to the number of the group, with about n observations in all."""
    share = np.arange(1, n_groups + 1) / (n_groups * (n_groups + 1) / 2)
    return tuple(int(size) for size in np.maximum(np.rint(share * n), 1))


CONFIDENCE = caltest.Confidence()
OPPOSITE, RARE, APART, CALIBRATED = (0.1, -0.1), (-0.04, 0.04), (0.2, 0.05), (0.0, 0.0)
PAIRED = [
    *(Design((m,) * g, "opposite", OPPOSITE, False, 0.3) for g, m in ((5, 40), (10, 40), (15, 20), (30, 20), (200, 5))),
    Design((10,) * 50, "opposite", OPPOSITE, False, 0.1),
    Design((20,) * 15, "crossed", (0.15, 0.15), False, 0.3),
    Design((20,) * 30, "crossed", (0.15, 0.15), False, 0.3),
    Design((40,) * 15, "crossed", (0.15, 0.15), True, 0.1),
    Design((10,) * 100, "crossed", (0.15, 0.15), False, 0.3),
    Design((20,) * 30, "noisy", OPPOSITE, False, 0.1),
    Design((40,) * 15, "noisy", CALIBRATED, True, 0.1),
    Design((20,) * 30, "noisy", CALIBRATED, True, 0.5),
    Design((40,) * 30, "opposite", (0.2, 0.02), False, 0.1),
    Design((10,) * 100, "opposite", APART, False, 0.1),
    Design((20,) * 20, "opposite", (0.2, 0.02), False, 0.3),
    Design((20,) * 30, "rare", RARE, False, 0.3),
    Design((40,) * 15, "rare", RARE, True, 0.1),
    Design((10,) * 200, "rare", RARE, True, 0.3),
    Design((10,) * 50, "rare", (0.1, 0.02), False, 0.1),
    Design((40,) * 10, "few cells", OPPOSITE, True, 0.1),
    Design((20,) * 30, "few cells", OPPOSITE, True, 0.1),
    Design((20,) * 30, "few cells", APART, True, 0.1),
    Design((5,) * 200, "few cells", OPPOSITE, True, 0.3),
    Design(unequal(10, 400), "opposite", OPPOSITE, True, 0.1),
    Design(unequal(30, 600), "opposite", OPPOSITE, False, 0.3),
    Design(unequal(50, 1000), "crossed", (0.15, 0.15), True, 0.1),
    Design(unequal(100, 1000), "rare", RARE, False, 0.3),
    Design((1, *(20,) * 20, 400), "opposite", OPPOSITE, True, 0.1),
]
CLASSES = [
    *(
        Design((m,) * g, f"{k} classes", (0.5, 0.5), varies, r)
        for k, g, m, varies, r in (
            (3, 10, 40, True, 0.1), (3, 20, 20, False, 0.3), (3, 50, 10, True, 0.3), (3, 200, 5, True, 0.5),
            (10, 20, 20, True, 0.1), (10, 50, 10, False, 0.3), (10, 200, 5, True, 0.3),
        )
    ),
    Design((10,) * 50, "3 classes", CALIBRATED, True, 0.3),
    Design((10,) * 50, "3 classes", (1.5, 0.3), True, 0.1),
    Design(unequal(30, 600), "3 classes", (0.5, 0.5), True, 0.3),
    *(
        Design((m,) * g, f"{k} classes", (0.7, 0.7), varies, r, lens=CONFIDENCE)
        for k, g, m, varies, r in ((3, 10, 40, True, 0.1), (3, 50, 10, False, 0.3), (10, 50, 10, True, 0.3))
    ),
    Design((10,) * 50, "5 classes", (0.7, 0.7), True, 0.3, lens=caltest.TopK(2)),
]  # fmt: skip
UNPAIRED = [
    *(
        Design((m,) * g, "opposite", OPPOSITE, varies, r, is_paired=False)
        for g, m, varies, r in ((10, 40, True, 0.1), (15, 20, False, 0.3), (30, 20, False, 0.3), (100, 10, False, 0.3))
    ),
    Design((40,) * 30, "opposite", APART, False, 0.1, is_paired=False),
    Design((20,) * 30, "rare", RARE, False, 0.3, is_paired=False),
    Design((40,) * 15, "rare", RARE, True, 0.1, is_paired=False),
    Design((10,) * 200, "rare", RARE, True, 0.3, is_paired=False),
    Design((20,) * 30, "few cells", OPPOSITE, True, 0.1, is_paired=False),
    Design(unequal(30, 600), "opposite", OPPOSITE, True, 0.3, is_paired=False),
    Design((10,) * 50, "3 classes", (0.5, 0.5), True, 0.3, is_paired=False),
]
BOTH = [
    Design((20,) * 30, kind, shifts, varies, 0.2, weights)
    for kind, shifts, varies in (("opposite", OPPOSITE, True), ("crossed", (0.15, 0.15), False), ("rare", RARE, True))
    for weights in ("20:1", "pareto", "zeros")
]
KINDS = {
    "noisy": CALIBRATED,
    "opposite": OPPOSITE,
    "crossed": (0.15, 0.15),
    "rare": RARE,
    "few cells": OPPOSITE,
    "3 classes": (0.5, 0.5),
}
WEIGHTS = [
    *(
        Design((1,) * 300, kind, shifts, True, 0.0, weights)
        for weights in ("20:1", "pareto", "zeros", "exponential")
        for kind, shifts in KINDS.items()
    ),
    *(
        Design((1,) * 2000, kind, KINDS[kind], True, 0.0, weights)
        for weights in ("20:1", "pareto", "zeros")
        for kind in ("opposite", "rare", "few cells")
    ),
    Design((1,) * 300, "opposite", APART, True, 0.0, "20:1"),
    Design((1,) * 300, "opposite", OPPOSITE, True, 0.0, "dominated"),
]
DESIGNS = {"groups": PAIRED, "classes": CLASSES, "unpaired": UNPAIRED, "both": BOTH, "weights": WEIGHTS}


def target(prob, truth, lens, weight):
    """Return the squared l2 error of a model in its cells."""
    sample = make_sample(np.zeros(len(prob), dtype=int), prob, lens=lens, sample_weight=weight)
    cells, order = cells_of(sample, caltest.VarianceTree()), np.argsort(sample.row)
    kept = np.arange(len(prob)) if weight is None else np.flatnonzero(weight > 0)
    w = np.ones(len(kept)) if weight is None else weight[kept]
    probs, true = prob[kept], truth[kept]
    outcomes = np.column_stack([lens(probs, np.full(len(kept), k))[1] for k in range(prob.shape[1])])
    number = sample.n_outcomes
    chance = np.stack([np.where(outcomes == o, true, 0.0).sum(axis=1) for o in range(number)], axis=1)
    gap = (chance - lens(probs, np.zeros(len(kept), dtype=int))[0])[:, 1 if number == 2 else 0 :]
    index = cells.index[order]
    count = np.bincount(index, w)
    return sum(float((np.bincount(index, w * column) ** 2 / count).sum()) for column in gap.T) / float(w.sum())


def one_set(design, rng):
    """Return whether the interval is below and above the true difference, and whether equality is rejected."""
    one, two, truth, label, group, weight = design.sample(rng)
    options = {"lens": design.lens, "n_resamples": N_RESAMPLES}
    if design.is_paired:
        groups = group if design.has_groups else None
        found = caltest.paired_test(label, one, two, groups=groups, sample_weight=weight, rng=rng, **options)
        true = target(one, truth, design.lens, weight) - target(two, truth, design.lens, weight)
    else:
        _, other, other_truth, other_label, other_group, _ = design.sample(rng)
        found = caltest.unpaired_test(
            label, one, other_label, other, groups_a=group, groups_b=other_group, rng=rng, **options
        )
        true = target(one, truth, design.lens, None) - target(other, other_truth, design.lens, None)
    low, high = found.confidence_interval
    return true < low - 1e-12, true > high + 1e-12, found.pvalue <= LEVEL, np.isinf(high)


def measure(part, design, n_data_sets, seed):
    """Return how often the interval misses on each side, and how often equality is rejected."""
    rng = np.random.default_rng(seed)
    above, below, rejected, unknown = np.mean([one_set(design, rng) for _ in range(n_data_sets)], axis=0)
    return {
        "part": part,
        "design": design.name,
        "correlation": design.correlation,
        "data sets": n_data_sets,
        "missed": round(above + below, 4),
        "interval above": round(above, 4),
        "interval below": round(below, 4),
        "rejected": round(rejected, 4),
        "no interval": round(unknown, 4),
    }


def too_often(row):
    """Return whether more intervals miss than a nominal miss of 5 % explains by chance, at the level .001."""
    n = int(row["data sets"])
    return row["missed"] * n > binom.ppf(0.999, n, LEVEL)


def main():
    """Measure, and write data."""
    parser = argparse.ArgumentParser(description="Comparisons of grouped and weighted observations.")
    parser.add_argument("--data-sets", type=int, default=400, help="data sets per design (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", default=list(DESIGNS), choices=list(DESIGNS), help="which designs")
    parser.add_argument("--missing", action="store_true", help="measure only designs that the data lack")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: all processors)")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the page")
    options = parser.parse_args()
    data = options.docs / "data" / "groups-comparisons.csv"
    known = pd.read_csv(data) if data.exists() else pd.DataFrame({"design": []})
    left_out = set(known["design"]) if options.missing else set()
    tasks = (
        joblib.delayed(measure)(part, design, options.data_sets, [SEED, list(DESIGNS).index(part), number])
        for part in options.parts
        for number, design in enumerate(DESIGNS[part])
        if design.name not in left_out
    )
    measured = pd.DataFrame(joblib.Parallel(n_jobs=options.workers, verbose=10)(tasks))
    in_order([known[~known["design"].isin(measured["design"])], measured]).to_csv(data, index=False)


def in_order(frames):
    """Return rows of designs in the order of the designs."""
    place = {design.name: number for number, design in enumerate(chain(*DESIGNS.values()))}
    return pd.concat(frames).sort_values("design", key=lambda names: names.map(place), kind="stable")


if __name__ == "__main__":
    main()
