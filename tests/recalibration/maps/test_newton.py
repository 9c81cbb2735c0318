"""Newton's method: no step makes the loss larger, however long it is."""

import numpy as np
import pytest

from caltest.recalibration.maps import _newton


class Hyperbola:
    """The convex loss sqrt(1 + t^2) - 1; from |t| > 1 Newton's step to -t^3 leads away from its minimum."""

    def __init__(self):
        self.values = []

    def loss_and_gradient(self, theta):
        root = np.sqrt(1 + theta[0] ** 2)
        self.values.append(float(root - 1))
        return self.values[-1], np.array([theta[0] / root])

    def newton_step(self, theta, gradient):
        return gradient * (1 + theta[0] ** 2) ** 1.5


def test_a_step_that_makes_the_loss_larger_is_never_taken():
    loss = Hyperbola()
    found, least = _newton.minimise(loss, np.array([50.0]), decrement=1e-22, enough=0.0)
    assert max(loss.values) > loss.values[0], "steps that are too long were tried"
    assert least == min(loss.values)
    assert abs(found[0]) < 1e-8


def test_a_flat_loss_ends_the_search_where_it_is():
    """Steps with a squared length below 1e-13 were accepted without looking at the loss."""

    class Flat(Hyperbola):
        def newton_step(self, theta, gradient):
            return 1e-9 * np.sign(gradient) if abs(theta[0]) > 1e-6 else np.array([1e6])

        def loss_and_gradient(self, theta):
            value, gradient = super().loss_and_gradient(theta)
            return value, 1e-5 * gradient

    start = np.array([1e-7])
    found, least = _newton.minimise(Flat(), start, decrement=1e-22, enough=0.0)
    assert least <= Hyperbola().loss_and_gradient(start)[0] + 1e-15
    assert abs(found[0]) < 1e-6


def test_the_search_ends_where_the_loss_is_small_enough():
    found, least = _newton.minimise(Hyperbola(), np.array([50.0]), decrement=1e-22, enough=1e-3)
    assert 1e-12 < least < 1e-3
    assert abs(found[0]) < 0.1


def test_a_singular_matrix_has_the_step_of_least_squares():
    hessian = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert _newton.solve_damped(hessian, np.array([1.0, 0.0]), 0.0) == pytest.approx([1, 0])
