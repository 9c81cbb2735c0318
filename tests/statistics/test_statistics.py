"""Statistics against their loops, by hand, and what must not matter to them."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics._base import joint_null
from tests.reference import naive
from tests.reference.examples import TWO_OUTCOMES

EXACT = {"rtol": 1e-12, "atol": 1e-12}

PROFILE = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # statistics and distances are immutable
)


def needs_two_outcomes(statistic):
    """Whether a statistic, or its partition, is made for one probability."""
    partition = getattr(statistic, "partition", None)
    return isinstance(statistic, TWO_OUTCOMES) or isinstance(partition, caltest.EqualMass | caltest.Edges)


def test_every_statistic_has_an_example_and_a_twin(statistic_classes):
    assert statistic_classes
    for kind, has_example in statistic_classes.items():
        assert has_example, f"{kind.__name__} needs an example in conftest.STATISTICS"
        assert kind in naive.STATISTICS or len(kind().components) > 1, f"{kind.__name__} needs a twin in naive"
        assert kind.__name__ in caltest.__all__


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_equals_the_loops(views, any_statistic, weighted):
    for view in views:
        weight = view.problem.weight if weighted else None
        options = {"lens": view.lens, "statistic": any_statistic, "sample_weight": weight}
        try:
            expected = naive.evaluate(any_statistic, *view.induced, weight)
        except ValueError:
            with pytest.raises(ValueError, match=f"needs a two-outcome lens.*got {view.induced[0].shape[1]} outcomes"):
                caltest.calibration_error(view.y_true, view.y_prob, **options)
        else:
            value = caltest.calibration_error(view.y_true, view.y_prob, **options)
            np.testing.assert_allclose(value, expected, **EXACT, err_msg=str(view))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_leading_axes_are_replicates(views, any_simple_statistic, weighted):
    for view in views:
        if needs_two_outcomes(any_simple_statistic) and view.induced[0].shape[1] > 2:
            continue
        weight = view.problem.weight if weighted else None
        sample = make_sample(view.y_true, view.y_prob, lens=view.lens, sample_weight=weight)
        shape = (2, 3, sample.n_samples)
        outcomes = np.random.default_rng(4).integers(sample.n_outcomes, size=shape, dtype=sample.outcome.dtype)
        together = any_simple_statistic.evaluate(sample, outcomes)
        assert together.shape == (2, 3)
        alone = [[any_simple_statistic.evaluate(sample, outcomes[i, j]) for j in range(3)] for i in range(2)]
        assert np.shape(alone[0][0]) == ()
        np.testing.assert_allclose(together, alone, **EXACT, err_msg=str(view))


def draws_sums(statistic, sample):
    """Whether the null is made from drawn cell sums, not from drawn outcomes: a law of its own test (resampling)."""
    return hasattr(statistic, "partition") and sample.n_outcomes == 2


def test_null_is_evaluate_on_every_draw(views, any_simple_statistic):
    """`null` may be overridden to be faster, never to differ."""
    for view in views:
        if needs_two_outcomes(any_simple_statistic) and view.induced[0].shape[1] > 2:
            continue
        sample = make_sample(view.y_true, view.y_prob, lens=view.lens)
        draws = caltest.Consistency().draws(20, rng=5)
        null = any_simple_statistic.null(sample, draws)
        assert null.shape == (20,)
        if not draws_sums(any_simple_statistic, sample):
            expected = joint_null([any_simple_statistic], sample, draws)[0]
            np.testing.assert_allclose(null, expected, **EXACT, err_msg=str(view))


# By hand.


def test_errors_of_two_cells():
    # Cell 0: predicted 1/4, observed 1/2; cell 1: predicted 15/16, observed 1.
    y_true, y_prob = [0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0]
    halves = caltest.EqualWidth(2)
    assert caltest.calibration_error(y_true, y_prob, statistic=caltest.ECE(halves)) == (1 / 4 + 1 / 16) / 2
    assert caltest.calibration_error(y_true, y_prob, statistic=caltest.MCE(halves)) == 1 / 4
    squared = caltest.ECE(halves, caltest.squared_euclidean)
    assert caltest.calibration_error(y_true, y_prob, statistic=squared) == (1 / 16 + 1 / 256)
    weighted = caltest.calibration_error(
        y_true, y_prob, statistic=caltest.ECE(halves), sample_weight=[3.0, 1.0, 2.0, 0.0]
    )
    assert weighted == pytest.approx((4 * 0 + 2 * 0.125) / 6, rel=1e-12)


def test_path_is_read_at_the_end_of_tied_blocks():
    # Residuals -1/2, +1/2 within a block: the path never leaves 0 at its end.
    assert caltest.calibration_error([0, 1, 0, 1], [0.5] * 4, statistic=caltest.KS()) == 0
    # Blocks 1/4 and 3/4: -1/4 - 1/4, then + 1/4 + 1/4.
    assert caltest.calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], statistic=caltest.KS()) == 0.125
    # The extreme lies inside: + 3/4, then - 3/4.
    assert caltest.calibration_error([1, 0], [0.25, 0.75], statistic=caltest.KS()) == 0.375


def test_standardised_path_by_hand():
    # Class 0: residual 1/2 in a single row of variance 1/4; the other classes -1/4 of variance 3/16.
    value = caltest.calibration_error([0], [[0.5, 0.25, 0.25]], statistic=caltest.ClasswiseKS())
    assert value == pytest.approx(0.5 / 0.25**0.5, rel=1e-12)
    value = caltest.calibration_error([2], [[0.5, 0.25, 0.25]], statistic=caltest.ClasswiseKS())
    assert value == pytest.approx(0.75 / (3 / 16) ** 0.5, rel=1e-12)


def test_classwise_paths_reduce_to_ks_of_every_class():
    rng = np.random.default_rng(1)
    y_prob, y_true = rng.dirichlet(np.ones(4), size=200), rng.integers(4, size=200)
    expected = max(
        200
        * caltest.calibration_error(y_true, y_prob, lens=caltest.ClassWise(k), statistic=caltest.KS())
        / np.sqrt((y_prob[:, k] * (1 - y_prob[:, k])).sum())
        for k in range(4)
    )
    value = caltest.calibration_error(y_true, y_prob, statistic=caltest.ClasswiseKS())
    assert value == pytest.approx(expected, rel=1e-12)


def test_score_is_the_derivative_of_the_likelihood_in_the_temperature():
    rng = np.random.default_rng(2)
    y_prob, y_true = rng.dirichlet(np.ones(3), size=50), rng.integers(3, size=50)

    def likelihood(temperature):
        powered = y_prob ** (1 / temperature)
        return np.log((powered / powered.sum(axis=1, keepdims=True))[np.arange(50), y_true]).sum()

    step = 1e-5
    slope = (likelihood(1 + step) - likelihood(1 - step)) / (2 * step)
    sample = make_sample(y_true, y_prob)
    assert caltest.TemperatureScore().signed(sample, sample.outcome) == pytest.approx(-slope, rel=1e-6)


def test_signed_score_equals_the_loops(views):
    for view in views:
        sample = make_sample(view.y_true, view.y_prob, lens=view.lens)
        signed = caltest.TemperatureScore().signed(sample, sample.outcome)
        expected = naive.signed_temperature_score(*(part.tolist() for part in view.induced))
        np.testing.assert_allclose(signed, expected, **EXACT, err_msg=str(view))


@pytest.mark.parametrize(("events", "sign"), [(9, 1), (6, -1)])
def test_sign_of_the_score(events, sign):
    """Right more often than 0.75 says: under-confident, positive; less often: over-confident, negative."""
    sample = make_sample([1] * events + [0] * (10 - events), [0.75] * 10)
    assert np.sign(caltest.TemperatureScore().signed(sample, sample.outcome)) == sign


def test_an_impossible_label_makes_the_score_infinite():
    assert caltest.calibration_error([1], [0.0], statistic=caltest.TemperatureScore()) == np.inf
    assert caltest.calibration_error([1], [1.0], statistic=caltest.TemperatureScore()) == 0
    ignored = caltest.calibration_error(
        [1, 1], [0.0, 0.5], statistic=caltest.TemperatureScore(), sample_weight=[0.0, 1.0]
    )
    assert ignored == 0


def test_a_path_without_variance_is_flat_or_infinite():
    assert caltest.calibration_error([0, 1], [0.0, 1.0], statistic=caltest.ClasswiseKS()) == 0
    assert caltest.calibration_error([1, 1], [0.0, 1.0], statistic=caltest.ClasswiseKS()) == np.inf


def test_a_contradiction_is_infinite_whatever_its_weight():
    value = caltest.calibration_error([1, 1], [0.0, 1.0], statistic=caltest.ClasswiseKS(), sample_weight=[0.25, 0.25])
    assert value == np.inf


def test_defaults():
    assert caltest.ECE() == caltest.ECE(caltest.VarianceTree(), caltest.total_variation)
    assert caltest.MCE() == caltest.MCE(caltest.VarianceTree(), caltest.total_variation)
    assert caltest.Omnibus().parts == (caltest.ECE(), caltest.TemperatureScore(), caltest.ClasswiseKS())
    y_true, y_prob = [0, 1, 1], [[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]
    value = caltest.calibration_error(y_true, y_prob)
    assert value == caltest.calibration_error(y_true, y_prob, statistic=caltest.ECE())


# What must not matter.


@st.composite
def problems(draw):
    """Rows of small integer odds: ties, zeros, ones and equal columns are common."""
    n_classes = draw(st.integers(2, 4))
    odds = st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes).filter(any)
    rows = draw(st.lists(odds, min_size=1, max_size=16))
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=len(rows), max_size=len(rows)))
    prob = np.array(rows, dtype=float)
    return np.array(labels), prob / prob.sum(axis=1, keepdims=True)


@PROFILE
@given(problem=problems(), data=st.data())
def test_row_order_does_not_matter(any_simple_statistic, problem, data):
    y_true, y_prob = problem
    lens = caltest.Confidence() if needs_two_outcomes(any_simple_statistic) else None
    order = data.draw(st.permutations(range(len(y_true))))
    weight = np.arange(1.0, len(y_true) + 1)
    for w, reordered in [(None, None), (weight, weight[order])]:
        options = {"lens": lens, "statistic": any_simple_statistic}
        one = caltest.calibration_error(y_true, y_prob, **options, sample_weight=w)
        other = caltest.calibration_error(y_true[order], y_prob[order], **options, sample_weight=reordered)
        np.testing.assert_allclose(one, other, **EXACT)


@PROFILE
@given(problem=problems(), data=st.data())
def test_names_of_the_classes_do_not_matter(any_distance, problem, data):
    y_true, y_prob = problem
    order = data.draw(st.permutations(range(y_prob.shape[1])))
    for statistic in (
        *(kind(caltest.EqualWidth(10, axes="all"), any_distance) for kind in (caltest.ECE, caltest.MCE)),
        caltest.TemperatureScore(),
    ):
        one = caltest.calibration_error(y_true, y_prob, statistic=statistic)
        other = caltest.calibration_error(np.argsort(order)[y_true], y_prob[:, order], statistic=statistic)
        if y_prob.shape[1] > 2 or isinstance(statistic, caltest.TemperatureScore):
            np.testing.assert_allclose(one, other, **EXACT)


@PROFILE
@given(problem=problems(), data=st.data())
def test_labels_as_strings_do_not_matter(problem, data):
    y_true, y_prob = problem
    names = data.draw(st.permutations("abcd"))[: y_prob.shape[1]]
    one = caltest.calibration_error(y_true, y_prob)
    assert caltest.calibration_error([names[k] for k in y_true], y_prob, classes=names) == one


@PROFILE
@given(problem=problems(), data=st.data())
def test_a_whole_weight_is_a_repeated_row(problem, data):
    y_true, y_prob = problem
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y_true), max_size=len(y_true)).filter(any))
    for statistic in (
        caltest.ECE(caltest.EqualWidth(4)),
        caltest.MCE(caltest.EqualWidth(4)),
        caltest.TemperatureScore(),
        caltest.KS(),
    ):
        lens = caltest.Confidence() if isinstance(statistic, TWO_OUTCOMES) else None
        weighted = caltest.calibration_error(y_true, y_prob, lens=lens, statistic=statistic, sample_weight=times)
        repeated = caltest.calibration_error(
            np.repeat(y_true, times), np.repeat(y_prob, times, axis=0), lens=lens, statistic=statistic
        )
        np.testing.assert_allclose(weighted, repeated, **EXACT)


@PROFILE
@given(problem=problems())
def test_two_columns_and_one_are_the_same_problem(problem):
    y_true, y_prob = problem
    event = y_prob[:, 1]
    for statistic in (caltest.ECE(), caltest.KS(), caltest.TemperatureScore(), caltest.ClasswiseKS()):
        two = np.column_stack([1 - event, event])
        one = caltest.calibration_error(y_true == 1, event, statistic=statistic)
        assert one == caltest.calibration_error((y_true == 1).astype(int), two, statistic=statistic)


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: caltest.Omnibus((caltest.ECE(),)), r"`parts` must be at least two statistics other than Omnibus"),
        (lambda: caltest.Omnibus(()), r"`parts` must be at least two statistics"),
        (lambda: caltest.Omnibus((caltest.ECE(), caltest.Omnibus())), r"statistics other than Omnibus"),
        (lambda: caltest.Omnibus((caltest.ECE(), "KS")), r"`parts` must be at least two statistics .* got .*'KS'"),
        (lambda: caltest.Omnibus((caltest.ECE(), caltest.KS)), r"`parts` must be at least two statistics"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("statistic", [caltest.ECE, "ece", caltest.total_variation, 3], ids=repr)
def test_what_is_no_statistic(statistic):
    message = r"`statistic` must be a Statistic such as ECE\(\) or Omnibus\(\), got"
    for function in (caltest.calibration_error, caltest.calibration_test):
        with pytest.raises(ValueError, match=message):
            function([0, 1], [0.25, 0.75], statistic=statistic)


def test_a_combination_estimates_nothing():
    with pytest.raises(ValueError, match="`Omnibus` combines tests and estimates no error"):
        caltest.calibration_error([0, 1], [0.25, 0.75], statistic=caltest.Omnibus())


@pytest.mark.parametrize("lens", [None, caltest.TopK(2)], ids=repr)
def test_ks_needs_two_outcomes(lens):
    prob = np.full((2, 4), 0.25)
    with pytest.raises(ValueError, match=r"`KS` needs a two-outcome lens such as Confidence\(\), got [34] outcomes"):
        caltest.calibration_error([0, 1], prob, lens=lens, statistic=caltest.KS())


@pytest.mark.parametrize(
    ("region", "weight", "message"),
    [
        (lambda p: p[:, 1] > 0.9, None, r"`region` must hold at least one row \(of positive weight\), got none"),
        (lambda p: p[:, 1] > 0.5, [1.0, 0.0], r"`region` must hold at least one row \(of positive weight\)"),
        (lambda p: p[:, 1], None, r"`region` must return booleans of shape \(2,\), got float64 of shape \(2,\)"),
        (lambda p: p > 0.5, None, r"`region` must return booleans of shape \(2,\), got bool of shape \(2, 2\)"),
        (None, [1.0], r"`sample_weight` must have shape \(2,\), got \(1,\)"),
        (None, [1.0, -1.0], r"`sample_weight` must be finite and not negative, got -1.0 in row 1"),
        (None, [np.nan, 1.0], r"`sample_weight` must be finite and not negative, got nan in row 0"),
        (None, [0.0, 0.0], r"`sample_weight` must have a positive.* sum, got 0"),
    ],
)
def test_bad_regions_and_weights_are_refused(region, weight, message):
    with pytest.raises(ValueError, match=message):
        caltest.calibration_error([0, 1], [0.25, 0.75], region=region, sample_weight=weight)


def test_region_restricts_rows_and_shares():
    rng = np.random.default_rng(6)
    y_prob, y_true, weight = rng.dirichlet(np.ones(3), size=80), rng.integers(3, size=80), rng.random(80)
    inside = y_prob[:, 0] > 0.4
    for statistic in (caltest.ECE(), caltest.ECE(caltest.EqualWidth(3)), caltest.TemperatureScore()):
        one = caltest.calibration_error(
            y_true, y_prob, statistic=statistic, region=lambda p: p[:, 0] > 0.4, sample_weight=weight
        )
        other = caltest.calibration_error(
            y_true[inside], y_prob[inside], statistic=statistic, sample_weight=weight[inside]
        )
        assert one == other


def test_region_speaks_of_induced_probabilities():
    rng = np.random.default_rng(7)
    y_prob, y_true = rng.dirichlet(np.ones(3), size=80), rng.integers(3, size=80)
    sure = y_prob.max(axis=1) > 0.6
    one = caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), region=lambda p: p[:, 1] > 0.6)
    assert one == caltest.calibration_error(y_true[sure], y_prob[sure], lens=caltest.Confidence())


def test_statistics_are_frozen_comparable_and_named(any_statistic):
    same = replace(any_statistic)
    assert same == any_statistic
    assert hash(same) == hash(any_statistic)
    assert str(any_statistic).startswith(type(any_statistic).__name__ + "(")
    with pytest.raises((FrozenInstanceError, TypeError)):
        any_statistic.partition = None
