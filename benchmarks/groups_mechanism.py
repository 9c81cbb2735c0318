"""The test with groups beside one mechanism in its place: labels that share shocks of groups, studentised.

``python -m benchmarks.groups_mechanism`` writes docs/data/groups-mechanism.csv and the tables of
docs/grouped-evidence.md. Both tests are made on the same data sets. The mechanism is

1. the design effect of a rare outcome around its observed frequency, and its upper 80 % confidence limit, with a degree
   of freedom for each group with a surprise but one;
2. labels with exact margins that share a normal shock within groups and have the design effect of this limit;
3. statistics that are divided by the root of the design effect, at least 1, which is computed anew in every draw.

Where fewer than 20 groups of equal size have a surprise, "cautious" supposes an intraclass correlation of at least 0.3
in step 2, and "larger" is the larger one of both p-values.
"""

import argparse
import itertools
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

import caltest
from benchmarks.groups import unequal
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from caltest.predictions._sample import induce
from caltest.predictions._view import LensView
from caltest.resampling.draws._alike_draws import LARGEST_ICC, AlikeDraws, RareOutcome
from caltest.resampling.draws._signs import GroupsWithSurprise
from caltest.resampling.engine._evaluation import Question, components, scale_components
from caltest.resampling.engine._pvalues import rank_pvalues
from caltest.resampling.engine._run import run, settle
from caltest.statistics import ECE, HosmerLemeshow, Omnibus

LEVEL, N_RESAMPLES, SEED = 0.05, 199, 20261127
DISTANCE = 2.5  # of a wrong model, in standard deviations of the score that would find it
LIMIT = 0.8  # confidence
FEW = 20  # groups of equal size with a surprise, as in `caltest` when this was measured
GROUPS, EVENTS, ICC = (5, 10, 20, 50, 200), (0.02, 0.1, 0.5), (0.0, 0.05, 0.3)
ANY, OF_RESIDUALS = (Omnibus(), ECE(), HosmerLemeshow()), (Omnibus(), ECE())  # today's test takes the second ones
TESTS = ("today", "limit", "cautious", "larger")


@dataclass(frozen=True)
class Design:
    """A model, and groups of observations whose labels are alike.

    ``events`` is the mean prediction, ``icc`` the intraclass correlation of labels; of copies it is 1. It comes from a
    ``normal`` shock, a shock whose own ("latent") correlation is ``icc``, or a ``beta`` distribution of the probability
    of a group. Predictions vary ``within`` groups or only ``between`` them. The log-odds of a wrong model are moved
    ``up`` or ``down``, or have another ``slope``.
    """

    n_groups: int
    events: float
    icc: float
    sizes: str = "equal"
    predictions: str = "within"
    dependence: str = "normal"
    truth: str = "calibrated"
    n_samples: int = 1000

    def sample(self, rng):
        """Return a data set."""
        equal = (self.n_samples // self.n_groups,) * self.n_groups
        sizes = equal if self.sizes == "equal" else unequal(self.n_groups, self.n_samples)
        group = np.repeat(np.arange(self.n_groups), sizes)
        score = rng.standard_normal(self.n_groups)[group]
        if self.predictions == "within":
            score = np.sqrt(0.3) * score + np.sqrt(0.7) * rng.standard_normal(len(group))
        prob = 2 * self.events * special.ndtr(score)
        happened = self.happened(prob, group, rng)
        return induce(np.column_stack([1 - prob, prob]), happened.astype(int), group=group)

    def happened(self, prob, group, rng):
        """Return which events happened."""
        true = self.true(prob, group)
        if self.dependence == "beta":
            place, number = np.unique(group, return_index=True)[1], 1 / self.icc - 1
            chance = rng.beta(true[place] * number, (1 - true[place]) * number)
            return rng.random(len(true)) < chance[group]
        latent = self.icc
        if self.dependence == "normal" and 0 < self.icc < 1:
            latent = _outcome(true, group).correlation(self.icc)
        shock, noise = rng.standard_normal(self.n_groups)[group], rng.standard_normal(len(true))
        return np.sqrt(latent) * shock + np.sqrt(1 - latent) * noise < special.ndtri(true)

    def true(self, prob, group):
        """Return the true probabilities: `DISTANCE` standard deviations from the predictions."""
        if self.truth == "calibrated":
            return prob
        logit, variance = special.logit(prob), prob * (1 - prob)
        direction = {"up": np.ones(len(prob)), "down": -np.ones(len(prob))}.get(self.truth)
        if direction is None:
            direction = logit - (variance * logit).sum() / variance.sum()
        information = (variance * direction**2).sum()
        whole = np.square(np.bincount(group, np.sqrt(variance) * direction)).sum()
        spread = np.sqrt(information + self.icc * (whole - information))
        return special.expit(logit + DISTANCE * spread / information * direction)


def _outcome(prob, group):
    return RareOutcome.of(induce(np.column_stack([1 - prob, prob]), np.zeros(len(prob), dtype=int), group=group))


def designs():
    """Return the designs: those in which a test may fail, models of five groups, and wrong models."""
    sizes, other = itertools.cycle(("equal", "unequal")), itertools.cycle(("unequal", "equal"))
    found = [Design(n, 0.01, 0.3, dependence="latent", n_samples=2000) for n in (20, 50, 200)]
    found += [Design(n, events, 1.0, next(sizes), "between") for n in GROUPS for events in EVENTS]
    found += [Design(n, events, 0.3, next(other), "between", "beta") for n in GROUPS for events in EVENTS]
    right = [Design(5, events, icc, next(sizes)) for icc in ICC for events in EVENTS]
    wrong = [Design(10, events, 0.05, truth=truth) for events in EVENTS for truth in ("up", "slope")]
    wrong += [Design(20, events, 0.05, truth="up") for events in (0.02, 0.1)]
    found += [one for pair in itertools.zip_longest(right, wrong) for one in pair if one is not None]
    return found


def correlation(sample):
    """Return the upper limit of the intraclass correlation, and how many groups of equal size have a surprise."""
    rare, number = RareOutcome.of(sample), GroupsWithSurprise.counted(sample).effective_number
    if number <= 1:
        return 1.0, number
    effect = max(float(rare.effect_around(sample.outcome[None])[0]), 1.0)
    effect *= (number - 1) / float(stats.chi2.ppf(1 - LIMIT, number - 1))
    return float(np.clip((effect - 1) * rare.own / rare.pairs, 0.0, 1.0)), number


def studentised(questions, sample, icc, rng):
    """Return p-values by labels that are alike, all statistics divided by the root of the design effect."""
    rare = RareOutcome.of(sample)
    drawn = np.concatenate([labels for _, labels in AlikeDraws.as_alike(sample, icc, N_RESAMPLES, rng).blocks(sample)])
    labels = np.concatenate([sample.outcome[None].astype(drawn.dtype), drawn])
    effect = np.maximum(rare.effect_around(labels), 1.0)
    found = []
    for question in questions:
        values = components(question.statistic, sample, labels)
        values = scale_components(question.statistic, values, np.sqrt(effect[0] / effect))
        found.append(rank_pvalues(sample, values[:, 0], values[:, 1:])[1][0])
    return found


def pvalues(design, rng):
    """Return the p-values ``(n_tests, n_statistics)`` of a data set; NaN of a statistic that a test does not take."""
    sample = design.sample(rng)
    asked = [Question(settle(statistic, sample), LensView(sample)) for statistic in ANY]
    few = asked[: len(OF_RESIDUALS)]
    today = run(few, sample, caltest.Consistency(), n_resamples=N_RESAMPLES, rng=rng)
    found = np.full((len(TESTS), len(ANY)), np.nan)
    found[0, : len(few)] = [answer.pvalue for answer in today.answers]
    icc, number = correlation(sample)
    found[1:] = studentised(asked, sample, icc, rng)
    if number < FEW and icc < LARGEST_ICC:
        found[2] = studentised(asked, sample, LARGEST_ICC, rng)
        found[3] = np.maximum(found[1], found[2])
    return found


def measure(design, number, n_data_sets):
    """Return the rejection rates of a design."""
    rng = np.random.default_rng([SEED, number])
    found = np.stack([pvalues(design, rng) for _ in range(n_data_sets)])
    rates = np.where(np.isnan(found), np.nan, found <= LEVEL).mean(axis=0).round(4)
    names = [f"{test}, {type(statistic).__name__}" for test in TESTS for statistic in ANY]
    rate = {name: value for name, value in zip(names, rates.ravel(), strict=True) if not np.isnan(value)}
    return {**asdict(design), "data sets": n_data_sets, **rate}


def names_of(test):
    """Return the columns of a test."""
    return [f"{test}, {type(statistic).__name__}" for statistic in (OF_RESIDUALS if test == "today" else ANY)]


def most(n_data_sets):
    """Return the largest rejection rate of a calibrated model that chance explains, by four standard errors."""
    return LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / n_data_sets)


