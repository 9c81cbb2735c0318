"""Streams of forecasts: their predictions are the conditional probabilities of the outcomes."""

import numpy as np
import pytest

from benchmarks.streams import STREAMS, Stream, distorted

N_PATHS, N, LEAD = 400, 60, 3


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "batches of 50"])
def test_predictions_are_conditional_probabilities(name):
    """Residuals have mean 0, also times the prediction and the last known outcome: 4 standard errors of the paths."""
    rng = np.random.default_rng(0)
    sums = []
    for _ in range(N_PATHS):
        stream = STREAMS[name](rng, N, LEAD)
        assert stream.time.tolist() == list(range(N))
        prob = stream.y_prob if stream.y_prob.ndim == 2 else np.column_stack([1 - stream.y_prob, stream.y_prob])
        assert prob.sum(axis=1) == pytest.approx(np.ones(N))
        residual = (stream.y_true == prob.shape[1] - 1) - prob[:, -1]
        known = stream.y_true[:-LEAD] == prob.shape[1] - 1
        sums.append([residual.sum(), residual @ prob[:, -1], residual[LEAD:] @ known])
    error = np.std(sums, axis=0) / np.sqrt(N_PATHS)
    assert (np.abs(np.mean(sums, axis=0)) <= 4 * error).all()


def test_residuals_are_correlated_less_than_a_lead_apart():
    stream = STREAMS["shocks"](np.random.default_rng(0), 200_000, 4)
    residual = stream.y_true - stream.y_prob
    found = np.array([residual[:-k] @ residual[k:] / (residual @ residual) for k in (1, 2, 3, 4, 5)])
    assert (np.diff(found[:4]) < 0).all()
    assert found[2] > 4 / np.sqrt(200_000)
    assert (np.abs(found[3:]) < 4 / np.sqrt(200_000)).all()


def test_batches_and_wrong_predictions():
    stream = STREAMS["batches of 50"](np.random.default_rng(0), 1000, 2)
    assert np.bincount(stream.time).tolist() == [50] * 20
    shifted = distorted(Stream(stream.time, np.full(1000, 0.5), stream.y_true), "shift")
    assert shifted.y_prob == pytest.approx(np.full(1000, 1 / (1 + np.exp(-0.3))))
    bent, sharper = distorted(stream, "region").y_prob, distorted(stream, "slope").y_prob
    assert 0.15 < (bent > stream.y_prob + 1e-6).mean() < 0.25
    assert ((sharper > stream.y_prob + 1e-9) == (stream.y_prob > 0.5)).all()
