"""The score of temperature scaling: the derivative of a likelihood, its sign, and impossible labels."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from tests.reference import naive
from tests.reference.examples import VIEWS

SCORE = caltest.TemperatureScore()


def test_it_is_the_derivative_of_the_likelihood_in_the_temperature():
    rng = np.random.default_rng(2)
    y_prob, y_true = rng.dirichlet(np.ones(3), size=50), rng.integers(3, size=50)

    def likelihood(temperature):
        powered = y_prob ** (1 / temperature)
        return np.log((powered / powered.sum(axis=1, keepdims=True))[np.arange(50), y_true]).sum()

    step = 1e-5
    slope = (likelihood(1 + step) - likelihood(1 - step)) / (2 * step)
    sample = make_sample(y_true, y_prob)
    assert SCORE.signed(sample, sample.outcome) == pytest.approx(-slope, rel=1e-6)


def test_the_signed_score_equals_the_loops():
    for view in VIEWS:
        sample = make_sample(view.y_true, view.y_prob, lens=view.lens)
        signed = SCORE.signed(sample, sample.outcome)
        expected = naive.signed_temperature_score(*(part.tolist() for part in view.induced))
        np.testing.assert_allclose(signed, expected, rtol=1e-12, atol=1e-12, err_msg=str(view))
        assert SCORE.direction(sample, sample.outcome) == signed


@pytest.mark.parametrize(("events", "sign"), [(9, 1), (6, -1)])
def test_directions(events, sign):
    """Right more often than predicted is under-confident, positive; less often over-confident, negative.

    All statistics that show a direction agree.
    """
    right = [1] * events + [0] * (10 - events)
    sample = make_sample([*right, *(1 - y for y in right)], [0.75] * 10 + [0.25] * 10)
    for statistic in (SCORE, caltest.statistics.Spiegelhalter(), caltest.statistics.CoxScore("slope")):
        assert np.sign(statistic.direction(sample, sample.outcome)) == sign, statistic
    for statistic in (
        caltest.statistics.CoxScore(),
        caltest.statistics.CoxScore("intercept"),
        caltest.ECE(),
        caltest.KS(),
    ):
        assert statistic.direction(sample, sample.outcome) is None, statistic


def test_sides():
    """Evidence of one side is the score or its negative; an impossible label is evidence of over-confidence."""
    over, under = caltest.statistics.OverConfidence(), caltest.statistics.UnderConfidence()
    for view in VIEWS[:6]:
        sample = make_sample(view.y_true, view.y_prob, lens=view.lens)
        signed = SCORE.signed(sample, sample.outcome)
        assert (over.evaluate(sample, sample.outcome), under.evaluate(sample, sample.outcome)) == (-signed, signed)
        assert over.direction(sample, sample.outcome) == under.direction(sample, sample.outcome) == signed
    assert caltest.calibration_error([1], [0.0], statistic=over) == np.inf
    assert caltest.calibration_error([1], [0.0], statistic=under) == -np.inf


def test_an_impossible_label_makes_it_infinite():
    assert caltest.calibration_error([1], [0.0], statistic=SCORE) == np.inf
    assert caltest.calibration_error([1], [1.0], statistic=SCORE) == 0
    ignored = caltest.calibration_error([1, 1], [0.0, 0.5], statistic=SCORE, sample_weight=[0.0, 1.0])
    assert ignored == 0
