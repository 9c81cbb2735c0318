"""The populations of the certificate: calibrated, as described, and measured."""

import numpy as np
import pytest

from benchmarks import certificate, coverage
from benchmarks.populations import KINDS, N_CLASSES, Clustered, Population


@pytest.mark.parametrize("kind", KINDS)
def test_populations_are_calibrated_and_sum_to_one(kind):
    """Labels against predictions within 4 standard errors, class by class, and through their squares."""
    _, y_true, y_prob = Population(kind).draw(40_000, 1)
    assert y_prob.shape == (40_000, N_CLASSES[kind])
    assert np.abs(y_prob.sum(axis=1) - 1).max() < 1e-12
    assert y_prob.min() >= 0
    assert y_prob[np.arange(40_000), y_true].min() > 0
    deviation = np.eye(N_CLASSES[kind])[y_true] - y_prob
    for weight in (np.ones_like(y_prob), y_prob):
        slack = 4 * np.sqrt((weight**2 * y_prob * (1 - y_prob)).sum(axis=0))
        assert (np.abs((weight * deviation).sum(axis=0)) <= slack).all()


def test_populations_have_what_they_are_named_for():
    prob = {kind: Population(kind).draw(20_000, 0).y_prob for kind in KINDS}
    assert len(np.unique(prob["ties, 2 classes"][:, 1])) == 101
    assert np.allclose(prob["ties, 10 classes"] * 1e4, np.rint(prob["ties, 10 classes"] * 1e4), atol=1e-9)
    assert np.mean(prob["zeros, 2 classes"][:, 1] == 0) == pytest.approx(0.55, abs=4 * np.sqrt(0.55 * 0.45 / 20_000))
    assert ((prob["zeros, 10 classes"] == 0).sum(axis=1) == 5).all()
    for kind, rate in (("events of 1 %", 0.01), ("events of 0.1 %", 0.001)):
        event = prob[kind][:, 1]
        assert abs(event.mean() - rate) < 4 * event.std() / np.sqrt(20_000)
    assert np.mean(prob["one-hot mixture"].max(axis=1) == 1) == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 20_000))
    assert len(np.unique(prob["lattice"], axis=0)) <= 36
    largest = prob["sharp and flat"].max(axis=1)
    assert np.mean(largest > 0.9) > 0.25
    assert np.mean(largest < 0.3) > 0.25


def test_every_population_is_in_the_certificate():
    assert {model for model, _ in certificate.POPULATION_VIEWS} == set(KINDS)
    wanted = {*certificate.POPULATION_TESTS, "ECE, 15 equal-width cells"}
    for model, lens in certificate.POPULATION_VIEWS[:3]:
        found = {entry.name for entry in certificate.population_entries() if certificate.accepts(entry, model, lens)}
        two = N_CLASSES[model] == 2 or lens == certificate.TOP
        assert found == wanted if two else {"Omnibus", "ECE", "SquaredL2", "SKCE"} <= found < wanted
    by_name = {interval.name: interval for interval in coverage.INTERVALS}
    assert set(KINDS) <= set(by_name["l2_interval"].predictions)
    assert set(coverage.EVENTS) <= set(by_name["calibration_band"].predictions)


@pytest.mark.slow(few_draws=True)
def test_intervals_are_measured_on_populations(tmp_path):
    interval = next(interval for interval in coverage.INTERVALS if interval.name == "l2_interval")
    small = coverage.Interval(interval.name, interval.make, interval.holds, 0.95, 40)
    frame = coverage._measure(small, "events of 1 %", 200, tmp_path, 0)
    assert frame["truth"].tolist() == list(coverage.POPULATION_TRUTHS)
    assert set(frame["predictions"]) == {"events of 1 %"}
    assert (frame["n_replicates"] == 10).all()


def test_clusters_are_calibrated_and_depend():
    model = Clustered(size=20, correlation=0.2)
    _, y_true, y_prob = model.draw(40_000, 0)
    group = model.groups(40_000)
    residual = y_true - y_prob[:, 1]
    sums = np.bincount(group, residual)
    assert abs(sums.sum()) <= 4 * sums.std() * np.sqrt(len(sums))
    independent = np.bincount(group, y_prob[:, 1] * (1 - y_prob[:, 1]))
    assert np.square(sums).mean() > 1.5 * independent.mean()
