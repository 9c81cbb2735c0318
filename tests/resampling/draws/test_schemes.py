"""The null hypothesis: in words, with a known calibration function, and what it refuses."""

from functools import partial

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.draws._rows import RowDraws
from caltest.resampling.draws._schemes import SignedGroups, validate_resampling
from caltest.resampling.engine._evaluation import null_values
from caltest.results._naming import describe
from tests.reference import naive
from tests.reference.cases import check_refused, failures
from tests.reference.examples import VIEWS, default_statistics, draw_labels, plain_statistics
from tests.resampling.checks import LABELS, ROWS, assert_same_distribution, nulls_of, problem, sample_for
from tests.resampling.draws.test_rows import sharper


def test_in_words():
    assert repr(LABELS) == "Consistency()"
    assert repr(ROWS) == "Consistency(resample_predictions=True)"
    known = caltest.Consistency(calibration_function=sharper)
    assert "P(Y = . | g(X)) = g(X)" in LABELS.hypothesis
    assert "P(Y = . | g(X)) = sharper(g(X))" in known.hypothesis
    assert [note.code for note in LABELS.conditions] == ["C101"]
    assert [note.code for note in ROWS.conditions] == ["C101", "C102"]
    assert "no label was used to make the predictions and the calibration function." in known.conditions[0].text
    assert LABELS.origin(99) == "99 Monte Carlo draws of the labels, predictions fixed (valid at every sample size)"
    assert "99 resamples of the observations" in ROWS.origin(99)
    groups = SignedGroups()
    for scheme in (LABELS.origin, ROWS.origin, groups.origin, partial(groups.origin_of_alike, icc=0.1)):
        assert scheme(9999).startswith("9,999 ")
        assert scheme("500 of at most 9,999").startswith("500 of at most 9,999 ")


def test_kinds_of_draws():
    assert type(LABELS.draws(9, 0)) is OutcomeDraws
    assert type(ROWS.draws(9, 0)) is RowDraws
    assert (LABELS.draws(9, 0).resample_predictions, ROWS.draws(9, 0).resample_predictions) == (False, True)
    assert LABELS.draws(9, 0).seed == ROWS.draws(9, 0).seed


def test_refusals():
    cases = {
        "a number": ({"resample_predictions": 1}, "`resample_predictions` must be True or False, got 1."),
        "a text": ({"resample_predictions": "no"}, "`resample_predictions` must be True or False, got 'no'."),
        "no function": (
            {"calibration_function": 0.5},
            "`calibration_function` must be a function of probabilities, got 0.5.",
        ),
    }
    found = failures(cases, lambda case: check_refused(caltest.Consistency, TypeError, case[1], **case[0]))
    assert found == {}
    check_refused(LABELS.draws, ValueError, "`n_resamples` must be an integer >= 1, got 0.", 0)
    for wrong in (caltest.Consistency, "bootstrap", 3, None):
        message = f"`resampling` must be a Consistency(...), the null hypothesis, got {wrong!r}."
        check_refused(validate_resampling, TypeError, message, wrong)
    assert validate_resampling(LABELS) is LABELS


# A known calibration function.


@pytest.mark.slow
def test_errors_are_centred_on_the_calibration_function():
    scheme = caltest.Consistency(calibration_function=sharper)

    def check(statistic):
        # Loops over the default grid would take a minute.
        statistic = statistic if statistic != caltest.SmoothECE() else caltest.SmoothECE(n_points=28)
        for view in VIEWS[::2]:  # all are compared without a function, in tests of the statistics
            prob, outcome = view.induced
            if statistic.n_outcomes not in {None, prob.shape[1]} or np.any(prob < 0):
                continue  # squares of a rest below 0 are not what a user would hand in
            sample = scheme.under_null(make_sample(view.y_true, view.y_prob, lens=view.lens))
            value = statistic.evaluate(sample, sample.outcome)
            expected = naive.evaluate(statistic, prob, outcome, expected=sharper(prob))
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12, err_msg=str(view))

    assert failures({describe(statistic): statistic for statistic in plain_statistics()}, check) == {}


def test_labels_follow_the_calibration_function():
    y_true, y_prob = problem(80, 3)
    statistic = caltest.ECE(caltest.EqualWidth(3))
    scheme = caltest.Consistency(calibration_function=sharper)
    sample = scheme.under_null(make_sample(y_true, y_prob))
    null = null_values(statistic, sample, scheme.draws(4000, 3))
    rng = np.random.default_rng(99)
    labels = np.stack([draw_labels(sharper(y_prob), rng) for _ in range(2000)])
    assert_same_distribution(null, statistic.evaluate(sample, labels.astype(np.uint8)))


def test_a_true_calibration_function_is_not_rejected_and_the_identity_is():
    _, y_prob = problem(2000, 3)
    y_true = draw_labels(sharper(y_prob), np.random.default_rng(1))
    right = caltest.Consistency(calibration_function=sharper)
    assert caltest.calibration_test(y_true, y_prob, resampling=right, n_resamples=199, rng=0).pvalue > 0.05
    assert caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0).pvalue == 1 / 200


@pytest.mark.slow(few_draws=True)
def test_the_identity_as_calibration_function_changes_nothing():
    identity = caltest.Consistency(calibration_function=lambda prob: prob)

    def check(statistic):
        sample = sample_for(statistic, *problem(100, 3))
        one, other = (
            nulls_of(statistic, scheme.under_null(sample), scheme.draws(60, 3)) for scheme in (LABELS, identity)
        )
        np.testing.assert_array_equal(one, other)

    assert failures({describe(statistic): statistic for statistic in default_statistics()}, check) == {}


def test_a_calibration_function_may_allow_what_the_model_excludes():
    y_prob = np.tile([0.5, 0.5, 0.0], (40, 1))
    scheme = caltest.Consistency(calibration_function=lambda prob: np.full_like(prob, 1 / 3))
    result = caltest.calibration_test(np.arange(40) % 3, y_prob, resampling=scheme, n_resamples=199, rng=0)
    assert result.impossible_samples.size == 0
    assert result.pvalue > 0.05
    assert np.isfinite(result.null_distribution).all()


def test_a_calibration_function_may_exclude_what_the_model_allows():
    y_prob = np.tile([0.5, 0.25, 0.25], (40, 1))
    scheme = caltest.Consistency(calibration_function=lambda prob: prob @ [[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    y_true = np.zeros(40, dtype=int)
    y_true[17] = 2
    result = caltest.calibration_test(y_true, y_prob, resampling=scheme, n_resamples=199, rng=0)
    assert result.impossible_samples.tolist() == [17]
    assert result.pvalue == 1 / 200


@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_resampled_predictions_with_a_calibration_function():
    """Cells and residuals of every resample follow it too."""
    _, y_prob = problem(1500, 3)
    y_true = draw_labels(sharper(y_prob), np.random.default_rng(1))
    options = {"statistic": caltest.ECE(), "n_resamples": 99, "rng": 0}
    right = caltest.Consistency(resample_predictions=True, calibration_function=sharper)
    assert caltest.calibration_test(y_true, y_prob, resampling=right, **options).pvalue > 0.05
    assert caltest.calibration_test(y_true, y_prob, resampling=ROWS, **options).pvalue == 0.01
