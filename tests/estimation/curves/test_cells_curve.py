"""Cells curves agree with the statistics of the package and with the closed form of their noise floor."""

import numpy as np
import pytest

import caltest as ct
from tests.reference.examples import draw_labels


def problem(n=400, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.full(n_classes, 0.7), n)
    return draw_labels(y_prob, rng), y_prob


def binned(n_cells):
    return ct.ECE(ct.EqualWidth(n_cells))


def test_errors_and_floors_are_those_of_the_package():
    y_true, y_prob = problem()
    curve = ct.cells_curve(y_true, {"a": y_prob, "b": y_prob[::-1]}, n_cells=[15, 2], n_resamples=199, rng=0)
    assert curve.n_cells.tolist() == [2, 15]
    assert curve.statistics == ("ECE", "ACE", "UCE")
    for c, number in enumerate(curve.n_cells.tolist()):
        kinds = ct.statistics.GCE(max_prob=True, class_conditional=False, n_cells=number), ct.statistics.ACE(number)
        for s, statistic in enumerate((*kinds, ct.statistics.UCE(number))):
            for m, prob in enumerate((y_prob, y_prob[::-1])):
                error = ct.calibration_error(y_true, prob, statistic=statistic)
                assert curve.value[s, m, c] == pytest.approx(error, rel=1e-12)
                floor = ct.noise_floor(prob, statistic=statistic, method="monte-carlo", n_resamples=2999, rng=1)
                assert abs(curve.floor[s, m, c] - floor.mean) < 4 * floor.std * np.sqrt(1 / 199 + 1 / 2999)


def test_the_default_ece_is_that_of_the_confidence():
    y_true, y_prob = problem()
    curve = ct.cells_curve(y_true, y_prob, n_cells=[10], n_resamples=9, rng=0)
    expected = ct.calibration_error(y_true, y_prob, lens=ct.Confidence(), statistic=binned(10))
    assert curve.value[0, 0, 0] == pytest.approx(expected)


def test_the_noise_floor_grows_as_the_closed_form():
    """Even predictions of 0.4 to 0.6: (2 L / (pi n)) ** 0.5 times the standard deviation of a label."""
    rng = np.random.default_rng(2)
    event = np.sort(rng.uniform(0.4, 0.6, 20_000))
    curve = ct.cells_curve(
        rng.random(20_000) < event,
        event,
        statistics={"ECE": lambda n: ct.ECE(ct.EqualMass(n))},
        n_cells=[5, 20, 80],
        n_resamples=499,
        rng=0,
    )
    expected = np.sqrt(2 * curve.n_cells / (np.pi * 20_000)) * np.sqrt(np.mean(event * (1 - event)))
    error = np.sqrt((np.pi / 2 - 1) / curve.n_cells / 499)  # of the mean of 499 means of L half-normal values
    assert np.all(np.abs(curve.floor[0, 0] / expected - 1) < 4 * error)


def test_what_has_no_cells_is_a_level():
    y_true, y_prob = problem()
    chosen = {"UCE": ct.statistics.UCE, "Brier": "brier", "KS": "KS"}
    models = {"a": y_prob, "b": y_prob[::-1]}
    curve = ct.cells_curve(y_true, models, statistics=chosen, n_cells=[5, 15], n_resamples=19, rng=0)
    assert np.ptp(curve.value[1:], axis=-1).max() == np.ptp(curve.floor[1:], axis=-1).max() == 0
    for m, prob in enumerate(models.values()):
        assert curve.value[1, m, 0] == pytest.approx(ct.estimation.brier_score(y_true, prob), rel=1e-12)
        assert curve.value[2, m, 0] == ct.calibration_error(y_true, prob, statistic=ct.KS())
    assert curve.quantities[1] == "Brier score (Brier)"


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    [([1], [0.3]), ([0, 1], [0.3, 0.3]), (np.arange(5), np.eye(5)), ([3] * 4, np.full((4, 1000), 1e-3))],
)
def test_odd_data(y_true, y_prob):
    curve = ct.cells_curve(y_true, y_prob, n_cells=[1, 7], n_resamples=9, rng=0)
    assert all(np.isfinite(values).all() for values in (curve.value, curve.floor, curve.floor_upper))
    assert len(curve.to_frame()) == 6
    assert "With 1 to 7 cells (bins) ECE is" in curve.conclusion


def test_refusals():
    y_true, y_prob = problem(50)
    for options, kind, message in (
        ({"statistics": [ct.ECE]}, TypeError, "`statistics` must map names to functions of the number of cells"),
        ({"statistics": {"a": 3}}, TypeError, "`statistic` must be a statistic"),
        ({"statistics": {"a": str}}, TypeError, "`statistic` must be a statistic"),
        ({"statistics": {}}, ValueError, "`statistics` must hold at least one function"),
        ({"n_cells": 5}, TypeError, "`n_cells` must be a sequence of integers"),
        ({"n_cells": [0]}, ValueError, "`n_cells` must be an integer >= 1, got 0"),
        ({"n_cells": [5, 5]}, ValueError, "`n_cells` must be one or more different integers"),
        ({"n_cells": []}, ValueError, "`n_cells` must be one or more different integers"),
    ):
        with pytest.raises(kind, match=message):
            ct.cells_curve(y_true, y_prob, **options)


def test_weights_are_repetitions():
    y_true, y_prob = problem(300)
    weight = np.random.default_rng(2).integers(0, 4, 300)
    rows = np.repeat(np.arange(300), weight)
    options = {
        "statistics": {"UCE": ct.statistics.UCE, "ECE": ct.statistics.ConfidenceECE},
        "n_cells": [5, 15],
        "rng": 0,
    }
    weighted = ct.cells_curve(y_true, y_prob, sample_weight=weight, n_resamples=19, **options)
    repeated = ct.cells_curve(y_true[rows], y_prob[rows], n_resamples=19, **options)
    np.testing.assert_allclose(weighted.value, repeated.value, atol=1e-12)
    with pytest.raises(ValueError, match="`sample_weight` must have shape"):
        ct.cells_curve(y_true, y_prob, sample_weight=weight[1:])