def levels_table(frame):
    """Return the largest rates of calibrated models by number of groups."""
    some = frame[frame["truth"] == "calibrated"]
    rows = [
        [f"{n}, {len(part)} designs", *(_rates(part[names_of(test)].max()) for test in TESTS)]
        for n, part in some.groupby("n_groups")
    ]
    limit = most(some["data sets"])
    for name, bound in (("above 6.5 %", 0.065), ("above four standard errors", limit)):
        counts = [[int((some[column] > bound).sum()) for column in names_of(test)] for test in TESTS]
        rows.append([f"designs {name}", *(" / ".join(map(str, each)) for each in counts)])
    return _with_note(("groups", *TESTS), rows, some)


def power_table(frame):
    """Return the mean rates of wrong models by what is wrong and by the number of groups."""
    some = frame[frame["truth"] != "calibrated"]
    rows = [
        [f"{truth}, {n} groups", *(_rates(part[names_of(test)].mean()) for test in TESTS)]
        for (truth, n), part in some.groupby(["truth", "n_groups"])
    ]
    return _with_note(("log-odds", *TESTS), rows, some)


def _rates(rates):
    return " / ".join(f"{100 * rate:.1f}" for rate in rates)


def _with_note(columns, rows, some):
    sets = " or ".join(map(str, sorted(set(some["data sets"]))))
    return f"{table(columns, rows)}\n{sets} data sets in each of {len(some)} designs, {N_RESAMPLES} draws.\n"


def with_tables(text, frame):
    """Return the text of the page with its tables made from the data."""
    for name, make in (("levels", levels_table), ("power", power_table)):
        text = with_table(text, mark("groups_mechanism", name), make(frame))
    return text


def main():
    """Measure, and write data and tables."""
    parser = argparse.ArgumentParser(description="One mechanism for groups beside today's test.")
    parser.add_argument("--data-sets", type=int, default=200, help="data sets per design (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of data and page")
    options = parser.parse_args()
    data, page = options.docs / "data" / "groups-mechanism.csv", options.docs / "grouped-evidence.md"
    if not options.page:
        rows = []
        for number, design in enumerate(designs()):
            rows.append(measure(design, number, options.data_sets))
            print(*rows[-1].values(), flush=True)
            pd.DataFrame(rows).to_csv(data, index=False)
    page.write_text(with_tables(page.read_text(), pd.read_csv(data)))


if __name__ == "__main__":
    main()
