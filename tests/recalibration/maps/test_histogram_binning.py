"""Histogram binning: frequencies by loops, its three kinds, and refusals."""

import numpy as np
import pytest

from caltest import Edges, EqualMass, EqualWidth
from caltest.predictions import AgainstRest
from caltest.recalibration import HistogramBinning
from tests.recalibration.maps.test_one_vs_rest import over_confident


def frequency(cells, score, label, new):
    """Frequency of the event in the cell of each new score; the midpoint of a cell without observations."""
    edges = [0.0, *cells, 1.0]
    found = []
    for one in new:
        j = sum(one >= edge for edge in cells)
        inside = [y for s, y in zip(score, label, strict=True) if sum(s >= edge for edge in cells) == j]
        found.append(np.mean(inside) if inside else (edges[j] + edges[j + 1]) / 2)
    return np.array(found)


@pytest.mark.parametrize("kind", ["per_class", "shared"])
def test_it_is_the_frequency_in_the_cell(kind):
    prob, y_true = over_confident(80, 3)
    new, _ = over_confident(40, 3, seed=1)
    label = y_true[:, None] == np.arange(3)
    cells = np.arange(1, 7) / 7
    if kind == "shared":
        wanted = frequency(cells, prob.ravel(), label.ravel(), new.ravel()).reshape(new.shape)
    else:
        wanted = np.column_stack([frequency(cells, prob[:, k], label[:, k], new[:, k]) for k in range(3)])
    wanted /= wanted.sum(axis=1, keepdims=True)
    found = HistogramBinning(EqualWidth(7), kind).fit(prob, y_true)
    np.testing.assert_allclose(found.predict_proba(new), wanted, atol=1e-12)
    right = HistogramBinning(EqualWidth(7, closed="right"), kind).fit(prob, y_true)
    np.testing.assert_allclose(right.predict_proba(new), wanted, atol=1e-12)
    given = HistogramBinning(Edges(cells), kind).fit(prob, y_true)
    np.testing.assert_array_equal(given.predict_proba(new), found.predict_proba(new))


def test_closed_ends():
    event, label = np.array([0.25, 0.5, 0.75]), np.array([0, 1, 1])
    for closed, wanted in (("left", 1.0), ("right", 0.5)):
        fitted = HistogramBinning(EqualWidth(2, closed=closed), "per_class").fit(event, label)
        assert fitted._evaluate(fitted.maps_[1], np.array([0.5])).tolist() == [wanted]


@pytest.mark.slow(few_draws=True)
def test_bootstrap_is_the_mean_over_samples():
    prob, y_true = over_confident(60, 3)
    fitted = HistogramBinning(EqualMass(4), "bootstrap", n_resamples=8, rng=3).fit(prob, y_true)
    drawn = np.random.default_rng(3).multinomial(60, np.full(60, 1 / 60), size=8)
    for k in range(3):
        order = np.lexsort((y_true == k, prob[:, k]))
        mean = np.zeros(60)
        for counts in drawn:
            rows = np.repeat(order, counts)
            score, label = prob[rows, k], (y_true == k)[rows]
            edges = EqualMass(4).fit(np.column_stack([1 - score, score])).edges
            mean += frequency(edges, score, label, prob[:, k]) / 8
        np.testing.assert_allclose(fitted._evaluate(fitted.maps_[k], prob[:, k]), mean, atol=1e-12)


def test_weights_are_repetitions():
    prob, y_true = over_confident(150, 3)
    weight = np.random.default_rng(0).integers(0, 4, 150)
    for kind in ("per_class", "shared"):
        weighted = HistogramBinning(kind=kind).fit(prob, y_true, weight)
        repeated = HistogramBinning(kind=kind).fit(np.repeat(prob, weight, axis=0), np.repeat(y_true, weight))
        np.testing.assert_allclose(weighted.predict_proba(prob), repeated.predict_proba(prob), atol=1e-12)


def test_bad_arguments_are_refused():
    prob, y_true = over_confident(50, 3)
    for options, error, message in (
        ({"partition": 15}, TypeError, "`partition` must be a partition"),
        ({"partition": AgainstRest(1)}, ValueError, "`partition` must make intervals"),
        ({"kind": "all"}, ValueError, "`kind`"),
        ({"n_resamples": 0}, ValueError, "`n_resamples`"),
    ):
        with pytest.raises(error, match=message):
            HistogramBinning(**options).fit(prob, y_true)
