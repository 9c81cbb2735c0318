"""The picture of a validation shows its curve, band and groups."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from caltest.clinical import calibration_by_site, clinical_calibration


def test_curve_band_and_groups_are_drawn():
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 3, 120)
    result = clinical_calibration((rng.random(120) < risk).astype(int), risk, n_resamples=19, rng=0)
    ax = Figure(layout="constrained").subplots()
    assert result.plot(ax, scale="linear") is ax
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_array_equal(
        lines["smooth curve (loess)"], np.column_stack([result.curve.prediction, result.curve.frequency])
    )
    np.testing.assert_array_equal(
        lines["10 groups of similar risks"], np.column_stack([result.curve.mean_risk, result.curve.observed])
    )
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"with the event (below)", "without it (below)", "calibrated"} < set(names)
    assert ax.get_title() == f"Calibration is {result.decision}"


def test_what_is_not_known_is_left_out():
    result = clinical_calibration(np.arange(8) % 2, np.linspace(0.1, 0.8, 8), n_resamples=19, rng=0)
    legend = result.plot(Figure(figsize=(6, 7), layout="constrained").subplots()).get_legend()
    assert "slope" not in legend.get_title().get_text()


@pytest.mark.slow(few_draws=True)
def test_sites_are_drawn_with_their_intervals():
    rng = np.random.default_rng(1)
    risk, site = rng.beta(1, 3, 600), np.arange(600) % 5
    result = calibration_by_site((rng.random(600) < risk).astype(int), risk, site=site, n_resamples=299, rng=0)
    axes = Figure(layout="constrained").subplots(1, 2)
    assert list(result.plot(axes)) == list(axes)
    points = np.concatenate([line.get_xydata() for line in axes[0].lines if line.get_marker() == "o"])
    expected = [one.observed_expected.estimate for one in result] + [result.summaries[0].estimate]
    np.testing.assert_allclose(np.sort(points[~np.isnan(points[:, 0]), 0]), np.sort(expected))
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert names[0] == f"0 ({result.sites[0].n_events} of 120)"
    assert names[-2:] == ["mean over sites", "a new site"]


def test_cut_ends_have_arrows_and_long_names_are_shortened():
    """The slope of a small site has an interval beyond the range of the points; its name would fill half a page."""
    rng = np.random.default_rng(3)
    risk = rng.beta(2, 4, 630)
    site = np.where(np.arange(630) < 600, np.array(["A", "B"])[np.arange(630) % 2], ("Teaching Hospital " * 4).strip())
    result = calibration_by_site((rng.random(630) < risk).astype(int), risk, site=site, n_resamples=299, rng=0)
    axes = Figure(layout="constrained").subplots(1, 2)
    result.plot(axes)
    low, high = axes[1].get_xlim()
    ends = np.array(
        [one.calibration_slope.confidence_interval for one in result]
        + [result.summaries[1].confidence_interval, result.summaries[1].prediction_interval]
    )
    arrows = {line.get_marker(): line.get_ydata().tolist() for line in axes[1].lines if line.get_marker() in "<>"}
    assert arrows == {"<": np.flatnonzero(ends[:, 0] < low).tolist(), ">": np.flatnonzero(ends[:, 1] > high).tolist()}
    assert arrows["<"] or arrows[">"]
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert names[2].startswith("Teaching Hospital … Teaching Hospital (")
