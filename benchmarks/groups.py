"""How often tests with groups reject calibrated models whose labels depend on each other within groups.

``python -m benchmarks.groups`` writes docs/groups.csv; ``--data-sets`` sets the number of data sets of a row.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr

import caltest
from caltest.predictions._sample import induce
from caltest.predictions._view import LensView
from caltest.resampling._run import Question, run
from caltest.statistics import ECE, KS, MMCE, SKCE, ClasswiseKS, Kuiper, Omnibus, SquaredL2, TCal, TemperatureScore

LEVEL = 0.05
N_RESAMPLES = 399
CONFIDENCE = (ECE(caltest.EqualWidth(15)), KS(), Kuiper(), MMCE(), TCal())
WHOLE = (Omnibus(), ECE(), ClasswiseKS(), SquaredL2(), TemperatureScore(), SKCE())


@dataclass(frozen=True)
class Design:
    """A calibrated model and groups of observations whose labels share a latent normal variable.

    ``sizes`` are the sizes of the groups, ``correlation`` that of the latent variables of two observations of a group,
    ``kind`` the predictions: "spread" (uniform), "rare" (events of about 1 %), or a number of classes, sharp.
    """

    kind: str
    sizes: tuple[int, ...]
    correlation: float

    def sample(self, rng):
        """Return labels, predictions and groups of one data set; predictions of a group are similar."""
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        prob = self._prob(group, rng)
        shared = rng.standard_normal(len(self.sizes))[group]
        latent = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * rng.standard_normal(len(group))
        label = (ndtr(latent)[:, None] > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
        return label, prob, group

    def _prob(self, group, rng):
        n_groups = len(self.sizes)
        own, other = rng.standard_normal(n_groups)[group], rng.standard_normal(len(group))
        score = np.sqrt(0.3) * own + np.sqrt(0.7) * other
        if self.kind in {"spread", "rare"}:
            event = ndtr(score) if self.kind == "spread" else 0.02 * ndtr(score)
            return np.column_stack([1 - event, event])
        n_classes = int(self.kind.split()[0])
        logits = 2 * (rng.standard_normal((n_groups, n_classes))[group] + rng.standard_normal((len(group), n_classes)))
        prob = np.exp(logits - logits.max(axis=1, keepdims=True))
        return prob / prob.sum(axis=1, keepdims=True)


def unequal(n_groups, n):
    """Return sizes that grow in proportion to the number of the group, with about n observations in all."""
    share = np.arange(1, n_groups + 1) / (n_groups * (n_groups + 1) / 2)
    return tuple(int(size) for size in np.maximum(np.rint(share * n), 1))


EQUAL = {10: (100,) * 10, 20: (50,) * 20, 50: (20,) * 50, 200: (5,) * 200}
DESIGNS = [
    *(Design("spread", EQUAL[g], r) for g in (10, 20, 50, 200) for r in (0.0, 0.05, 0.3)),
    *(Design("spread", unequal(g, 1000), 0.05) for g in (10, 20, 50)),
    *(Design("10 classes", EQUAL[g], r) for g in (10, 20, 50, 200) for r in (0.05, 0.3)),
    Design("10 classes", unequal(20, 1000), 0.05),
    *(Design("rare", tuple(4 * m for m in EQUAL[g]), r) for g in (10, 20, 50, 200) for r in (0.05, 0.3)),
    Design("spread", (1000,) * 20, 0.02),
]


def pvalues(design, rng, grouped=True):
    """Return the p-value of every statistic on one data set, by name."""
    label, prob, group = design.sample(rng)
    base = induce(prob, label, group=group if grouped else None)
    top = LensView.of(caltest.Confidence(), prob, label, base)
    questions = [*(Question(s, LensView(base)) for s in WHOLE), *(Question(s, top) for s in CONFIDENCE)]
    found = run(questions, base, caltest.Consistency(), n_resamples=N_RESAMPLES, rng=rng)
    return {
        type(q.statistic).__name__ + (", confidence" if q.view is top else ""): f.pvalue
        for q, f in zip(questions, found.findings, strict=True)
    }


def measure(design, n_data_sets, seed, grouped=True):
    """Return the rejection rate of every statistic."""
    rng = np.random.default_rng(seed)
    rejected = pd.DataFrame([pvalues(design, rng, grouped) for _ in range(n_data_sets)]) <= LEVEL
    sizes = f"{len(design.sizes)} groups of " + (
        f"{design.sizes[0]}" if len(set(design.sizes)) == 1 else f"{min(design.sizes)} to {max(design.sizes)}"
    )
    return {
        "predictions": design.kind,
        "groups": sizes,
        "correlation": design.correlation,
        "grouped": grouped,
        "data sets": n_data_sets,
        **rejected.mean().round(4).to_dict(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("docs/groups.csv"))
    options = parser.parse_args()
    rows = []
    for number, design in enumerate(DESIGNS):
        rows.append(measure(design, options.data_sets, [20261122, number]))
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(options.out, index=False)
