"""The picture shows the data of the curve, and nothing else is touched."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import caltest as ct


@pytest.fixture(scope="module")
def curve():
    return ct.reliability_curve(*ct.datasets.load_cifar10_vgg16())


def drawn_points(ax):
    lines = [line for line in ax.get_lines() if line.get_marker() == "o"]
    return np.concatenate([line.get_xydata() for line in lines])


@pytest.mark.parametrize("style", ["deviation", "classical"])
def test_plotted_data_equal_the_curve(curve, style):
    ax = Figure(layout="constrained").subplots()
    assert ct.plot_reliability(curve, ax, style=style) is ax
    height = curve.deviation if style == "deviation" else curve.observed
    points = drawn_points(ax)
    expected = np.column_stack([curve.predicted, height])
    np.testing.assert_allclose(points[np.argsort(points[:, 0])], expected)
    base = curve.expected if style == "deviation" else 0
    (bars,) = [c for c in ax.collections if len(c.get_segments()) == curve.n_cells]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([curve.bar_low - base, curve.bar_high - base]))
    foot = next(other for other in ax.figure.axes if other is not ax)
    np.testing.assert_allclose([bar.get_height() for bar in foot.patches], curve.density)


def test_labels_and_shape(curve):
    ax = ct.plot_reliability(curve, Figure(layout="constrained").subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted probability", "observed - predicted")
    assert ax.get_title() == "Confidence(), 10,000 rows"
    square = ct.plot_reliability(curve, Figure(layout="constrained").subplots(), style="classical")
    assert square.get_ylabel() == "observed frequency"
    assert square.get_box_aspect() == 1
    words = [text.get_text() for text in square.get_legend().get_texts()]
    assert words == ["90% consistency bars", "observed, outside its bar", "observed, inside its bar", "calibrated"]


def test_filled_points_are_those_outside_their_bars(curve):
    ax = ct.plot_reliability(curve, Figure(layout="constrained").subplots())
    (filled,) = [line for line in ax.get_lines() if line.get_label() == "observed, outside its bar"]
    np.testing.assert_allclose(filled.get_xdata(), curve.predicted[curve.outside])


def test_no_global_style_is_touched(curve):
    before = mpl.rcParams.copy()
    ct.plot_reliability(curve, Figure(layout="constrained").subplots())
    assert mpl.rcParams == before


def test_new_figure_by_default(curve):
    from matplotlib import pyplot as plt

    ax = ct.plot_reliability(curve)
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


@pytest.mark.parametrize("bars", ["consistency", "confidence"])
def test_one_cell_and_everything_inside(bars):
    curve = ct.reliability_curve([0, 1], [0.5, 0.5], bars=bars)
    ax = ct.plot_reliability(curve, Figure(layout="constrained").subplots())
    assert len(drawn_points(ax)) == 1


def test_sparse_cells_do_not_set_the_scale():
    """One row in 400 lies 0.7 off; it is an arrow head at the edge, and the other points keep their resolution."""
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0.6, 1, 400), 0.3)
    y = np.append(rng.random(400) < p[:-1], True)
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(5))
    ax = ct.plot_reliability(curve, Figure(layout="constrained").subplots())
    assert ax.get_ylim()[1] < 0.5
    (arrow,) = [line for line in ax.get_lines() if line.get_marker() == "^"]
    assert arrow.get_xdata() == pytest.approx([0.3])
    assert arrow.get_ydata()[0] < ax.get_ylim()[1]


def test_without_legend(curve):
    ax = ct.plot_reliability(curve, Figure(layout="constrained").subplots(), legend=False)
    assert ax.get_legend() is None


def test_bad_arguments(curve):
    with pytest.raises(ValueError, match="`style` must be one of 'deviation', 'classical', got 'pie'"):
        ct.plot_reliability(curve, style="pie")
    with pytest.raises(ValueError, match="`curve` must be a ReliabilityCurve"):
        ct.plot_reliability("curve")
