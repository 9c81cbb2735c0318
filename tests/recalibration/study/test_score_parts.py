"""Cross-fitted decompositions of scores: by hand, identities, targets, coverage and refusals."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest.estimation import brier_score, log_score
from caltest.recalibration import (
    IsotonicCalibration,
    TemperatureScaling,
    VectorScaling,
    cross_fitted_decomposition,
)
from tests.reference.cases import mostly_nightly
from tests.reference.examples import draw_labels

SCORES = {"brier": brier_score, "log": log_score}


def bent(prob, power):
    """The true probabilities of predictions that are too vague (power above 1) or too sharp."""
    odds = prob**power
    return odds / odds.sum(axis=1, keepdims=True)


def data(n, power, seed, n_classes=3):
    """Labels and predictions."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    return draw_labels(bent(prob, power), rng), prob


@pytest.mark.parametrize("score", SCORES)
def test_terms_are_scores_of_maps_fitted_to_the_other_folds(score):
    y, p = data(120, 2.0, 0)
    fold = np.arange(120) % 3
    found = cross_fitted_decomposition(y, p, VectorScaling(), score=score, folds=fold)
    after = np.empty_like(p)
    for k in range(3):
        after[fold == k] = VectorScaling().fit(p[fold != k], y[fold != k]).predict_proba(p[fold == k])
    rates = np.bincount(y) / 120
    of = SCORES[score]
    assert found.mean_score == pytest.approx(of(y, p), rel=1e-12)
    assert found.refinement == pytest.approx(of(y, after), rel=1e-12)
    assert found.uncertainty == pytest.approx(of(y, np.tile(rates, (120, 1))), rel=1e-12)
    assert found.miscalibration == pytest.approx(of(y, p) - of(y, after), rel=1e-9)
    assert found.discrimination == pytest.approx(found.uncertainty - found.refinement, rel=1e-9)
    assert found.n_folds == 3
    deviation = p[np.arange(120), y]
    values = -np.log(deviation) if score == "log" else np.square(np.eye(3)[y] - p).sum(axis=1)
    low, high = found.intervals["mean_score"]
    reach = 1.96 * values.std(ddof=1) / np.sqrt(120)
    assert high - low == pytest.approx(2 * reach, rel=0.1)


def test_two_classes_and_one_column_are_the_same():
    y, p = data(200, 2.0, 1, n_classes=2)
    one, two = (cross_fitted_decomposition(y, prob, rng=0) for prob in (p[:, 1], p))
    for name, interval in one.intervals.items():
        assert interval == pytest.approx(two.intervals[name], rel=1e-12)
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-12)
    assert one.mean_score == pytest.approx(np.square(y - p[:, 1]).mean())


