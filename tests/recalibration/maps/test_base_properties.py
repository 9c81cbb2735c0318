"""What every recalibration method promises, on random predictions; a new method is found by itself."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest.recalibration
from caltest.recalibration import Recalibrator
from tests.recalibration.maps.test_linear_scaling import confused
from tests.reference.cases import mostly_slow

pytestmark = pytest.mark.filterwarnings("ignore:.*worse than temperature scaling")
PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=5)

KINDS = [
    kind
    for name in dir(caltest.recalibration)
    if inspect.isclass(kind := getattr(caltest.recalibration, name))
    and issubclass(kind, Recalibrator)
    and not inspect.isabstract(kind)
]


SLOW = {"AutomaticCalibration", "DirichletCalibration", "MatrixScaling"}
EACH = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind.__name__ in SLOW else []) for kind in KINDS]
)


def test_the_methods_are_found():
    assert {"TemperatureScaling", "VectorScaling", "MatrixScaling"} <= {kind.__name__ for kind in KINDS}
    assert all(isinstance(kind.keeps_ranking, bool) for kind in KINDS)


@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")  # few observations may be separated
@EACH
@PROFILE
@given(n_classes=st.integers(2, 5), n_samples=st.integers(60, 100), seed=st.integers(0, 2**16), ties=st.booleans())
def test_outputs_are_probabilities_and_rankings_are_kept(kind, n_classes, n_samples, seed, ties):
    prob, y_true = confused(n_samples, n_classes, seed)
    y_true[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes  # every class has labels
    if ties:
        prob = np.round(prob, 1)
        prob[:, -1] = 1 - prob[:, :-1].sum(axis=1)
        prob = np.maximum(prob, 0)
        prob /= prob.sum(axis=1, keepdims=True)
    found = kind().fit(prob, y_true).predict_proba(prob)
    assert found.shape == prob.shape
    assert found.min() >= 0
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)
    if kind.keeps_ranking:
        order = np.argsort(prob, axis=1)
        assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= -1e-15).all()


@EACH
@pytest.mark.parametrize("seed", mostly_slow([0, 1]))
def test_permuted_observations_and_classes_have_the_same_map(kind, seed):
    prob, y_true = confused(100, 3, seed)
    rng = np.random.default_rng(seed)
    rows, classes = rng.permutation(100), np.array([2, 0, 1])
    wanted = kind().fit(prob, y_true).predict_proba(prob)
    assert kind().fit(prob[rows], y_true[rows]).predict_proba(prob) == pytest.approx(wanted, abs=1e-8)
    permuted = kind().fit(prob[:, classes], np.argsort(classes)[y_true]).predict_proba(prob[:, classes])
    assert permuted == pytest.approx(wanted[:, classes], abs=1e-8)
