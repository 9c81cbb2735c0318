"""Studies of coverage, on intervals whose coverage is known."""

import json

import numpy as np
import pytest
from scipy.stats import norm

import caltest
from caltest.simulation import GaussianMixture1D, bias_study, coverage_study

MODEL = GaussianMixture1D(1, 1)


def mean_deviation(y_prob, class_prob):
    return (class_prob - y_prob)[:, 1].mean()


def known_interval(level, side=0):
    """An interval around the mean deviation, given the rows, of the model's own residual variance: normal, known sd."""

    def build(y_true, y_prob):
        true = MODEL.calibration_function(y_prob)[:, 1]
        reach = norm.ppf((1 + level) / 2) * np.sqrt((true * (1 - true)).sum()) / len(y_true)
        centre = (y_true - y_prob[:, 1]).mean() + side * reach
        return centre - reach, centre + reach

    return build


@pytest.mark.slow
def test_coverage_is_what_theory_says():
    """With the exact variance the sum of 400 residuals is normal within far less than the binomial error."""
    intervals = {str(level): (known_interval(level), mean_deviation) for level in (0.5, 0.9)}
    frame = coverage_study(MODEL, intervals, 400, 2000, rng=0).to_frame().set_index("interval")
    for level in (0.5, 0.9):
        row = frame.loc[str(level)]
        assert abs(row["coverage"] - level) < 4 * np.sqrt(level * (1 - level) / 2000)
        assert row["coverage_low"] < row["coverage"] < row["coverage_high"]
        assert row["above"] + row["below"] + row["coverage"] == pytest.approx(1)


def test_the_sides_are_not_exchanged():
    intervals = {str(side): (known_interval(0.9, side), mean_deviation) for side in (-1, 1)}
    frame = coverage_study(MODEL, intervals, 400, 200, rng=0).to_frame().set_index("interval")
    # An interval that ends at the estimate lies below its target half of the time.
    assert abs(frame.loc["-1", "above"] - 0.5) < 4 * 0.5 / np.sqrt(200)
    assert frame.loc["1", "above"] < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)
    assert frame.loc["1", "below"] > 0.3


def test_data_sets_are_those_of_the_other_studies():
    def seen(y_true, y_prob):
        value = caltest.calibration_error(y_true, y_prob)
        return value, value

    covered = coverage_study(MODEL, {"value": (seen, lambda y_prob, class_prob: 0)}, 50, 20, rng=3)
    estimated = bias_study(MODEL, caltest.ECE(), 50, 20, rng=3)
    np.testing.assert_allclose(covered.replicates["low"], estimated.replicates["value"], rtol=1e-12)


@pytest.mark.slow(few_draws=True)
def test_keywords_are_offered_and_workers_change_nothing(tmp_path):
    def build(y_true, y_prob, *, lens, rng):
        value = caltest.calibration_error(y_true, y_prob, lens=lens)
        return value - rng.random(), value + rng.random()

    def target(y_prob, class_prob, lens):
        return float(isinstance(lens, caltest.Confidence))

    lenses = [caltest.Canonical(), caltest.Confidence()]
    one = coverage_study(MODEL, {"a": (build, target)}, [20, 30], 24, lenses=lenses, rng=1).replicates
    two = coverage_study(MODEL, {"a": (build, target)}, [20, 30], 24, lenses=lenses, rng=1, workers=2, out=tmp_path)
    assert one.equals(two.replicates)
    assert one.groupby("lens")["target"].first().to_dict() == {"Canonical()": 0.0, "Confidence()": 1.0}
    frame = two.to_frame()
    assert str(two).splitlines()[0] == f"Coverage study ({MODEL}, 24 data sets each)"
    assert f"The lowest coverage is {frame['coverage'].min():.4g} (99 % limits" in two.conclusion
    assert json.loads(json.dumps(two.to_dict(), allow_nan=False))["summary"][0]["lens"] == "Canonical()"
    assert not hasattr(two, "plot")


def test_bad_intervals_are_named():
    with pytest.raises(TypeError, match=r"`intervals` must hold pairs \(build, target\), got 3"):
        coverage_study(MODEL, {"a": 3}, 20, 5)
    with pytest.raises(TypeError, match=r"`intervals` must hold pairs \(build, target\) of functions, got"):
        coverage_study(MODEL, {"a": (max, 0.1)}, 20, 5)

    def zero(y_true, y_prob):
        return 0.0

    for build, target, words in (
        (zero, zero, "'a' whose ends are two numbers, low and high, got 0.0"),
        (lambda y_true, y_prob: ("0", "1"), zero, r"'a' whose ends are two numbers, low and high, got \('0', '1'\)"),
        (
            lambda y_true, y_prob: np.array([0.0, 1.0]),
            lambda y_prob, class_prob: y_prob,
            "'a' whose target is a number",
        ),
    ):
        with pytest.raises(TypeError, match=words):
            coverage_study(MODEL, {"a": (build, target)}, 20, 5)


def test_every_number_has_its_error_and_the_lowest_coverage_is_named_with_those_that_share_it():
    intervals = {str(level): (known_interval(level), mean_deviation) for level in (0.5, 0.55, 0.99)}
    study = coverage_study(MODEL, intervals, 50, 60, rng=0)
    frame, values = study.to_frame(), study.replicates
    of = values[values["interval"] == "0.5"]
    row = frame.set_index("interval").loc["0.5"]
    assert row["width_se"] == pytest.approx((of["high"] - of["low"]).std(ddof=1) / np.sqrt(60))
    assert row["target_se"] == pytest.approx(of["target"].std(ddof=1) / np.sqrt(60))
    for name in ("coverage", "above", "below"):
        assert row[f"{name}_se"] == pytest.approx(np.sqrt(row[name] * (1 - row[name]) / 60)), name
    assert "1 other case does not differ from the lowest by more than 4 standard errors" in study.conclusion
