"""Labels that share shocks of time: their inflation, the moment equation, and how they are drawn and scaled."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from caltest._compiled._normals import FIRST
from caltest.predictions._sample import make_sample
from caltest.resampling import Consistency
from caltest.resampling.draws._group_shocks import correlation_of_terms
from caltest.resampling.draws._timed_draws import (
    SharedShockDraws,
    TimedDraws,
    TimedOutcome,
    inflation_of,
    quantile_table,
)
from tests.reference.cases import mostly_slow

CASES = [(2, False, 1), (2, True, 3), (4, False, 3), (4, True, 1)]
"""Numbers of classes, whether there are weights, and predictions of a time on average."""


def problem(seed, n_classes, weighted, each=1, n=40, lead=4):
    """A sample in no order of time, with gaps, and with batches if ``each`` is larger than 1."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    label = (rng.random(n)[:, None] > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
    weight = rng.uniform(0.2, 3, n) if weighted else None
    time = rng.permutation(n + 10)[:n] if each == 1 else rng.integers(n // each, size=n)
    return make_sample(label, prob, time=time, lead=lead, sample_weight=weight)


def pairs_of(sample):
    """The pairs of observations less than a lead apart, both ways, with the probability that they share a window."""
    step, lead = sample.timing.step, sample.timing.lead
    n = sample.n_samples
    distances = ((i, j, abs(int(step[i] - step[j]))) for i in range(n) for j in range(n))
    return [(i, j, 1 - k / lead) for i, j, k in distances if k < lead]


def residuals(sample, score, labels):
    """Weighted residuals of scores, and their variances times the weight once, by loops."""
    found = []
    for prob, label, weight in zip(sample.prob, labels, sample.weight_or_ones, strict=True):
        mean = sum(p * c for p, c in zip(prob, score, strict=True))
        variance = sum(p * (c - mean) ** 2 for p, c in zip(prob, score, strict=True))
        found.append((weight * (score[label] - mean), weight * variance, weight))
    return found


def scores_of(outcome, sample):
    """The scores that residuals were made of, up to a constant."""
    order = outcome.time.order
    return [one.residual[0] / sample.weight_or_ones[order[0]] for one in outcome.scored]


@pytest.mark.parametrize(("n_classes", "weighted", "each"), mostly_slow(CASES))
def test_the_inflation_is_that_of_loops(n_classes, weighted, each):
    for seed in range(3):
        sample = problem(seed, n_classes, weighted, each)
        outcome, pairs = sample.once(TimedOutcome.of), pairs_of(sample)
        labels = np.stack([sample.outcome, sample.outcome[::-1], np.zeros_like(sample.outcome)])
        for label, found in zip(labels, outcome.inflation(labels), strict=True):
            products = squares = largest = alone = 0.0
            for score in scores_of(outcome, sample):
                terms = residuals(sample, score, label)
                shift = sum(e for e, _, _ in terms) / sum(v for _, v, _ in terms)
                rest = [e - shift * v for e, v, _ in terms]
                products += sum(rest[i] * rest[j] for i, j, _ in pairs)
                squares += sum(e * e for e in rest)
                spread = [math.sqrt(v * w) for _, v, w in terms]
                largest += sum(spread[i] * spread[j] * share for i, j, share in pairs)
                alone += sum(s * s for s in spread)
            assert outcome.largest == pytest.approx(largest / alone)
            ratio = min(max(products / squares, 1), largest / alone)
            assert found == pytest.approx(ratio, rel=1e-7)  # residuals are rounded to whole numbers


def test_scores_have_the_largest_sum_of_products():
    sample = problem(1, 4, weighted=False, n=60)
    outcome, pairs = sample.once(TimedOutcome.of), pairs_of(sample)
    rest = np.zeros((60, 4))
    for k in range(4):
        e = sample.residual(k)
        v = sample.prob[:, k] * (1 - sample.prob[:, k])
        rest[:, k] = e - v * e.sum() / v.sum()
    form = sum(np.outer(rest[i], rest[j]) for i, j, _ in pairs)
    values, vectors = np.linalg.eigh(form)
    for found, score in zip(scores_of(outcome, sample), vectors.T[::-1], strict=False):
        moved = found - found.mean() - (score - score.mean())
        other = found - found.mean() + (score - score.mean())
        assert min(np.abs(moved).max(), np.abs(other).max()) < 1e-9
    assert values[-1] > 0
    assert len(outcome.scored) == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_moment_equation_is_that_of_the_normal_distribution(n_classes):
    """Sums over pairs of exact bivariate normal probabilities; the series ends after 16 terms."""
    sample = problem(5, n_classes, weighted=True, each=2, n=8, lead=3)
    outcome = sample.once(TimedOutcome.of)
    bound = outcome.bound.astype(float)
    terms = outcome.terms
    rho, expected, edge = 0.6, 0.0, 40.0
    edges = np.column_stack([np.full(8, -edge), bound, np.full(8, edge)])
    joint = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    place = np.argsort(outcome.time.order)
    for i, j, share in pairs_of(sample):
        if i == j:
            continue
        a, b = edges[place[i]], edges[place[j]]
        table = np.array([[joint.cdf([x, y]) for y in b] for x in a])
        cells = np.diff(np.diff(table, axis=0), axis=1)
        for one in outcome.scored:
            first, second = one.residual[place[i]][outcome.classes], one.residual[place[j]][outcome.classes]
            expected += share * float(first @ cells @ second)
    reached = float(np.polynomial.polynomial.polyval(rho, np.append(0.0, terms)))
    assert reached == pytest.approx(expected, abs=1e-3 * np.abs(terms).sum())
    assert correlation_of_terms(terms, reached, 1.0) == pytest.approx(rho, abs=1e-3)


@pytest.mark.parametrize(("n_classes", "weighted", "each"), CASES)
def test_the_correlation_solves_the_equation_for_the_inflation(n_classes, weighted, each):
    sample = problem(7, n_classes, weighted, each)
    sample = sample.relabelled(np.zeros_like(sample.outcome))  # nothing varies more
    outcome, pairs = sample.once(TimedOutcome.of), pairs_of(sample)
    lost = noise = total = squares = 0.0
    for score in scores_of(outcome, sample):
        terms = residuals(sample, score, sample.outcome)
        variance = [v for _, v, _ in terms]
        close = sum(variance[i] * variance[j] for i, j, _ in pairs)
        lost += close / sum(variance)
        noise += 2 * (close - sum(v * v for v in variance))
        total += sum(variance)
        shift = sum(e for e, _, _ in terms) / total if n_classes == 2 else sum(e for e, _, _ in terms) / sum(variance)
        squares += sum((e - shift * v) ** 2 for e, v, _ in terms)
    (ratio,) = outcome.inflation(sample.outcome[None])
    raised = ratio / (1 - lost / total) * (1 + math.sqrt(noise) / total)
    assert outcome.raised_inflation(sample.outcome) == pytest.approx(raised)
    assert outcome.in_batches == (each > 1)
    further = SharedShockDraws.with_shares((None, 0.0), sample, 9, 0).correlation
    assert further == outcome.correlations(sample.outcome, 1.0)[0] >= outcome.correlations(sample.outcome)[0]
    if each == 1:  # only that of batches is raised
        raised = ratio / (1 - lost / total)
    terms = outcome.terms
    correlation = outcome.correlations(sample.outcome)[0]
    reached = float(np.polynomial.polynomial.polyval(correlation, np.append(0.0, terms)))
    if correlation < 1:
        assert reached == pytest.approx((raised - 1) * squares, rel=0.01, abs=0.01)
    else:
        assert reached < (raised - 1) * squares


def test_the_corrections_of_one_prediction_a_time_are_those_of_their_formulas():
    n, lead = 400, 7
    sample = make_sample(np.arange(n) % 2, np.full(n, 0.5), time=np.arange(n), lead=lead)
    outcome = sample.once(TimedOutcome.of)
    (ratio,) = outcome.inflation(sample.outcome[None])
    lost, error = (2 * lead - 1) / n, math.sqrt(4 * (lead - 1) / n)
    assert outcome.raised_inflation(sample.outcome) == pytest.approx(ratio / (1 - lost) * (1 + error), rel=lead / n)
    assert outcome.largest == pytest.approx(lead, rel=lead / n)


N_DRAWS = 4000


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_margins_are_exact_and_shocks_are_shared_within_windows(correlation):
    """Moments of 4,000 draws within four standard errors."""
    prob = np.random.default_rng(0).dirichlet([2.0, 1.0, 1.0], 12)
    time, lead = [0, 0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 30], 4
    sample = make_sample(np.arange(12) % 3, prob, time=time, lead=lead)
    draws = TimedDraws(np.uint64(3), 0, N_DRAWS, correlation)
    drawn = np.concatenate([outcomes for _, outcomes in draws.blocks(sample)])
    for k in range(3):
        share, p = (drawn == k).mean(axis=0), sample.prob[:, k]
        assert (np.abs(share - p) <= 4 * np.sqrt(p * (1 - p) / N_DRAWS)).all()
    outcome = sample.once(TimedOutcome.of)
    place = np.argsort(outcome.time.order)
    rank = np.argsort(outcome.classes)[drawn]
    joint = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], allow_singular=True)
    for i, j in [(0, 1), (2, 3), (2, 4), (2, 5), (2, 6), (0, 9), (9, 10), (10, 11)]:
        a, b = (float(outcome.bound[place[k], 0]) for k in (i, j))
        both, alone = joint.cdf([a, b]), outcome.prob[place[i], 0] * outcome.prob[place[j], 0]
        shared = max(0.0, 1 - abs(int(sample.timing.step[i] - sample.timing.step[j])) / lead)
        expected = shared * both + (1 - shared) * alone
        found = ((rank[:, i] == 0) & (rank[:, j] == 0)).mean()
        assert abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / N_DRAWS), (i, j)


