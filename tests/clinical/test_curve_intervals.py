"""Intervals of distances to the smooth curve contain what the labels do not contradict."""

import numpy as np
import pytest
from scipy.special import expit

import caltest
from caltest.clinical import clinical_calibration
from caltest.clinical._curve_intervals import CurveSimulation, Distances
from caltest.predictions._sample import make_sample
from caltest.statistics import E50, E90, ECI, ICI, Emax
from tests.reference.cases import mostly_nightly

PARTS = ICI(), E50(), E90(), Emax(), ECI()


def simulation_of(y, p, seed=0, **design):
    return CurveSimulation.of(make_sample(y, p, **design), PARTS, np.random.default_rng(seed))


def shifted(n, rng, shift=0.0):
    logit = rng.normal(-1.4, 1.2, n)
    return (rng.random(n) < expit(logit + shift)).astype(int), expit(logit), expit(logit + shift)


def test_many_observations_are_put_into_cells():
    """Their distances are those of all observations to a few per cent, and their intervals overlap."""
    y, p, _ = shifted(5_000, np.random.default_rng(0), 0.3)
    sample = make_sample(y, p)
    simulation = CurveSimulation.of(sample, PARTS, np.random.default_rng(0))
    assert simulation.sample.n_samples == 1_000
    assert (simulation.size == 5).all()
    for part, value in zip(PARTS, simulation.observed, strict=True):
        assert value == pytest.approx(float(part.evaluate(sample, sample.outcome)), rel=0.05), part


def test_sizes_of_cells_are_effective_numbers():
    y, p, _ = shifted(2_050, np.random.default_rng(1))
    weight = 1.0 + np.arange(2_050) % 2
    simulation = simulation_of(y, p, sample_weight=weight)
    assert simulation.sample.n_samples == 683
    assert simulation.size[0] in {2, 3}
    assert simulation.sample.weight is not None


@pytest.mark.slow(few_draws=True)
def test_zero_is_inside_unless_the_test_rejects():
    rng = np.random.default_rng(2)
    for shift, low_is_zero in ((0.0, True), (1.0, False)):
        y, p, _ = shifted(400, rng, shift)
        intervals = simulation_of(y, p).intervals(0.025)
        assert [one.low == 0 for one in intervals[:3]] == [low_is_zero] * 3
        assert all(one.low <= one.high for one in intervals)


def test_the_band_is_where_calibrated_curves_lie():
    y, p, _ = shifted(300, np.random.default_rng(3))
    simulation = simulation_of(y, p)
    low, high = simulation.band(0.025)
    rng, outside = np.random.default_rng(4), []
    for _ in range(200):
        labels = (rng.random(300) < simulation.sample.event).astype(float)
        curve = simulation._fitted(labels[None])[0]
        outside.append(np.mean((curve < low) | (curve > high)))
    assert np.mean(outside) == pytest.approx(0.05, abs=0.03)  # the band itself is of 399 curves


def test_few_groups_have_no_interval():
    y, p, _ = shifted(100, np.random.default_rng(5))
    assert all(np.isnan(one.low) for one in simulation_of(y, p, groups=np.arange(100) % 5).intervals(0.025))


@pytest.mark.slow
@pytest.mark.parametrize("shift", mostly_nightly([0.0, 0.4]))
def test_distances_are_covered(shift):
    """At least as often as promised, up to 4 standard errors of 150 data sets."""
    rng, sets, missed = np.random.default_rng(6), 150, np.zeros(len(PARTS))
    for seed in range(sets):
        y, p, true = shifted(150, rng, shift)
        simulation = simulation_of(y, p, seed)
        target = [float(part.evaluate(simulation.sample, true[simulation.sample.row])) for part in PARTS]
        for k, (low, high) in enumerate(simulation.intervals(0.025)):
            wanted = target[k] if shift else 0.0
            missed[k] += not low - 1e-12 <= wanted <= high + 1e-12
    assert (missed / sets < 0.05 + 4 * np.sqrt(0.05 * 0.95 / sets)).all()


def test_labels_that_are_more_even_than_chance_do_not_make_an_error_of_0_certain():
    """Events at equal steps of the sum of risks: no size of an error fits, but a shift of the mean would be missed."""
    p = np.linspace(0.2, 0.8, 400)
    y = np.diff(np.floor(np.cumsum(p)), prepend=0).astype(int)
    ici = clinical_calibration(y, p, n_resamples=199, rng=0)["ICI"]
    low, high = ici.confidence_interval
    assert low == 0
    assert high > 1.5 * np.sqrt((p * (1 - p)).sum()) / 400


def test_a_frequency_that_is_met_exactly_is_no_proof():
    """One prediction, which is the frequency: the distance is 0, and its interval ends beside that of the frequency."""
    result = clinical_calibration(np.arange(400) < 110, np.full(400, 0.275), n_resamples=199, rng=0)
    error = np.sqrt(0.275 * 0.725 / 400)
    for name in ("ICI", "E50", "E90", "Emax"):
        assert result[name].estimate == pytest.approx(0, abs=1e-12)
        low, high = result[name].confidence_interval
        assert low == 0
        assert 1.6 * error < high < 3 * error, name


def test_certain_predictions_have_no_interval():
    y = np.arange(40) % 2
    low, high = clinical_calibration(y, y * 1.0, n_resamples=19, rng=0)["ICI"].confidence_interval
    assert np.isnan([low, high]).all()


@pytest.mark.slow(few_draws=True)
def test_many_observations_are_compared_in_cells():
    """The values are those of the observations; floors and p-values are near those of all labels, but for the draws."""
    rng, parts = np.random.default_rng(1), (ICI("lowess"), Emax("lowess"))
    p = expit(rng.normal(-1, 1, 6_000))
    y = (rng.random(6_000) < expit(0.05 + np.log(p / (1 - p)))).astype(int)
    sample = make_sample(y, p)
    found = Distances.of_cells(sample, parts, 399, rng)
    for k, part in enumerate(parts):
        test = caltest.calibration_test(y, p, statistic=part, n_resamples=399, rng=2)
        assert found.value[k] == pytest.approx(test.statistic, rel=1e-12)
        error = test.null.std * np.sqrt(2 / 399)
        assert abs(found.floor[k] - test.null.mean) < 4 * error
        share = (found.pvalue[k] + test.pvalue) / 2
        assert abs(found.pvalue[k] - test.pvalue) < 4 * np.sqrt(2 * share * (1 - share) / 399)
    impossible = Distances.of_cells(make_sample(np.append(y, 1), np.append(p, 0.0)), parts, 39, rng)
    assert impossible.pvalue == pytest.approx([1 / 40, 1 / 40])