def test_weights_count_and_groups_stay_together():
    y, p = data(90, 2.0, 2)
    weight, fold = np.arange(90) % 4, np.arange(90) // 3 % 3
    weighted = cross_fitted_decomposition(y, p, sample_weight=weight, folds=fold)
    repeated = cross_fitted_decomposition(
        np.repeat(y, weight), np.repeat(p, weight, axis=0), folds=np.repeat(fold, weight)
    )
    assert weighted.miscalibration == pytest.approx(repeated.miscalibration, abs=1e-6)
    assert weighted.refinement == pytest.approx(repeated.refinement, abs=1e-6)
    thrice = [np.repeat(each, 3, axis=0) for each in (y, p)]
    grouped = cross_fitted_decomposition(*thrice, groups=np.arange(270) // 3, folds=np.repeat(fold, 3))
    single = cross_fitted_decomposition(y, p, folds=fold)
    for name, (low, high) in single.intervals.items():
        wide = grouped.intervals[name]
        assert wide.high - wide.low == pytest.approx(high - low, rel=0.05), name  # t with 89 degrees of freedom
    with pytest.raises(ValueError, match="group"):
        cross_fitted_decomposition(*thrice, groups=np.arange(270) // 3, folds=np.arange(270) % 3)


def test_a_calibrated_model_has_no_miscalibration_and_a_sharp_one_has():
    y, p = data(2000, 1.0, 3)
    calibrated = cross_fitted_decomposition(y, p, score="log", rng=0)
    assert calibrated.intervals["miscalibration"].low < 0 < calibrated.intervals["miscalibration"].high
    assert "not shown" in calibrated.conclusion
    sharp = cross_fitted_decomposition(y, bent(p, 2.0), score="log", rng=0)
    assert "recalibration removes" in sharp.conclusion
    assert sharp.refinement == pytest.approx(calibrated.refinement, abs=1e-2)  # a power can be taken back
    assert caltest.recalibration.CrossFittedDecomposition is type(sharp)


def test_labels_of_probability_0():
    y, p = data(60, 1.0, 4, n_classes=2)
    p[0] = np.eye(2)[1 - y[0]]
    before = cross_fitted_decomposition(y, p, score="log", rng=0)
    assert math.isinf(before.mean_score)
    assert "infinite" in before.conclusion
    assert all(math.isnan(before.intervals[name].low) for name in ("mean_score", "miscalibration"))
    y, p = data(60, 1.0, 5, n_classes=2)
    after = cross_fitted_decomposition(y, p, IsotonicCalibration(), score="log", rng=0)
    assert after.conclusion.endswith("infinite after recalibration.")
    assert [note.code for note in after.notes] == ["C705"]
    assert math.isnan(after.intervals["refinement"].low)


def test_refusals():
    y, p = data(30, 1.0, 6)
    with pytest.raises(TypeError, match=r"`recalibrator` must be a method such as .*, got 'temperature'"):
        cross_fitted_decomposition(y, p, "temperature")
    with pytest.raises(ValueError, match="`recalibrator` must have `input='probabilities'`, got 'logits'"):
        cross_fitted_decomposition(y, p, TemperatureScaling(input="logits"))
    with pytest.raises(ValueError, match="score"):
        cross_fitted_decomposition(y, p, score="spherical")
    with pytest.raises(ValueError, match="folds"):
        cross_fitted_decomposition(y, p, folds=1)
    with pytest.raises(ValueError, match="confidence_level"):
        cross_fitted_decomposition(y, p, confidence_level=95)
    alone = np.where(y == 2, 1, y)
    alone[0] = 2
    with pytest.raises(ValueError, match="refuses the observations of the other folds"):
        cross_fitted_decomposition(alone, p, VectorScaling(), rng=0)


POPULATION = np.random.default_rng(7).dirichlet(np.ones(3), 20_000)


def expected_score(prob, truth, score):
    """The expected score of predictions in the population."""
    terms = -np.log(prob) if score == "log" else 1 - 2 * prob + np.square(prob).sum(axis=1, keepdims=True)
    return float((truth * terms).sum(axis=1).mean())


def share_covered(method, score, power, n, n_data_sets, grouped=False):
    """How often the intervals of miscalibration and of refinement hold their targets."""
    rng, truth, covered = np.random.default_rng(8), bent(POPULATION, power), np.zeros(2)
    before = expected_score(POPULATION, truth, score)
    for _ in range(n_data_sets):
        prob = rng.dirichlet(np.ones(3), n)
        y, fold, group = draw_labels(bent(prob, power), rng), rng.permutation(n) % 5, np.arange(n)
        if grouped:
            y, prob, fold, group = (np.repeat(each, 3, axis=0) for each in (y, prob, fold, group))
        found = cross_fitted_decomposition(y, prob, method, score=score, folds=fold, groups=group)
        maps = [type(method)().fit(prob[fold != k], y[fold != k]) for k in range(5)]
        after = [expected_score(one.predict_proba(POPULATION), truth, score) for one in maps]
        refinement = np.average(after, weights=np.bincount(fold))
        for place, (name, target) in enumerate(
            {"miscalibration": before - refinement, "refinement": refinement}.items()
        ):
            covered[place] += found.intervals[name].low <= target <= found.intervals[name].high
    return covered / n_data_sets


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([40, 100]))
@pytest.mark.parametrize(
    ("method", "power", "grouped"),
    mostly_nightly(
        [(TemperatureScaling(), 2.0, True), (TemperatureScaling(), 1.0, False), (VectorScaling(), 1.0, False)]
    ),
)
def test_intervals_cover_their_targets(method, power, grouped, n_sets):
    """At least 92 % where 95 % are meant: where one parameter or six gain nothing, and where one gains much."""
    covered = share_covered(method, "log", power, 200, n_sets, grouped)
    assert (covered >= binom.ppf(1e-3, n_sets, 0.92) / n_sets).all(), covered
