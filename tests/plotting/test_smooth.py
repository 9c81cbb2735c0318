"""The picture of a smooth reliability curve shows its numbers."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import caltest as ct


@pytest.fixture(scope="module")
def curve():
    return ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), rng=0)


def new_axes():
    return Figure(layout="constrained").subplots()


@pytest.mark.parametrize("style", ["deviation", "classical"])
def test_plotted_data_equal_the_curve(curve, style):
    ax = new_axes()
    assert ct.plotting.plot_smooth_reliability(curve, ax, style=style) is ax
    base = curve.point if style == "deviation" else np.zeros(len(curve.point))
    (line,) = [line for line in ax.get_lines() if line.get_label() == "observed, bandwidth 0.05"]
    known = curve.confidence_upper - curve.confidence_lower < 1
    assert known.any()
    assert not known.all()
    height = np.where(known, curve.observed - base, np.nan)
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.point, height]), err_msg="ends with its band")
    for label, low, high in (
        ("90 % confidence band, point by point", curve.confidence_lower, curve.confidence_upper),
        ("90 % band if calibrated, point by point", curve.calibrated_lower, curve.calibrated_upper),
    ):
        (band,) = [found for found in ax.collections if found.get_label() == label]
        corners = {tuple(x) for path in band.get_paths() for x in path.vertices}
        drawn = high - low < 1
        for end in (low, high):
            assert {tuple(x) for x in np.column_stack([curve.point, end - base])[drawn]} <= corners, label


def test_labels(curve):
    ax = ct.plotting.plot_smooth_reliability(curve, new_axes(), style="deviation")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted probability", "observed - predicted")
    assert ax.get_title() == "How much is observed more or less than predicted?"
    assert ax.get_legend().get_title().get_text() == "confidence, 10,000 observations"
    square = ct.plotting.plot_smooth_reliability(curve, new_axes())
    assert square.get_ylabel() == "observed frequency"
    assert square.get_box_aspect() == 1
    bare = ct.plotting.plot_smooth_reliability(curve, new_axes(), legend=False)
    assert bare.get_legend() is None


def test_a_line_breaks_where_no_prediction_is_near():
    y, p = np.arange(80) % 2, np.repeat([0.1, 0.9], 40)
    curve = ct.smooth_reliability_curve(y, p, statistic=ct.statistics.KDEError(0.02), n_resamples=19, rng=0)
    ax = ct.plotting.plot_smooth_reliability(curve, new_axes(), style="classical")
    line = next(line for line in ax.get_lines() if line.get_label().startswith("observed"))
    x, y = line.get_xydata().T
    gaps = np.flatnonzero(np.isnan(y) & (x > 0.15) & (x < 0.85))
    assert len(gaps) > 0
    assert np.isfinite(y[: gaps[0]]).any()
    assert np.isfinite(y[gaps[-1] :]).any()


def test_no_global_style_is_touched_and_a_figure_is_made(curve):
    before = mpl.rcParams.copy()
    ax = ct.plotting.plot_smooth_reliability(curve)
    assert mpl.rcParams == before
    mpl.pyplot.close(ax.figure)


def test_bad_arguments_are_refused(curve):
    with pytest.raises(ValueError, match="`style` must be one of 'classical', 'deviation', got 'round'"):
        ct.plotting.plot_smooth_reliability(curve, style="round")
    with pytest.raises(TypeError, match=r"`curve` must be a SmoothReliabilityCurve .*, got int"):
        ct.plotting.plot_smooth_reliability(3)


def test_several_models_share_the_axes(curve):
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    part = ct.smooth_reliability_curve(y_true[:500], y_prob[:500], n_resamples=19, rng=0)
    for style in ("deviation", "classical"):
        ax = ct.plotting.plot_smooth_reliability({"all": curve, "part": part}, new_axes(), style=style, linewidth=3)
        for name, one in (("all", curve), ("part", part)):
            (line,) = [line for line in ax.get_lines() if str(line.get_label()).startswith(f"{name}\nKDEError")]
            drawn = line.get_xydata()[np.isfinite(line.get_ydata())]
            height = one.observed - (one.point if style == "deviation" else 0)
            known = one.confidence_upper - one.confidence_lower < 1
            np.testing.assert_allclose(drawn, np.column_stack([one.point, height])[known])
            assert line.get_linewidth() == 3
        shown = ax.get_legend().get_title().get_text()
        assert shown.replace("\n", " ") == "confidence, 10,000 observations, 500 observations"
        shares = [patch.get_data().values.sum() for patch in ax.child_axes[0].patches]
        assert shares == pytest.approx([1, 1])
