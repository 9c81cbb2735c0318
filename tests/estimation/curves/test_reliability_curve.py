"""The reliability curve: cells, frequencies, and bars that keep their level."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import beta, binom

import caltest as ct
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from tests.reference import naive
from tests.reference.cases import mostly_nightly
from tests.reference.examples import draw_labels
from tests.results.printed import printed


def squared(prob):
    """A calibration function."""
    return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])


@pytest.fixture(scope="module")
def problem():
    """A calibrated three-class problem."""
    rng = np.random.default_rng(5)
    prob = rng.dirichlet([1, 1, 2], 400)
    return draw_labels(prob, rng), prob


def test_by_hand():
    y = [0, 1, 0, 1, 1]
    p = [0.1, 0.2, 0.3, 0.8, 0.9]
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(2))
    np.testing.assert_allclose(curve.lower, [0, 0.5])
    np.testing.assert_allclose(curve.upper, [0.5, 1])
    np.testing.assert_array_equal(curve.count, [3, 2])
    np.testing.assert_allclose(curve.predicted, [0.2, 0.85])
    np.testing.assert_allclose(curve.observed, [1 / 3, 1])
    np.testing.assert_allclose(curve.deviation, [1 / 3 - 0.2, 0.15])
    # First cell: P(K = 0) = .504, P(K <= 1) = .902, P(K <= 2) = .994; second: P(K = 0) = .02, P(K <= 1) = .28.
    np.testing.assert_allclose(curve.bar_lower, [0, 0.5])
    np.testing.assert_allclose(curve.bar_upper, [2 / 3, 1])
    assert curve.n_cells == 2


def test_default_lens_is_the_event_for_two_classes_and_the_confidence_for_more(problem):
    y, prob = problem
    assert ct.reliability_curve(y, prob).lens == ct.Confidence()
    assert ct.reliability_curve(y == 2, prob[:, 2]).lens == ct.Canonical()
    named = ct.reliability_curve(np.array(list("abc"))[y], prob, classes=list("abc"), lens=ct.ClassWise(0))
    assert named.lens_name == "class a against the rest"


def test_cells_equal_the_naive_ones(problem):
    y, prob = problem
    curve = ct.reliability_curve(y, prob, partition=ct.EqualMass(7))
    top, right = prob.max(axis=1), y == prob.argmax(axis=1)
    cells = np.array(naive.cells(ct.EqualMass(7), np.column_stack([1 - top, top])))
    order = sorted(set(cells), key=lambda c: top[cells == c].mean())
    np.testing.assert_allclose(curve.predicted, [top[cells == c].mean() for c in order])
    np.testing.assert_allclose(curve.observed, [right[cells == c].mean() for c in order])
    assert np.all(curve.lower[1:] == curve.upper[:-1])


# --- the bars


def test_consistency_bars_hold_at_least_their_level_in_every_cell():
    """Exact probability of the bar under the Poisson-binomial distribution, not a simulation."""
    p = np.random.default_rng(5).random(300)
    for level in (0.5, 0.9, 0.99):
        curve = ct.reliability_curve(p < 0.5, p, confidence_level=level)
        for b in range(curve.n_cells):
            inside = (p >= curve.lower[b]) & (p < curve.upper[b])
            events = PoissonBinomial.of(p[inside])
            frequency = events.counts / inside.sum()
            tail = (1 - level) / 2 + 1e-12
            assert events.pmf[frequency < curve.bar_lower[b] - 1e-12].sum() <= tail, (level, b)
            assert events.pmf[frequency > curve.bar_upper[b] + 1e-12].sum() <= tail, (level, b)


@pytest.mark.nightly
def test_simultaneous_bars_hold_all_points_at_least_at_their_level():
    n_sets, level = 400, 0.9
    rng = np.random.default_rng(0)
    p = rng.random(500)
    misses = 0
    for _ in range(n_sets):
        curve = ct.reliability_curve(rng.random(500) < p, p, confidence_level=level, simultaneous=True)
        misses += curve.outside.any()
    assert misses <= binom.ppf(1 - 1e-4, n_sets, 1 - level)


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([100, 300]))
def test_share_of_points_outside_is_at_most_nominal(n_sets):
    rng = np.random.default_rng(1)
    p = rng.random(500)
    outside = [ct.reliability_curve(rng.random(500) < p, p).outside for _ in range(n_sets)]
    assert np.sum(outside) <= binom.ppf(1 - 1e-4, np.size(outside), 0.1)


def test_resampled_bars_agree_with_the_exact_ones_in_full_cells():
    """Quantiles of deviations agree with the Poisson-binomial ones up to one count and noise."""
    rng = np.random.default_rng(2)
    p = rng.random(4000)
    y = rng.random(4000) < p
    exact = ct.reliability_curve(y, p, partition=ct.EqualWidth(4))
    n_resamples = 2000
    scheme = ct.Consistency(resample_predictions=True)
    options = {"partition": ct.EqualWidth(4), "resampling": scheme, "n_resamples": n_resamples, "rng": 0}
    resampled = ct.reliability_curve(y, p, **options)
    assert (exact.exact, resampled.exact) == (True, False)
    assert "The bars come from resampled observations and are approximate." in resampled.conclusion
    # standard error of a normal 5 % quantile: sqrt(.05 .95 / B) / density(1.645) = 2.11 sd / sqrt(B)
    sd = np.sqrt([np.mean(p[c] * (1 - p[c])) / c.sum() for c in (np.floor(4 * p) == b for b in range(4))])
    tolerance = 4 * 2.11 * sd / np.sqrt(n_resamples) + 1 / exact.count
    assert np.all(np.abs(resampled.bar_lower - exact.bar_lower) < tolerance)
    assert np.all(np.abs(resampled.bar_upper - exact.bar_upper) < tolerance)


def test_confidence_bars_are_clopper_pearson(problem):
    curve = ct.reliability_curve(*problem, bars="confidence", partition=ct.EqualMass(5))
    k, n = curve.observed * curve.count, curve.count
    np.testing.assert_allclose(curve.bar_lower, np.nan_to_num(beta.ppf(0.05, k, n - k + 1)), atol=1e-10)
    np.testing.assert_allclose(curve.bar_upper, beta.ppf(0.95, k + 1, n - k), atol=1e-10)
    assert "a bar contains the mean of the calibration function in its cell." in curve.conclusion
    assert not curve.exact


def test_calibration_function_moves_the_expectation():
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = rng.random(2000) < p**2
    known = ct.Consistency(calibration_function=squared)
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(5), resampling=known)
    cell = np.floor(5 * p)
    np.testing.assert_allclose(curve.predicted, [p[cell == b].mean() for b in range(5)])
    np.testing.assert_allclose(curve.expected, [(p[cell == b] ** 2).mean() for b in range(5)])
    assert "If the given calibration function is the true one" in curve.conclusion
    assert np.all(np.abs(curve.deviation) < 4 * 0.5 / np.sqrt(curve.count))


def test_user_partition_region_and_density(problem):
    y, prob = problem
    curve = ct.reliability_curve(y, prob, partition=lambda p: (p[:, 1] > 0.6).astype(int))
    assert curve.n_cells == 2
    assert curve.upper[0] <= 0.6 < curve.lower[1]
    assert curve.density.sum() == pytest.approx(1)
    assert len(curve.density_edges) == len(curve.density) + 1
    top = prob.max(axis=1)
    inside = ct.reliability_curve(y, prob, region=lambda p: p[:, 1] > 0.6)
    assert inside.count.sum() == (top > 0.6).sum()


def test_impossible_and_certain_predictions():
    curve = ct.reliability_curve([0, 1, 1, 0], [0.0, 0.0, 1.0, 1.0], partition=ct.EqualWidth(2))
    np.testing.assert_array_equal(curve.bar_lower, [0, 1])
    np.testing.assert_array_equal(curve.bar_upper, [0, 1])
    assert curve.outside.all()


def test_refusals(problem):
    both = (TypeError, ValueError)
    for error, options, message in (
        (ValueError, {"bars": "error"}, "`bars` must be one of 'consistency', 'confidence', got 'error'"),
        (ValueError, {"confidence_level": 1.0}, "`confidence_level` must lie strictly between 0 and 1, got 1.0"),
        (both, {"confidence_level": "90%"}, "`confidence_level` must lie strictly between 0 and 1, got '90%'"),
        (ValueError, {"lens": ct.Canonical()}, r"`lens` must have two outcomes, such as Confidence\(\), got Canonical"),
        (both, {"partition": "quantile"}, "`partition` must be a partition such as"),
        (TypeError, {"simultaneous": 3}, r"`simultaneous` must be True or False, got 3"),
        (TypeError, {"resampling": "rows"}, r"`resampling` must be a Consistency\(...\)"),
        (
            ValueError,
            {"resampling": ct.Consistency(resample_predictions=True), "n_resamples": 0},
            "`n_resamples` must be an integer >= 1, got 0",
        ),
    ):
        with pytest.raises(error, match=message):
            ct.reliability_curve(*problem, **options)


# --- what is printed

PRINTED = """
Reliability curve (confidence, 899 observations, EqualWidth(5))
In 3 of 4 cells (bins) the observed frequency is outside its bar. If the model
is calibrated, at most about 10 % of the cells are outside by chance. The ECE in
these cells is 0.08548; a calibrated model has 0.01462 on average.

 cell (bin)        observations  predicted  observed   consistency bar  outside
 0.2000 to 0.4000            15     0.3152    0.5333  0.1333 to 0.5333
 0.4000 to 0.6000            69     0.5136    0.6957  0.4203 to 0.6087        *
 0.6000 to 0.8000           118     0.7195    0.9492  0.6525 to 0.7881        *
 0.8000 to 1.0000           697     0.9485    0.9971  0.9354 to 0.9613        *
