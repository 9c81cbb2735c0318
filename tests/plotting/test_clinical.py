"""The picture of a validation shows its curve, band and groups."""

import numpy as np
from matplotlib.figure import Figure

from caltest.clinical import clinical_calibration


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
