"""How often the default test rejects calibrated models whose events come in few groups, without and with alike labels.

``python -m benchmarks.few_groups`` writes docs/data/few-groups.csv and the tables of docs/grouped-evidence.md.
"""

import argparse
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

import caltest
from benchmarks.groups import unequal
from benchmarks.machine import commit
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from caltest.predictions._sample import induce
from caltest.predictions._view import LensView
from caltest.resampling.draws._alike_draws import ENOUGH_GROUPS, AlikeDraws
from caltest.resampling.engine._evaluation import Evaluation, Question, draw_nulls
from caltest.resampling.engine._pvalues import rank_pvalues
from caltest.resampling.engine._run import settle

LEVEL = 0.05
N_RESAMPLES = 199
BLOCKS = 4  # predictions of a design; each has as many data sets
SEED = 20261127
GROUPS, SIZES, EVENTS, ICC = (6, 10, 20, 30, 50), (300, 1000, 3000), (0.005, 0.02, 0.1, 0.5), (0.0, 0.05, 0.15, 0.3)
SHAPES = (("within", "normal"), ("between", "beta"), ("between", "normal"))


@dataclass(frozen=True)
class Design:
    """A model and groups of observations whose labels are alike.

    ``events`` is the mean prediction of the event, or of a wrong prediction of five classes; ``icc`` the intraclass
    correlation of its indicator, from a shared normal number or from a probability of the group with a beta
    distribution; predictions vary ``within`` groups or only ``between`` them. The true odds are ``odds`` times those
    of the predictions.
    """

    n_groups: int
    n_samples: int
    events: float
    icc: float
    sizes: str = "equal"
    predictions: str = "within"
    dependence: str = "normal"
    n_classes: int = 2
    odds: float = 1.0

    def sample(self, rng):
        """Return predictions in groups, with labels that are not used."""
        equal = (max(self.n_samples // self.n_groups, 1),) * self.n_groups
        sizes = equal if self.sizes == "equal" else unequal(self.n_groups, self.n_samples)
        group = np.repeat(np.arange(self.n_groups), sizes)
        score = own = rng.standard_normal(self.n_groups)[group]
        if self.predictions == "within":
            score = np.sqrt(0.3) * own + np.sqrt(0.7) * rng.standard_normal(len(group))
        event = 2 * self.events * special.ndtr(score)
        prob = np.column_stack([1 - event, event])
        if self.n_classes > 2:
            rest = rng.dirichlet(np.ones(self.n_classes - 1), len(group))
            prob = np.column_stack([1 - event, event[:, None] * rest])
            prob = rng.permuted(prob, axis=1)
        return induce(prob, np.zeros(len(group), dtype=int), group=group)

    def labels(self, sample, number, rng):
        """Return labels ``(number, n_samples)``."""
        top = sample.expected.argmax(axis=1) if self.n_classes > 2 else np.zeros(sample.n_samples, dtype=int)
        kept = sample.expected[np.arange(sample.n_samples), top]
        event = special.expit(special.logit(1 - kept) + np.log(self.odds))
        true = np.column_stack([1 - event, event])
        of_event = induce(true, np.zeros(len(event), dtype=int), group=sample.group)
        if self.dependence == "beta" and self.icc:
            place = np.unique(sample.group, return_index=True)[1]
            size = 1 / self.icc - 1
            chance = rng.beta(event[place] * size, (1 - event[place]) * size, size=(number, len(place)))
            happened = rng.random((number, len(event))) < chance[:, sample.group]
        else:
            draws = AlikeDraws.as_alike(of_event, self.icc, number, rng)
            drawn = np.concatenate([labels for _, labels in draws.blocks(of_event)])
            happened = np.empty(drawn.shape, dtype=bool)
            happened[:, of_event.row] = drawn == 1  # sorted by the event
        if self.n_classes == 2:
            return happened.astype(np.uint8)
        others = sample.expected.copy()
        others[np.arange(len(top)), top] = 0.0
        bounds = np.cumsum(others / others.sum(axis=1, keepdims=True), axis=1)
        other = (rng.random((number, len(top)))[..., None] > bounds).sum(axis=2)
        return np.where(happened, np.minimum(other, self.n_classes - 1), top).astype(np.uint8)


def designs():
    """Return the designs: one of each number of groups, rarity and correlation, the rest by chance, and others."""
    rng = np.random.default_rng(SEED)
    found = []
    for n_groups, events, icc in itertools.product(GROUPS, EVENTS, ICC):
        size, shape, same = rng.permutation(SIZES)[0], rng.permutation(len(SHAPES))[0], rng.permutation(2)[0]
        found.append(Design(n_groups, int(size), events, icc, ("equal", "unequal")[same], *SHAPES[shape]))
    for n_groups, events, icc in itertools.product((10, 30), (0.02, 0.1), (0.0, 0.15)):
        found.append(Design(n_groups, 1000, events, icc, "equal", "between", "beta", n_classes=5))
    found += [Design(n, 1000, 0.02, icc, "equal", "between", "beta") for n in (100, 200) for icc in (0.15, 0.3)]
    changed = [(10, 1000, 0.5, 0.05, 1.8), (20, 1000, 0.5, 0.05, 1.5), (50, 1000, 0.5, 0.05, 1.35)]
    changed += [(20, 1000, 0.1, 0.0, 1.5), (20, 1000, 0.1, 0.0, 0.6), (50, 1000, 0.1, 0.05, 1.5)]
    changed += [(50, 1000, 0.1, 0.05, 0.55), (50, 3000, 0.02, 0.01, 1.7), (50, 3000, 0.02, 0.01, 0.5)]
    changed += [(200, 1000, 0.02, 0.0, 0.4), (20, 3000, 0.1, 0.05, 1.8), (20, 3000, 0.1, 0.05, 0.5)]
    return [*found, *(Design(*design, odds=odds) for *design, odds in changed)]


def pvalues(design, number, rng):
    """Return the p-values ``(number, 2)`` by labels and signs, and by labels that are alike too."""
    sample = design.sample(rng)
    null, statistic = caltest.Consistency(), settle(caltest.Omnibus(), sample)
    question = [Question(statistic, LensView(sample))]
    (independent,) = draw_nulls(question, sample, null.draws(N_RESAMPLES, rng))
    evaluation = Evaluation(question, sample, null.draws(1, rng))
    found = np.ones((number, 2))
    for place, labels in enumerate(design.labels(sample, number, rng)):
        one = sample.relabelled(labels.astype(sample.outcome.dtype))
        values = evaluation.of_labels(one.outcome)[0]
        found[place] = rank_pvalues(one, values, independent)[1][0]
        if found[place, 0] > LEVEL:
            continue  # it can only grow
        scheme, asked = null.for_sample(one), [Question(statistic, LensView(one))]
        (signed,) = draw_nulls(asked, one, scheme.draws(N_RESAMPLES, rng))
        found[place] = max(found[place, 0], rank_pvalues(one, values, signed)[1][0])
        alike = scheme.alike_draws(one, N_RESAMPLES, rng)
        if alike is not None and found[place, 0] <= LEVEL:
            found[place, 1] = max(found[place, 1], rank_pvalues(one, values, draw_nulls(asked, one, alike)[0])[1][0])
    return found


def measure(design, number, n_data_sets):
    """Return the rejection rates of a design."""
    rng = np.random.default_rng([SEED, number])
    found = np.concatenate([pvalues(design, n_data_sets // BLOCKS, rng) for _ in range(BLOCKS)])
    before, after = (found <= LEVEL).mean(axis=0).round(4)
    rates = {"data sets": len(found), "labels and signs": before, "with alike labels": after}
    return {**vars(design), **rates, "enough groups": ENOUGH_GROUPS, "commit": commit()}


def levels_table(frame):
    """Return the largest rates of calibrated models of two outcomes by number of groups and rarity."""
    some = frame[(frame["odds"] == 1) & (frame["n_classes"] == 2) & frame["n_groups"].isin(GROUPS)]
    rows = [
        [f"{n_groups}", *(_largest(part[part["events"] == events]) for events in EVENTS)]
        for n_groups, part in some.groupby("n_groups")
    ]
    above = [int((some[name] > 0.065).sum()) for name in ("labels and signs", "with alike labels")]
    note = f"{int(some['data sets'].min())} data sets in each of {len(some)} designs, {N_RESAMPLES} draws. "
    note += f"Above 6.5 %: {above[0]} designs / {above[1]}. "
    rules = some["enough groups"].value_counts().sort_index()
    which = " and ".join(f"{number} designs with {enough}" for enough, number in rules.items())
    note += f"So many groups with a surprise were enough for signs: {which}.\n"
    return f"{table(('groups', *(f'{100 * events:g} % events' for events in EVENTS)), rows)}\n{note}"


def _largest(part):
    return " / ".join(f"{100 * part[name].max():.1f}" for name in ("labels and signs", "with alike labels"))


def others_table(frame):
    """Return the rates of several classes, of many groups, and of predictions that are wrong."""
    some = frame[(frame["odds"] != 1) | (frame["n_classes"] > 2) | ~frame["n_groups"].isin(GROUPS)]
    rows = [
        (
            f"{row['n_groups']} groups, {row['n_samples']} observations, "
            + (f"{100 * row['events']:g} % events" if row["n_classes"] == 2 else f"{100 * row['events']:g} % wrong"),
            f"{row['n_classes']}",
            f"{row['icc']:.2f}",
            "calibrated" if row["odds"] == 1 else f"odds times {row['odds']:g}",
            f"{100 * row['labels and signs']:.1f}",
            f"{100 * row['with alike labels']:.1f}",
        )
        for _, row in some.iterrows()
    ]
    columns = ("data", "classes", "correlation", "truth", "labels and signs", "with alike labels")
    return f"{table(columns, rows)}\n"


def main():
    """Measure, and write data and tables."""
    parser = argparse.ArgumentParser(description="Tests of few groups.")
    parser.add_argument("--data-sets", type=int, default=400, help="data sets per design (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of data and page")
    options = parser.parse_args()
    data, page = options.docs / "data" / "few-groups.csv", options.docs / "grouped-evidence.md"
    if not options.page:
        rows = []
        for number, design in enumerate(designs()):
            rows.append(measure(design, number, options.data_sets))
            print(*rows[-1].values(), flush=True)
        pd.DataFrame(rows).to_csv(data, index=False)
    frame, text = pd.read_csv(data), page.read_text()
    text = with_table(text, mark("few_groups", "levels"), levels_table(frame))
    page.write_text(with_table(text, mark("few_groups", "others"), others_table(frame)))


if __name__ == "__main__":
    main()
