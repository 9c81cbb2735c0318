"""Rejection curves agree with a slow twin, and their intervals have their level."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from statsmodels.stats.proportion import proportion_confint

import caltest as ct
from tests.estimation.curves.test_bars_effective_interval import slow_interval
from tests.reference.cases import mostly_nightly, mostly_slow
from tests.reference.examples import draw_labels


def problem(n=300, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.full(n_classes, 0.5), n)
    y_prob[::3] = np.round(y_prob[::3], 1)
    y_prob /= y_prob.sum(axis=1, keepdims=True)
    return draw_labels(y_prob, rng), y_prob


def slow_uncertainty(row, measure):
    if measure == "confidence":
        return round(1 - max(row), 12)
    return round(-sum(p * np.log(p) for p in row if p > 0) / np.log(len(row)), 12)


def slow_errors(y_true, y_prob):
    """1 minus the chance that one of the most probable classes, chosen by lot, is the right one."""
    top = [[k for k, p in enumerate(row) if p >= max(row) * (1 - 1e-9)] for row in y_prob]
    return np.array([1 - top[i].count(label) / len(top[i]) for i, label in enumerate(y_true)])


@pytest.mark.parametrize("measure", ["entropy", "confidence"])
def test_points_are_those_of_the_slow_twin(measure):
    y_true, y_prob = problem()
    curve = ct.rejection_curve(y_true, y_prob, uncertainty=measure)
    assert 50 < len(curve.threshold) <= 100
    uncertainty = np.array([slow_uncertainty(row, measure) for row in y_prob])
    wrong = slow_errors(y_true, y_prob)
    for i, threshold in enumerate(curve.threshold):
        kept = uncertainty <= threshold + 1e-11
        assert curve.n_kept[i] == kept.sum()
        assert curve.rejected[i] == pytest.approx(1 - kept.mean())
        assert curve.error[i] == pytest.approx(wrong[kept].mean())
        assert curve.predicted_error[i] == pytest.approx(1 - y_prob[kept].max(axis=1).mean())
        interval = proportion_confint(wrong[kept].sum(), kept.sum(), alpha=0.05, method="beta")
        np.testing.assert_allclose([curve.error_lower[i], curve.error_upper[i]], interval, atol=1e-12)
    assert curve.rejected[-1] == 0
    assert np.all(np.diff(curve.threshold) > 0)
    np.testing.assert_allclose(curve.accuracy, 1 - curve.error)


def test_the_area_is_the_average_over_random_orders_of_ties():
    """A block of ties adds its errors in any order: the average of 4,000 orders, 4 standard errors."""
    y_true, y_prob = np.array([0, 1, 1, 0, 1, 1]), np.array([0.9, 0.8, 0.2, 0.2, 0.2, 0.45])
    curve = ct.rejection_curve(y_true, y_prob, uncertainty="confidence")
    wrong = (y_prob > 0.5) != y_true
    rng, areas = np.random.default_rng(0), []
    for _ in range(4000):
        order = np.lexsort([rng.random(6), np.round(np.minimum(y_prob, 1 - y_prob), 9)])
        areas.append(np.mean(np.cumsum(wrong[order]) / np.arange(1, 7)))
    (area,) = curve.area.values()
    assert abs(np.mean(areas) - area) < 4 * np.std(areas) / np.sqrt(4000)


@pytest.mark.slow
def test_intervals_cover_the_error_rate_at_a_fixed_threshold():
    """Predictions 0.6 or 0.9 that are right with these probabilities: at least 90 % of 1,000 sets, less 4 errors."""
    rng, covered = np.random.default_rng(1), []
    for _ in range(1000):
        event = rng.choice([0.6, 0.9], 80)
        curve = ct.rejection_curve(rng.random(80) < event, event, uncertainty="entropy", confidence_level=0.9)
        covered.append(curve.error_lower[0] <= 0.1 <= curve.error_upper[0])
    assert np.mean(covered) >= 0.9 - 4 * np.sqrt(0.09 / 1000)


def test_for_two_classes_both_measures_reject_the_same():
    rng = np.random.default_rng(2)
    event = rng.random(500)
    curve = ct.rejection_curve(rng.random(500) < event, event)
    one, other = (curve.entries("", measure) for measure in ("entropy", "confidence"))
    np.testing.assert_array_equal(curve.error[one], curve.error[other])


def test_permuted_classes_and_observations_change_nothing():
    y_true, y_prob = problem()
    order, classes = np.random.default_rng(3).permutation(300), np.array([2, 0, 3, 1])
    one = ct.rejection_curve(y_true, y_prob).to_frame()
    other = ct.rejection_curve(np.argsort(classes)[y_true[order]], y_prob[order][:, classes]).to_frame()
    np.testing.assert_allclose(one.iloc[:, 2:], other.iloc[:, 2:], atol=1e-12)


@pytest.mark.parametrize("design", [{}, {"sample_weight": [1, 1, 2, 1]}, {"groups": [0, 1, 2, 2]}])
def test_tied_classes_count_as_in_the_accuracy(design):
    """Three events in four with probability 1/2: half of the predictions are wrong, for the complement too."""
    weight = {key: value for key, value in design.items() if key == "sample_weight"}
    for y_true in ([0, 0, 0, 1], [1, 1, 1, 0]):
        curve = ct.rejection_curve(y_true, [0.5] * 4, **design)
        np.testing.assert_allclose(curve.accuracy, ct.estimation.accuracy(y_true, [0.5] * 4, **weight))
        np.testing.assert_allclose(curve.error, 0.5)
        np.testing.assert_allclose(curve.error_lower, 1 - curve.error_upper, atol=1e-7)


@pytest.mark.parametrize(
    ("y_true", "y_prob", "n_points"),
    [
        ([1], [0.3], 1),
        ([0, 1], [0.3, 0.3], 1),
        (np.arange(5), np.eye(5), 1),
        ([3] * 4, np.full((4, 1000), 1e-3), 1),
        ([0, 0, 1], [[0.5, 0.5], [0.9, 0.1], [0.5, 0.5]], 2),
    ],
)
def test_odd_data(y_true, y_prob, n_points):
    curve = ct.rejection_curve(y_true, y_prob)
    for measure in ("entropy", "confidence"):
        assert len(curve.entries("", measure)) == n_points
    assert np.isfinite(curve.to_frame().select_dtypes("number").to_numpy()).all()
    assert curve.conclusion.endswith(".")


def test_conclusions():
    y_true, y_prob = problem(n=1000)
    text = ct.rejection_curve(y_true, {"net": y_prob}, uncertainty="entropy").conclusion
    assert text.startswith("Without rejection 38.1 % of the predictions of net are wrong; without the 20 % with the")
    assert "predicted)." in text
    equal = ct.rejection_curve([0, 1, 1], [0.3] * 3, uncertainty="entropy").conclusion
    assert equal.endswith("the normalised entropy is equal for too many of them to reject a fifth.")


def test_refusals():
    y_true, y_prob = problem()
    for options, message in (
        (
            {"uncertainty": "spread"},
            "`uncertainty` must be one of 'entropy', 'confidence', 'mutual-information', 'variance', got 'spread'",
        ),
        ({"uncertainty": "variance"}, "`uncertainty` 'variance' is the disagreement of passes: pass predictions as"),
        ({"uncertainty": []}, "`uncertainty` must name measures of uncertainty, each once"),
        ({"uncertainty": ["entropy", "entropy"]}, "`uncertainty` must name measures of uncertainty, each once"),
        ({"n_points": 0}, "`n_points` must be an integer >= 1, got 0"),
        ({"confidence_level": 0}, "`confidence_level` must lie strictly between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ct.rejection_curve(y_true, y_prob, **options)
    with pytest.raises(TypeError, match="`uncertainty` must be one of"):
        ct.rejection_curve(y_true, y_prob, uncertainty=3)


# Sample weights and groups.


@pytest.mark.parametrize("design", mostly_slow(["weights", "groups", "both"]))
def test_weighted_and_grouped_points_are_those_of_the_slow_twin(design):
    y_true, y_prob = problem(n=150)
    rng = np.random.default_rng(4)
    weight, group = rng.integers(0, 4, 150) / 2, rng.integers(0, 30, 150)
    given = {"sample_weight": weight, "groups": group}
    given = {"weights": {"sample_weight": weight}, "groups": {"groups": group}, "both": given}[design]
    weight = weight if design != "groups" else np.ones(150)
    group = group if design != "weights" else np.arange(150)
    curve = ct.rejection_curve(y_true, y_prob, uncertainty="confidence", confidence_level=0.8, **given)
    uncertainty = np.array([slow_uncertainty(row, "confidence") for row in y_prob])
    wrong = slow_errors(y_true, y_prob)
    for i, threshold in enumerate(curve.threshold):
        kept = (uncertainty <= threshold + 1e-11) & (weight > 0)
        own = weight[kept]
        assert curve.n_kept[i] == kept.sum()
        assert curve.rejected[i] == pytest.approx(1 - own.sum() / weight.sum(), abs=1e-12)
        assert curve.error[i] == pytest.approx(np.average(wrong[kept], weights=own), abs=1e-12)
        assert curve.predicted_error[i] == pytest.approx(np.average(1 - y_prob[kept].max(axis=1), weights=own))
        interval = slow_interval(wrong[kept], own, group[kept], 0.8)
        np.testing.assert_allclose([curve.error_lower[i], curve.error_upper[i]], interval, atol=1e-9, err_msg=str(i))
    assert not curve.exact
    assert "Korn and Graubard" in " ".join(str(curve).split())
    assert len(curve.threshold) > 50
    curve.plot(Figure().subplots())


def test_weights_are_repetitions_within_a_group_and_have_no_unit():
    y_true, y_prob = problem(n=200)
    weight = np.random.default_rng(5).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weight)
    curves = [
        ct.rejection_curve(y_true, y_prob, sample_weight=weight, groups=np.arange(200)),
        ct.rejection_curve(y_true, y_prob, sample_weight=7.5 * weight),
        ct.rejection_curve(y_true[rows], y_prob[rows], sample_weight=np.ones(len(rows)), groups=rows),
    ]
    for other in curves[1:]:
        for name in ("threshold", "rejected", "error", "predicted_error"):
            np.testing.assert_allclose(getattr(other, name), getattr(curves[0], name), atol=1e-9, err_msg=name)
    assert curves[1].area == pytest.approx(curves[0].area)
    for key, area in curves[2].area.items():  # of equal weights a mean over the numbers that can be kept
        assert area == pytest.approx(curves[0].area[key], abs=1 / len(rows))
    np.testing.assert_allclose(curves[1].error_upper, curves[0].error_upper)
    for name in ("error_lower", "error_upper"):
        np.testing.assert_allclose(getattr(curves[2], name), getattr(curves[0], name), atol=1e-9, err_msg=name)


def test_equal_weights_and_groups_of_one_change_nothing():
    y_true, y_prob = problem(n=1000)
    plain = ct.rejection_curve(y_true, y_prob)
    for design in ({"sample_weight": np.full(1000, 1e-3)}, {"groups": np.arange(1000)}):
        equal = ct.rejection_curve(y_true, y_prob, **design)
        for name in ("error", "error_lower", "error_upper"):
            np.testing.assert_allclose(getattr(equal, name), getattr(plain, name), atol=1e-9, err_msg=name)
        assert equal.area == pytest.approx(
            {key: pytest.approx(value, abs=1 / 1000) for key, value in plain.area.items()}
        )


@pytest.mark.slow
@pytest.mark.parametrize("rate", mostly_nightly([0.05, 0.3]))
def test_intervals_of_groups_and_weights_cover(rate):
    """Labels that are shared by 60 groups of 1 to 5, weights from 0.5 to 2: 90 % of 2,000 sets, less 4 errors."""
    rng, covered = np.random.default_rng(6), []
    for _ in range(2000):
        size = rng.integers(1, 6, 60)
        risk = rate * rng.choice([0.2, 1.8], 60)
        group = np.repeat(np.arange(60), size)
        wrong = rng.random(len(group)) < risk[group]
        event = np.full(len(group), 0.9)
        weight = rng.uniform(0.5, 2, len(group))
        design = {"sample_weight": weight, "groups": group}
        curve = ct.rejection_curve(~wrong, event, uncertainty="entropy", confidence_level=0.9, **design)
        covered.append(curve.error_lower[-1] <= rate <= curve.error_upper[-1])
    assert np.mean(covered) >= 0.9 - 4 * np.sqrt(0.09 / 2000)


def test_what_curves_cannot_take_is_refused_with_advice():
    y_true, y_prob = problem(n=20)
    for curve in (ct.temperature_curve, ct.cells_curve):
        with pytest.raises(TypeError, match=rf"{curve.__name__}\(\) takes no `groups`; calibration_test"):
            curve(y_true, y_prob, groups=y_true)
    with pytest.raises(TypeError, match=r"shift_curve\(\) takes no `sample_weight`; calibration_test"):
        ct.shift_curve(y_prob, y_prob, sample_weight=y_true)
    with pytest.raises(ValueError, match="`groups` must hold at least 2 groups"):
        ct.rejection_curve(y_true, y_prob, groups=np.zeros(20))
    with pytest.raises(TypeError, match=r"one model, got a mapping of \['a', 'b'\]; make a curve of each and draw"):
        ct.reliability_curve(y_true, {"a": y_prob, "b": y_prob})
