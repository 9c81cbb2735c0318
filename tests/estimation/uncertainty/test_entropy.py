"""Entropies in loops, and how fast the normalised one tends to the error of the top class (proposition 1)."""

import math

import numpy as np
import pytest

from caltest.estimation import entropy, normalized_entropy
from tests.reference.cases import check_refused
from tests.reference.examples import PROBLEMS


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_entropies_are_those_of_loops(problem):
    loops = [-sum(p * math.log(p) for p in row if p > 0) for row in problem.y_prob.astype(float).tolist()]
    np.testing.assert_allclose(entropy(problem.y_prob), loops, rtol=0, atol=1e-12)
    found = normalized_entropy(problem.y_prob)
    np.testing.assert_allclose(found, np.divide(loops, math.log(problem.n_classes)), rtol=0, atol=1e-12)
    assert found.min() >= 0
    assert found.max() <= 1


def test_numbers_of_the_paper():
    """Figure 3 has (0.6, 0.4); one dimension is the probability of the event."""
    assert normalized_entropy([[0.6, 0.4], [1.0, 0.0]]).round(3).tolist() == [0.971, 0.0]
    assert normalized_entropy([0.4, 0.0]).round(3).tolist() == [0.971, 0.0]
    assert entropy([[0.25] * 4])[0] == pytest.approx(math.log(4), rel=1e-15)
    for k in (3, 10, 1000):
        assert normalized_entropy([[1 / k] * k]).tolist() == pytest.approx([1.0], rel=1e-15)


def evenly(n_classes: int, top: float) -> np.ndarray:
    """One prediction with the rest spread evenly, as in lemma 1."""
    prob = np.full((1, n_classes), (1 - top) / (n_classes - 1))
    prob[0, 0] = top
    return prob


def test_proposition_1_holds_at_the_rate_of_one_over_log_k():
    """The excess over the error of the top class, times log K, tends to the entropy of right and wrong."""
    excess = {k: float(normalized_entropy(evenly(k, 0.6))[0]) - 0.4 for k in (2, 10, 100, 1000, 10**6)}
    assert {k: round(value, 3) for k, value in excess.items()} == {
        **{2: 0.571, 10: 0.274, 100: 0.145, 1000: 0.097},
        10**6: 0.049,
    }
    two = -(0.6 * math.log(0.6) + 0.4 * math.log(0.4))
    for k, value in excess.items():
        assert value == pytest.approx((two - 0.4 * math.log(k / (k - 1))) / math.log(k), rel=1e-9)
    assert two / 0.01 > math.log(1e29)  # log K, from which the excess is below 0.01


def test_proposition_1_needs_an_even_rest():
    """With the rest on one class, 1,000 classes do not help: the normalised entropy tends to 0, the error is 0.4."""
    prob = np.zeros((1, 1000))
    prob[0, :2] = 0.6, 0.4
    assert normalized_entropy(prob)[0] == pytest.approx(0.0974, abs=5e-5)


def test_bad_predictions_are_refused():
    check_refused(normalized_entropy, ValueError, "`y_prob` must lie in [0, 1]", [[1.5, -0.5]])
    check_refused(entropy, ValueError, "rows of `y_prob` must sum to 1", [[0.5, 0.6]])
