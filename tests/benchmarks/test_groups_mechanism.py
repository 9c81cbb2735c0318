"""One mechanism for groups: the rates of the page are those of the data, and the p-value is that of loops."""

import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from benchmarks import groups_mechanism as mechanism
from benchmarks.machine import ROOT
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.resampling.draws._alike_draws import AlikeDraws
from caltest.resampling.engine._evaluation import Question
from caltest.statistics import ECE, HosmerLemeshow

PAGE = (ROOT / "docs" / "grouped-evidence.md").read_text()
TESTED = [type(statistic).__name__ for statistic in mechanism.ANY]
FRAME = pd.read_csv(ROOT / "docs" / "data" / "groups-mechanism.csv")


def effect_of(sample, labels):
    """Return the design effect around the observed frequency, at least 1, by loops."""
    prob = sample.expected[:, 1]
    groups = [[i for i in range(sample.n_samples) if sample.group[i] == one] for one in sorted(set(sample.group))]
    variance = [sum(prob[i] * (1 - prob[i]) for i in group) for group in groups]
    sums = [sum(labels[i] - prob[i] for i in group) for group in groups]
    change = sum(sums) / sum(variance)
    shown = sum(p * (1 - p) * (1 + change * (1 - 2 * p)) for p in prob)
    squares = sum((u - change * v) ** 2 / (1 - v / sum(variance)) for u, v in zip(sums, variance, strict=True))
    return max(squares / shown, 1.0) if shown > 0 else 1.0


@pytest.mark.slow
def test_the_pvalue_is_that_of_loops(monkeypatch):
    monkeypatch.setattr(mechanism, "N_RESAMPLES", 39)
    rng = np.random.default_rng(3)
    prob, groups = rng.uniform(0.05, 0.6, 60), np.arange(60) // 10
    sample = make_sample((rng.random(60) < prob).astype(int), prob, groups=groups)
    statistics = (ECE(), HosmerLemeshow())
    found = mechanism.studentised([Question(one, LensView(sample)) for one in statistics], sample, 0.2, 5)
    drawn = [row for _, labels in AlikeDraws.as_alike(sample, 0.2, 39, 5).blocks(sample) for row in labels]
    for statistic, power, pvalue in zip(statistics, (1, 2), found, strict=True):
        values = [
            float(statistic.evaluate(sample, labels)) / math.sqrt(effect_of(sample, labels)) ** power
            for labels in (sample.outcome, *drawn)
        ]
        assert pvalue == pytest.approx(sum(value >= values[0] * (1 - 1e-9) for value in values) / 40)


@pytest.mark.slow(few_draws=True)
def test_the_data_are_those_of_the_designs():
    known = [asdict(design) for design in mechanism.designs()]
    assert FRAME[list(known[0])].to_dict("records") == known
    found = mechanism.measure(mechanism.Design(4, 0.1, 0.3, n_samples=40), 0, 2)
    assert list(found) == list(FRAME.columns)


@pytest.mark.parametrize("truth", ["up", "down", "slope"])
@pytest.mark.parametrize("icc", [0.0, 0.3])
def test_a_wrong_model_is_as_far_away_as_it_is_said_to_be(truth, icc):
    """In the first order: the mean score is so many standard deviations of labels with this correlation."""
    rng = np.random.default_rng(1)
    prob, group = rng.uniform(0.2, 0.8, 40_000), np.arange(40_000) // 4
    design = mechanism.Design(10_000, 0.5, icc, truth=truth)
    logit, variance = np.log(prob / (1 - prob)), prob * (1 - prob)
    score = logit - np.average(logit, weights=variance) if truth == "slope" else np.ones(len(prob))
    deviation = np.sqrt(variance) * score
    pairs = np.square(np.bincount(group, deviation)).sum() - np.square(deviation).sum()
    spread = math.sqrt(np.square(deviation).sum() + icc * pairs)
    mean = ((design.true(prob, group) - prob) * score).sum()
    assert mean / spread == pytest.approx({"down": -1}.get(truth, 1) * mechanism.DISTANCE, rel=0.05)


def test_the_page_has_the_tables_of_the_data():
    assert mechanism.with_tables(PAGE, FRAME) == PAGE, "python -m benchmarks.groups_mechanism --page"


def test_the_sentences_of_the_page():
    right, wrong = FRAME[FRAME["truth"] == "calibrated"], FRAME[FRAME["truth"] != "calibrated"]
    bound, (some, all_three) = mechanism.most(right["data sets"]), (("Omnibus", "ECE"), TESTED)

    def largest(part, test, names):
        return " / ".join(f"{100 * part[f'{test}, {name}'].max():.1f}" for name in names) + " %"

    copies, others, five = right[right["icc"] == 1], right[right["icc"] < 1], right[right["n_groups"] == 5]
    too_often = others[[f"today, {name}" for name in some]].gt(bound[others.index], axis=0)
    assert too_often.sum().tolist() == [1, 0]
    failed = right[right[[f"limit, {name}" for name in all_three]].gt(bound, axis=0).any(axis=1)]
    same, other = ["n_groups", "sizes", "icc", "events"], ["n_groups", "dependence", "events", "today, Omnibus"]
    assert failed[same].to_numpy().tolist() == [[20, "unequal", 1.0, 0.1]]
    assert others.loc[too_often.any(axis=1), other].to_numpy().tolist() == [[50, "beta", 0.5, 0.12]]
    assert five[[f"today, {name}" for name in some]].to_numpy().max() == 0
    independent = five[five["icc"] == 0]
    slope = wrong[(wrong["truth"] == "slope") & (wrong["n_groups"] == 10) & (wrong["events"] == 0.5)]
    more = {
        test: [100 * (wrong[f"{test}, {name}"] - wrong[f"today, {name}"]).mean() for name in some]
        for test in ("limit", "larger")
    }
    sentences = (
        f"in {len(copies)} designs with copies up to {largest(copies, 'today', some)}",
        f'and "limit" up to {largest(copies, "limit", some)}',
        f"in one of {len(right)} calibrated designs",
        f"have {largest(failed, 'limit', all_three)}, and `groups` has {largest(failed, 'today', some)} there",
        f"up to {largest(five, 'limit', all_three)}",
        f'"larger" has at most {largest(five, "larger", all_three)}',
        f"{largest(independent, 'cautious', some[:1])} with five groups of independent labels",
        f'in {len(wrong)} wrong models "limit" rejects {more["limit"][0]:.1f} points more',
        f"and {more['limit'][1]:.1f} with ECE",
        f'"larger" {more["larger"][0]:.1f} and {more["larger"][1]:.1f}',
        f"ECE has {largest(slope, 'limit', some[1:])} instead of {largest(slope, 'today', some[1:])}",
        f"four standard errors are {100 * (mechanism.most(200) - mechanism.LEVEL):.1f} points with 200",
    )
    text = " ".join(PAGE.split())
    for sentence in sentences:
        assert sentence in text, sentence
