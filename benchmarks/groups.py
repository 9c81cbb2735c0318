"""How often tests with groups reject calibrated models whose labels depend on each other within groups.

``python -m benchmarks.groups`` writes docs/data/groups.csv and the table of docs/grouped-evidence.md.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy import special

import caltest
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from caltest.predictions._sample import induce
from caltest.predictions._view import LensView
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._run import run
from caltest.statistics import ECE, KS, MMCE, SKCE, ClasswiseKS, Kuiper, Omnibus, SquaredL2, TCal, TemperatureScore

LEVEL = 0.05
N_RESAMPLES = 199
SMALL = 200
SEED = 20261122
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
        label = (special.ndtr(latent)[:, None] > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
        return label, prob, group

    def _prob(self, group, rng):
        n_groups = len(self.sizes)
        own, other = rng.standard_normal(n_groups)[group], rng.standard_normal(len(group))
        score = np.sqrt(0.3) * own + np.sqrt(0.7) * other
        if self.kind in {"spread", "rare"}:
            event = special.ndtr(score) if self.kind == "spread" else 0.02 * special.ndtr(score)
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
    *(Design("spread", EQUAL[g], r) for g in (10, 20, 50, 200) for r in (0.05, 0.3)),
    Design("spread", EQUAL[50], 0.0),
    *(Design("spread", unequal(g, 1000), 0.05) for g in (10, 20, 50)),
    *(Design("10 classes", EQUAL[g], 0.1) for g in (10, 20, 50, 200)),
    *(Design("rare", tuple(2 * m for m in EQUAL[g]), r) for g in (20, 50, 200) for r in (0.05, 0.3)),
    Design("spread", (1000,) * 20, 0.02),
    *(Design(kind, sizes, 0.1) for kind in ("spread", "10 classes") for sizes in ((10,) * 20, (4,) * 50)),
]


def pvalues(design, rng):
    """Return the p-value of every statistic on one data set, by name."""
    label, prob, group = design.sample(rng)
    base = induce(prob, label, group=group)
    top = LensView.of(caltest.Confidence(), prob, label, base)
    whole = [s for s in WHOLE if len(label) <= SMALL or not isinstance(s, SKCE)]  # its cost grows with the square
    questions = [*(Question(s, LensView(base)) for s in whole), *(Question(s, top) for s in CONFIDENCE)]
    found = run(questions, base, caltest.Consistency(), n_resamples=N_RESAMPLES, rng=rng)
    return {
        type(q.statistic).__name__ + (", confidence" if q.view is top else ""): f.pvalue
        for q, f in zip(questions, found.answers, strict=True)
    }


def measure(design, n_data_sets, seed):
    """Return the rejection rate of every statistic."""
    rng = np.random.default_rng(seed)
    rejected = pd.DataFrame([pvalues(design, rng) for _ in range(n_data_sets)]) <= LEVEL
    sizes = f"{len(design.sizes)} groups of " + (
        f"{design.sizes[0]}" if len(set(design.sizes)) == 1 else f"{min(design.sizes)} to {max(design.sizes)}"
    )
    return {
        "predictions": design.kind,
        "groups": sizes,
        "correlation": design.correlation,
        "data sets": n_data_sets,
        **rejected.mean().round(4).to_dict(),
    }


SHOWN = ("Omnibus", "ECE", "SquaredL2", "TemperatureScore", "SKCE", "KS, confidence", "Kuiper, confidence")


def rates_table(frame):
    """Return the table of the page."""
    named = [name for name in SHOWN if name in frame.columns]
    rows = [
        (
            f"{row['predictions']}, {row['groups']}",
            f"{row['correlation']:.2f}",
            *("" if pd.isna(row[name]) else f"{100 * row[name]:.1f}" for name in named),
        )
        for _, row in frame.iterrows()
    ]
    note = f"{int(frame['data sets'].min())} data sets in each row, {N_RESAMPLES} draws.\n"
    return f"{table(('predictions, groups', 'correlation', *named), rows)}\n{note}"


def main():
    """Measure, and write data and table."""
    parser = argparse.ArgumentParser(description="Tests of grouped observations.")
    parser.add_argument("--data-sets", type=int, default=400, help="data sets per design (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the table from the data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of data and page")
    options = parser.parse_args()
    data, page = options.docs / "data" / "groups.csv", options.docs / "grouped-evidence.md"
    if not options.page:
        tasks = (
            joblib.delayed(measure)(design, options.data_sets, [SEED, number]) for number, design in enumerate(DESIGNS)
        )
        rows = joblib.Parallel(n_jobs=-1, verbose=10)(tasks)
        pd.DataFrame(rows).to_csv(data, index=False)
    page.write_text(with_table(page.read_text(), mark("groups"), rates_table(pd.read_csv(data))))


if __name__ == "__main__":
    main()