def test_a_draw_does_not_depend_on_how_many_there_are():
    sample = problem(2, 3, weighted=False, each=3)
    whole = TimedDraws(np.uint64(9), 0, 100, 0.4)
    drawn = np.concatenate([outcomes for _, outcomes in whole.blocks(sample)])
    for size in (1, 32, 37):
        parts = [outcomes for part in whole.slices(size) for _, outcomes in part.blocks(sample)]
        np.testing.assert_array_equal(np.concatenate(parts), drawn)


def test_normal_numbers_are_looked_up_to_within_a_hundred_thousandth():
    quantile, slope = quantile_table()
    bits = np.random.default_rng(0).integers((126 << 23), (157 << 23), 10_000).astype(np.int32)
    place = (bits >> 16) - FIRST
    found = quantile[place] + (bits & 0xFFFF) * slope[place]
    assert np.abs(found - ndtri(bits.view(np.float32).astype(float) / 2.0**32)).max() < 1e-5


def test_residuals_are_scaled_to_the_observed_inflation():
    sample = problem(4, 2, weighted=False, each=3)
    outcomes = np.concatenate([some for _, some in TimedDraws(np.uint64(1), 0, 50, 0.5).blocks(sample)])
    scale = TimedDraws(np.uint64(1), 0, 50, 0.5).scale(sample, outcomes)
    inflation = sample.once(TimedOutcome.of).inflation(outcomes)
    np.testing.assert_allclose(scale**2 * inflation, inflation_of(sample))
    assert SharedShockDraws.with_shares((1.0, 0.0), sample, 5, 0).scale(sample, outcomes) is None
    alone = make_sample([0, 1], [0.4, 0.6], time=[0, 9], lead=9)
    assert TimedDraws(np.uint64(1), 0, 2).scale(alone, np.zeros((2, 2), np.uint8)) is None


