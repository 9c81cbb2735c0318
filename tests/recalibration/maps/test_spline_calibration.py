"""Spline calibration: the paper by loops, the authors' program, targets, ties and refusals."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import caltest
from caltest import ClassGroups, ClassWise, Confidence, TopK, TopRank, WithinTop
from caltest.recalibration import SplineCalibration
from caltest.recalibration.maps._spline_calibration import _thinned
from tests.recalibration.maps.test_one_vs_rest import over_confident
from tests.recalibration.maps.test_spline_calibration_cumulative import published

TARGETS = [Confidence(), TopRank(2), WithinTop(2), ClassWise(1), ClassGroups([[0, 3], [1, 2]])]


def by_loops(score, label, n_knots, residuals):
    """Equation 11 and section 4.2, one observation after the other; scores differ."""
    order = sorted(range(len(score)), key=score.__getitem__)
    n, total, height = len(score), 0.0, []
    for i in order:
        total += (label[i] - (score[i] if residuals else 0)) / n
        height.append(total)
    slope = published(np.arange(1, n + 1) / n, np.array(height), n_knots)[1]
    ordered = score[order]
    return ordered, slope + (ordered if residuals else 0)


def cut(value, score, n):
    """The value, but no nearer to 0 or 1 than 1 / (n + 2) or the score itself."""
    return np.clip(value, np.minimum(score, 1 / (n + 2)), np.maximum(score, (n + 1) / (n + 2)))


@pytest.fixture(scope="module")
def vgg():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    prob = y_prob.astype(float)
    return y_true, prob / prob.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("curve", ["residuals", "labels"])
def test_it_is_the_construction_of_the_paper(curve):
    prob, y_true = over_confident(900, 3)
    new, _ = over_confident(300, 3, seed=1)
    found = SplineCalibration(6, curve=curve).fit(prob, y_true).predict_proba(new)
    wanted = np.empty(new.shape)
    for k in range(3):
        score, value = by_loops(prob[:, k], (y_true == k).astype(float), 6, curve == "residuals")
        wanted[:, k] = cut(np.interp(new[:, k], score, value), new[:, k], 900)
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-9)


def test_the_confidence_is_recalibrated_as_in_the_program_of_the_authors_up_to_what_is_documented(vgg):
    """Their fractiles are (i - 1) / (n - 1): the values differ by less than the curvature over n."""
    y_true, prob = vgg
    confidence, right = prob.max(axis=1), prob.argmax(axis=1) == y_true
    order = np.argsort(confidence[:5000])
    score, label = confidence[:5000][order], right[:5000][order]
    for n_knots in (6, 13, 14):
        _, slope, knots = published(np.linspace(0, 1, 5000), np.cumsum(label - score) / 5000, n_knots)
        wanted = cut(np.interp(confidence[5000:], score, score + slope), confidence[5000:], 5000)
        found = SplineCalibration(n_knots, Confidence()).fit(prob[:5000], y_true[:5000]).predict_event(prob[5000:])
        bend = np.abs(CubicSpline(np.linspace(0, 1, n_knots), knots, bc_type="natural")(np.linspace(0, 1, 99), 2)).max()
        assert np.abs(found - wanted).max() < 3 * bend / 5000


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_target_has_the_probability_of_its_spline(target):
    prob, y_true = over_confident(800, 4)
    fitted = SplineCalibration(6, target).fit(prob, y_true)
    event, found = fitted.predict_event(prob), fitted.predict_proba(prob)
    induced, label = target(prob, y_true)
    score, value = by_loops(induced[:, 1], label, 6, residuals=True)
    wanted = cut(np.interp(induced[:, 1], score, value), induced[:, 1], 800)
    np.testing.assert_allclose(event, wanted, atol=1e-9)
    inside = np.broadcast_to(target.outcomes(prob) == 1, prob.shape)
    np.testing.assert_allclose(np.where(inside, found, 0).sum(axis=1), event, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    for side in (inside, ~inside):  # the old proportions
        part, old = np.where(side, found, 0), np.where(side, prob, 0)
        np.testing.assert_allclose(
            part * old.sum(axis=1, keepdims=True), old * part.sum(axis=1, keepdims=True), atol=1e-12
        )


def test_a_side_without_probability_gets_equal_parts():
    prob = np.repeat(np.eye(4), 5, axis=0)
    y_true = np.repeat(np.arange(4), 5)
    y_true[::5] = 0  # one in five wrong, but for class 0
    fitted = SplineCalibration(target=Confidence()).fit(prob, y_true)
    assert fitted.predict_event(prob[:1]) == pytest.approx(17 / 20)
    assert fitted.predict_proba(prob[:1])[0] == pytest.approx([0.85, 0.05, 0.05, 0.05])


def test_ties_do_not_depend_on_the_order():
    prob, y_true = over_confident(1000, 3)
    coarse = np.round(prob, 1)
    coarse /= coarse.sum(axis=1, keepdims=True)
    order = np.random.default_rng(0).permutation(1000)
    for options in ({}, {"curve": "labels"}, {"constrained": True}):
        first = SplineCalibration(6, **options).fit(coarse, y_true)
        again = SplineCalibration(6, **options).fit(coarse[order], y_true[order])
        np.testing.assert_allclose(first.predict_proba(coarse), again.predict_proba(coarse), atol=1e-10)
        assert len(first.maps_[0][0]) == len(np.unique(coarse[:, 0]))
    weight = np.random.default_rng(1).random(1000)
    first = SplineCalibration().fit(coarse, y_true, weight).predict_proba(coarse)
    again = SplineCalibration().fit(coarse[order], y_true[order], weight[order]).predict_proba(coarse)
    np.testing.assert_allclose(first, again, atol=1e-10)
    equal = SplineCalibration().fit(coarse, y_true, np.full(1000, 3.0)).predict_proba(coarse)
    np.testing.assert_allclose(equal, SplineCalibration().fit(coarse, y_true).predict_proba(coarse), atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"constrained": True}, {"curve": "labels"}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_few_distinct_scores_get_their_frequencies(options, weighted):
    """Scores .2 and .4 with frequencies .5 and .1 became .199 and .399: one slope served both."""
    rng = np.random.default_rng(0)
    for scores, frequencies in (
        (np.array([0.2, 0.4]), np.array([0.5, 0.1])),
        (np.arange(1, 11) / 11, rng.random(10)),  # more scores than knots
    ):
        place = rng.integers(len(scores), size=10_000)
        label = (rng.random(10_000) < frequencies[place]).astype(int)
        weight = rng.uniform(0.5, 1.5, 10_000) if weighted else None
        found = SplineCalibration(**options).fit(scores[place], label, weight).predict_proba(scores)[:, 1]
        observed = [
            np.average(label[place == k], weights=None if weight is None else weight[place == k])
            for k in range(len(scores))
        ]
        np.testing.assert_allclose(found, observed, atol=1e-12)


def test_scores_with_few_observations_keep_the_spline():
    """Of 101 scores with 20 observations each a smooth curve says more than 101 frequencies."""
    rng = np.random.default_rng(0)
    score = np.repeat(np.arange(101) / 100, 20)
    label = (rng.random(len(score)) < score**2).astype(int)
    fitted = SplineCalibration(target=ClassWise(1)).fit(score, label)
    assert np.abs(np.diff(fitted.maps_[0][1], 2)).max() < 0.01, "no frequency of 20 observations jumps so little"


def test_few_scores_have_few_values():
    event = np.array([0.2, 0.2, 0.2, 0.6])
    fitted = SplineCalibration(14, ClassWise(1)).fit(event, np.array([0, 1, 0, 1]))
    assert [len(part) for part in fitted.maps_[0]] == [2, 2]
    constant = SplineCalibration(target=ClassWise(1)).fit(np.full(8, 0.5), np.arange(8) < 2)
    assert constant.predict_event([0.0, 0.7]).tolist() == [0.25, 0.25]


def test_constraints_and_cutting_off(vgg):
    y_true, prob = vgg
    free = SplineCalibration().fit(prob[:2000], y_true[:2000])
    bound = SplineCalibration(constrained=True).fit(prob[:2000], y_true[:2000])
    assert min(value.min() for _, value in free.maps_) < -1e-4
    assert min(value.min() for _, value in bound.maps_) > -1e-9
    assert max(value.max() for _, value in bound.maps_) < 1 + 1e-9


def test_no_probability_becomes_0_or_1(vgg):
    """n observations cannot show that an event is impossible: a single one against it would refute calibration."""
    y_true, prob = vgg
    for target in (None, Confidence(), WithinTop(2)):
        fitted = SplineCalibration(6, target).fit(prob[:5000], y_true[:5000])
        assert fitted.least_ == 1 / 5002
        found = fitted.predict_proba(prob[5000:])
        assert ((found > 0) | (prob[5000:] == 0)).all()
        assert ((found < 1) | (prob[5000:] == 1)).all()
    never = SplineCalibration(target=ClassWise(1)).fit(np.full(8, 0.3), np.zeros(8, int))
    np.testing.assert_allclose(never.predict_event([0.0, 0.01, 0.3]), [0.0, 0.01, 0.1])
    certain = SplineCalibration(target=ClassWise(1)).fit(np.full(8, 0.3), np.ones(8, int))
    np.testing.assert_allclose(certain.predict_event([0.3, 0.95, 1.0]), [0.9, 0.95, 1.0])


def test_in_single_precision_points_on_a_line_are_left_out():
    fractile = np.linspace(0, 1, 20_001)
    score, value = fractile**3, 0.5 * fractile**3 + 0.1 * np.sin(4 * fractile) + 0.2
    short, kept = _thinned(score, value)
    assert len(short) < 0.51 * len(score)
    assert (short.dtype, kept.dtype, short[0], short[-1]) == (np.float32, np.float32, score[0], score[-1])
    np.testing.assert_allclose(np.interp(score, short, kept), value, rtol=2e-4)


@pytest.mark.slow
def test_large_predictions_in_single_precision_keep_their_values():
    prob, y_true = over_confident(16400, 257)
    small = prob.astype(np.float32)
    fitted = SplineCalibration().fit(small, y_true)
    assert sum(len(score) for score, _ in fitted.maps_) < 0.75 * prob.size
    wanted = SplineCalibration().fit(prob, y_true)
    for k in (0, 128, 256):
        found = fitted._evaluate(fitted.maps_[k], small[:, k])
        np.testing.assert_allclose(found, wanted._evaluate(wanted.maps_[k], prob[:, k]), rtol=1e-3, atol=1e-6)


# Every rank (table 5) and other ends of the spline (appendix C).


@pytest.mark.parametrize("curve", ["residuals", "labels"])
def test_every_rank_has_the_map_of_its_target(curve):
    prob, y_true = over_confident(900, 4)
    new, _ = over_confident(300, 4, seed=1)
    found = SplineCalibration(6, "ranks", curve=curve).fit(prob, y_true).predict_proba(new)
    wanted = np.empty(new.shape)
    for i, order in enumerate(np.argsort(-new, axis=1, kind="stable")):
        wanted[i, order] = np.arange(4)
    for r in range(4):
        of_rank = SplineCalibration(6, TopRank(r + 1), curve=curve).fit(prob, y_true).predict_event(new)
        rows, columns = np.nonzero(wanted == r)
        wanted[rows, columns] = -of_rank  # negative: no rank
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-12)


def test_ranks_of_a_network(vgg):
    """Nearly all miscalibration of the first three ranks goes; labels keep the predicted classes, as in table 5."""
    y_true, prob = vgg
    half, rest = slice(0, 5000), slice(5000, None)
    lenses = (Confidence(), TopRank(2), TopRank(3), WithinTop(2))
    for curve, accuracy, errors in (
        ("residuals", 0.9348, (0.00983, 0.00674, 0.00328, 0.00344)),
        ("labels", 0.9404, (0.01227, 0.01231, 0.00332, 0.00569)),
    ):
        found = SplineCalibration(6, "ranks", curve=curve).fit(prob[half], y_true[half]).predict_proba(prob[rest])
        assert np.mean(found.argmax(axis=1) == y_true[rest]) == pytest.approx(accuracy, abs=1e-9), curve
        for lens, expected in zip(lenses, errors, strict=True):
            value = caltest.calibration_error(y_true[rest], found, lens=lens, statistic=caltest.KS())
            assert value == pytest.approx(expected, abs=6e-6), (curve, lens)


def test_ranks_of_ties_and_permuted_classes(vgg):
    """Distinct probabilities: permuted classes give permuted results. Of equal ones the smaller class is first."""
    prob, y_true = over_confident(400, 3)
    order = np.array([2, 0, 1])
    plain = SplineCalibration(target="ranks").fit(prob, y_true).predict_proba(prob)
    place = np.argsort(order)
    permuted = SplineCalibration(target="ranks").fit(prob[:, order], place[y_true]).predict_proba(prob[:, order])
    np.testing.assert_allclose(permuted, plain[:, order], atol=1e-12)
    uniform = SplineCalibration(target="ranks").fit(np.full((30, 3), 1 / 3), np.arange(30) % 3)
    np.testing.assert_allclose(uniform.predict_proba([[1 / 3, 1 / 3, 1 / 3]]), 1 / 3, atol=1e-12)


def test_ends_of_the_spline_on_a_network(vgg):
    y_true, prob = vgg
    right = prob.argmax(axis=1) == y_true
    values = {}
    for curve in ("residuals", "labels"):
        for run_out in ("linear", "quadratic", "cubic"):
            fitted = SplineCalibration(6, Confidence(), curve=curve, run_out=run_out).fit(prob[:5000], y_true[:5000])
            event = np.clip(np.interp(prob[5000:].max(axis=1), *fitted.maps_[0]), 0.0, 1.0)
            values[curve, run_out] = caltest.calibration_error(right[5000:], event, statistic=caltest.KS())
    expected = (0.012205, 0.013586, 0.014368, 0.011095, 0.006960, 0.008417)  # by the matrices of appendix C
    np.testing.assert_allclose(list(values.values()), expected, atol=6e-7)


def test_bad_arguments_are_refused():
    prob, y_true = over_confident(50, 3)
    for options, error, message in (
        ({"n_knots": 1}, ValueError, "`n_knots`"),
        ({"n_knots": 6.5}, TypeError, "`n_knots`"),
        ({"curve": "cubic"}, ValueError, "`curve`"),
        ({"constrained": "yes"}, TypeError, "`constrained`"),
        ({"run_out": "natural"}, ValueError, "`run_out` must be one of 'linear', 'quadratic', 'cubic'"),
        ({"run_out": "cubic", "n_knots": 3}, ValueError, "`n_knots`"),
        (
            {"target": "classes"},
            ValueError,
            "`target` must be a lens such as Confidence\\(\\), 'ranks' or None, got 'classes'",
        ),
        ({"target": 1}, TypeError, "`target` must be a lens"),
        ({"target": TopK(2)}, ValueError, "`target` must have two outcomes"),
    ):
        with pytest.raises(error, match=message):
            SplineCalibration(**options).fit(prob, y_true)
    with pytest.raises(ValueError, match="`predict_event` needs a `target`"):
        SplineCalibration().fit(prob, y_true).predict_event(prob)
    with pytest.raises(ValueError, match="got target='ranks'; use `predict_proba`"):
        SplineCalibration(target="ranks").fit(prob, y_true).predict_event(prob)