"""
PRINTED_CONFIDENCE = """
Reliability curve (confidence, 899 observations, EqualWidth(5))
In 3 of 4 cells (bins) the average prediction is outside its bar. With 90 %
confidence all bars contain the means of the calibration function in their
cells. The ECE in these cells is 0.08548; a calibrated model has 0.01462 on
average.

 cell (bin)        observations  predicted  observed    confidence bar  outside
 0.2000 to 0.4000            15     0.3152    0.5333  0.2386 to 0.8118
 0.4000 to 0.6000            69     0.5136    0.6957  0.5570 to 0.8127        *
 0.6000 to 0.8000           118     0.7195    0.9492  0.8842 to 0.9837        *
 0.8000 to 1.0000           697     0.9485    0.9971  0.9885 to 0.9998        *
"""


def print_it(**options):
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.reliability_curve(y_true, models["logistic_regression"], partition=ct.EqualWidth(5), **options)


def test_what_is_printed():
    assert printed(print_it()) == PRINTED.strip("\n")
    assert printed(print_it(bars="confidence", simultaneous=True)) == PRINTED_CONFIDENCE.strip("\n")
    simultaneous = print_it(simultaneous=True).conclusion
    assert "all frequencies are inside their bars in at least 90 % of data sets." in simultaneous


def test_it_is_frozen_and_makes_a_frame(problem):
    curve = ct.reliability_curve(*problem)
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.bars = "none"
    frame = curve.to_frame()
    assert len(frame) == curve.n_cells
    assert {"lower", "upper", "observed", "bar_lower", "outside", "pvalue"} <= set(frame.columns)
    assert curve.to_dict()["outside"] == curve.outside.tolist()


# The default cells, the error and its noise floor.


@pytest.mark.parametrize("lens", [ct.Confidence(), ct.ClassWise(3)])
def test_error_and_noise_floor_are_those_of_the_ece(lens):
    y_true, y_prob = (part[:700] for part in ct.datasets.load_cifar10_vgg16())
    curve = ct.reliability_curve(y_true, y_prob, lens=lens)
    ece = ct.ECE(curve.partition)
    assert curve.error == pytest.approx(ct.calibration_error(y_true, y_prob, statistic=ece, lens=lens), abs=1e-12)
    floor = ct.noise_floor(y_prob, statistic=ece, lens=lens, rng=0).mean
    assert curve.noise_floor == pytest.approx(floor, abs=1e-9)


def test_noise_floor_with_weights_is_that_of_simulated_labels():
    """Equal weights change nothing but that the noise floor is simulated: 4 standard errors of B draws."""
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y, many = rng.random(300) < p, 4000
    exact = ct.reliability_curve(y, p, partition=ct.EqualWidth(3))
    drawn = ct.reliability_curve(y, p, partition=ct.EqualWidth(3), sample_weight=np.ones(300), n_resamples=many, rng=0)
    assert drawn.error == pytest.approx(exact.error)
    # The standard deviation of the mean of absolute deviations is at most that of the mean of all labels.
    assert drawn.noise_floor == pytest.approx(exact.noise_floor, abs=4 * 0.5 / np.sqrt(300 * many))


def default_cases():
    rng = np.random.default_rng(0)
    sharp = rng.beta(0.02, 0.2, 2000)
    width = ct.EqualWidth(15, closed="outer")
    return (
        ("even", rng.random(400), width),
        ("near 1", 1 - rng.random(400) ** 9, ct.EqualSpread(12)),
        ("one class of many", sharp, ct.EqualSpread(15)),
        ("both ends", np.where(rng.random(400) < 0.5, 0.01, 0.99) * rng.random(400), ct.EqualSpread(15)),
        ("middle", rng.uniform(0.47, 0.5, 400), ct.EqualSpread(15)),
        ("few", 1 - rng.random(149) ** 9, width),
        ("constant", np.full(400, 0.97), ct.EqualSpread(13)),
        ("one-hot", np.repeat([0.0, 1.0], [300, 100]), ct.EqualSpread(5)),
        ("half zeros", np.append(np.zeros(300), rng.random(300)), ct.EqualSpread(15)),
        ("rare events", rng.beta(0.5, 500, 20_000), ct.EqualSpread(15)),
        ("decimals", rng.integers(0, 11, 400) / 10, width),
        ("one prediction", np.array([0.3]), width),
    )


def test_default_cells_depend_on_how_sharp_the_predictions_are():
    rng = np.random.default_rng(0)
    for case, p, expected in default_cases():
        curve = ct.reliability_curve(rng.random(len(p)) < p, p)
        assert curve.partition == expected, case
        assert curve.density.sum() == pytest.approx(1), case


def test_default_cells_of_an_event_and_its_complement_mirror():
    rng = np.random.default_rng(1)
    for case, p, _ in default_cases():
        y = rng.random(len(p)) < p
        curve, mirror = ct.reliability_curve(y, p), ct.reliability_curve(~y, 1 - p)
        assert curve.partition == mirror.partition, case
        assert curve.count.tolist() == mirror.count[::-1].tolist(), case
        for name, other in (("lower", "upper"), ("predicted", "predicted"), ("observed", "observed"),
                            ("bar_lower", "bar_upper")):  # fmt: skip
            close = np.testing.assert_allclose
            close(getattr(curve, name), 1 - getattr(mirror, other)[::-1], atol=1e-12, err_msg=f"{case}: {name}")
        np.testing.assert_allclose(curve.pvalue, mirror.pvalue[::-1], rtol=1e-6, err_msg=case)
        assert curve.error == pytest.approx(mirror.error, abs=1e-12), case
        assert curve.noise_floor == pytest.approx(mirror.noise_floor, abs=1e-9), case


def test_default_cells_of_a_class_stand_on_both_sides():
    """Equally full cells leave one of 15 above 1/2; cells of equal variance leave one below 0.05."""
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    for k in range(10):
        predicted = ct.reliability_curve(y_true, y_prob, lens=ct.ClassWise(k)).predicted
        assert (predicted > 0.5).sum() >= 4, k
        assert (predicted > 0.95).sum() >= 2, k
        assert (predicted < 0.05).sum() >= 4, k
        assert ((predicted > 0.05) & (predicted < 0.95)).sum() >= 6, k


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_sets"),
    mostly_nightly([("sharp", 80), ("sharp", 400), ("ties", 400), ("rare", 400), ("sharp groups", 400)]),
)
def test_bars_and_tests_of_the_default_cells_keep_their_level(kind, n_sets):
    """Predictions drawn anew each time: bars of single cells, simultaneous bars, and Holm-adjusted tests."""
    rng = np.random.default_rng(3)
    n, options = 400, {}
    outside, together, rejected = [], 0, 0
    for _ in range(n_sets):
        p = {"rare": rng.beta(0.5, 100, n)}.get(kind, rng.beta(0.05, 0.2, n))
        p = np.round(p, 2) if kind == "ties" else p
        y = rng.random(n) < p
        if kind == "sharp groups":  # half of the groups repeat one observation
            group = np.concatenate([np.repeat(np.arange(100), 2), np.arange(100, 300)])
            p, y = p[group], y[group]
            options = {"groups": group, "n_resamples": 199, "rng": rng}
        curve = ct.reliability_curve(y, p, **options)
        assert isinstance(curve.partition, ct.EqualSpread)
        outside.append(curve.outside.mean())
        together += ct.reliability_curve(y, p, simultaneous=True, **options).outside.any()
        rejected += curve.cell_tests(alpha=0.1).rejected.any()
    limit = binom.ppf(1 - 1e-4, n_sets, 0.1)
    if kind != "sharp groups":  # signs of few groups in a cell keep the level asymptotically only
        assert np.mean(outside) <= 0.1 + 4 * np.std(outside) / np.sqrt(n_sets)
        assert together <= limit
    assert rejected <= limit