def test_the_complement_has_the_same_inflation_and_correlation():
    sample = problem(6, 2, weighted=True, each=3)
    other = make_sample(
        1 - sample.outcome.astype(int),
        sample.prob[:, ::-1],
        time=sample.timing.step,
        lead=sample.timing.lead,
        sample_weight=sample.weight,
    )
    assert inflation_of(other) == pytest.approx(inflation_of(sample))
    assert other.once(TimedOutcome.of).correlations(other.outcome) == pytest.approx(
        sample.once(TimedOutcome.of).correlations(sample.outcome), abs=1e-6
    )


@pytest.mark.parametrize(
    ("n", "prob", "each", "shared"),
    [
        (160, 0.5, 1, ()),
        (120, 0.5, 1, (None,)),
        (60, 0.5, 1, (1.0,)),
        (120, 0.01, 1, (1.0, 0.8)),
        (400, 0.01, 5, (1.0, 0.8)),
        (400, 0.3, 5, ()),
    ],
)
def test_labels_that_share_more_are_needed_with_little_time_or_rare_labels(n, prob, each, shared):
    """Of 33 windows 11 % of calibrated forecasts of a persistent state were rejected, and 8 % of an event of 1 %."""
    prob = prob * np.where(np.arange(n) % each == 0, 1.0, 1.5)  # batches differ within times
    sample = make_sample(np.arange(n) % 2, prob, time=np.arange(n) // each, lead=4)
    outcome = sample.once(TimedOutcome.of)
    assert outcome.shared == shared
    assert outcome.in_batches == (each > 1)
    scheme = Consistency().for_sample(sample)
    assert scheme.shared == shared
    texts = [scheme.origin_of_timed(99, 1.5, shared=one) for one in (0.0, 0.8)]
    assert ["studentised" in text for text in texts] == [True, False]
    assert "with a correlation of 0.8" in texts[1]
