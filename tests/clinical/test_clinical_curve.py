"""The curve of a validation, and groups of similar risks."""

import numpy as np
import pytest

from caltest.clinical import clinical_calibration


def test_curve_and_groups():
    rng = np.random.default_rng(0)
    p = np.sort(rng.beta(1, 3, 200))
    y = (rng.random(200) < p).astype(int)
    curve = clinical_calibration(y, p, n_resamples=19, rng=0).curve
    np.testing.assert_array_equal(curve.prediction, p)
    assert ((curve.lower <= curve.upper) & (curve.lower >= 0) & (curve.upper <= 1)).all()
    np.testing.assert_allclose(curve.observed, y.reshape(10, 20).mean(axis=1))
    np.testing.assert_allclose(curve.mean_risk, p.reshape(10, 20).mean(axis=1))
    assert list(curve.densities) == ["with the event", "without it"]
    assert sum(curve.densities["with the event"]) == pytest.approx(1)


def test_few_patients_are_groups_of_one():
    curve = clinical_calibration([0, 1, 0, 1, 0, 0, 1], np.linspace(0.1, 0.7, 7), n_resamples=19, rng=0).curve
    assert len(curve.observed) == 7
