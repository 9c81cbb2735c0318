"""The picture of correlated residuals shows the numbers and the bands of the test."""

import matplotlib as mpl
import numpy as np
import pytest

import caltest as ct
from benchmarks.streams import STREAMS
from caltest.hypothesis_tests import residual_correlation
from caltest.plotting import plot_residual_correlation


@pytest.fixture(scope="module")
def found():
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 365, 7)
    return residual_correlation(stream.y_true, stream.y_prob, rng=0)


def points(ax):
    return np.concatenate([line.get_xydata() for line in ax.get_lines() if line.get_marker() == "o"])


@pytest.mark.slow(few_draws=True)
def test_correlations_and_variance_ratios_over_their_bands(found):
    lags, sums = found.plot()
    np.testing.assert_allclose(points(lags), np.column_stack([found.lag, found.correlation]))
    np.testing.assert_allclose(sorted(points(sums).tolist()), np.column_stack([found.window, found.variance_ratio]))
    for ax, lower, upper in ((lags, found.lower, found.upper), (sums, found.ratio_lower, found.ratio_upper)):
        (band,) = [part for part in ax.collections if isinstance(part, mpl.collections.FillBetweenPolyCollection)]
        corners = {round(float(y), 9) for y in band.get_paths()[0].vertices[:, 1]}
        assert {round(float(y), 9) for y in (*lower, *upper)} <= corners
    labels = [text.get_text() for text in sums.get_legend().get_texts()]
    assert labels == ["95 % for all together", "independent labels", "observed, rejected"]
    assert "0.51 at lag 1" in lags.figure.get_suptitle()
    mpl.pyplot.close("all")


def test_without_enough_draws_there_is_no_band(found):
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 30, 2)
    few = residual_correlation(stream.y_true, stream.y_prob, n_resamples=9, rng=0)
    _, sums = few.plot()
    assert "observed, rejected" not in sums.get_legend_handles_labels()[1]
    assert not any("together" in label for label in sums.get_legend_handles_labels()[1])
    mpl.pyplot.close("all")
    with pytest.raises(TypeError, match=r"must be a ResidualCorrelation from residual_correlation\(\.\.\.\)"):
        plot_residual_correlation("correlogram")


@pytest.mark.slow(few_draws=True)
def test_captions_name_the_shocks_of_time():
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 100, 3)
    options = {"statistic": ct.KS(), "n_resamples": 39, "rng": 0}
    timed = ct.calibration_test(stream.y_true, stream.y_prob, time=np.arange(100), lead=3, **options)
    plain = ct.calibration_test(stream.y_true, stream.y_prob, **options)
    said = [one.plot().figure.legends[0].get_title().get_text() for one in (timed, plain)]
    assert ["share shocks of time" in " ".join(text.split()) for text in said] == [True, False]
    mpl.pyplot.close("all")
