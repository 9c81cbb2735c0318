"""The picture of cumulative graphs shows their numbers."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import caltest as ct


@pytest.fixture(scope="module")
def graphs():
    y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
    flat = y_prob**0.5 / (y_prob**0.5).sum(axis=1, keepdims=True)
    return ct.cumulative_graphs(y_true, {"before": y_prob, "after": flat}, n_resamples=99, rng=0)


def line(ax, label):
    (found,) = [one for one in ax.get_lines() if one.get_label().startswith(label)]
    return found.get_xydata()


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("style", ["deviation", "classical"])
def test_plotted_data_equal_the_graphs(graphs, style):
    axes = graphs.plot(Figure(layout="constrained").subplots(2, 4), style=style)
    for row, model in zip(axes, graphs, strict=True):
        predicted = model.predicted if style == "deviation" else 0
        score = model.score if style == "deviation" else 0
        for ax, x in zip(row[:2], (model.fractile, model.predicted), strict=True):
            np.testing.assert_allclose(line(ax, "observed"), np.column_stack([x, model.observed - predicted]))
            (band,) = ax.collections
            corners = {tuple(x) for path in band.get_paths() for x in path.vertices.round(12)}
            high = np.minimum(model.upper, model.fractile)
            assert {tuple(x) for x in np.column_stack([x, high - predicted]).round(12)} <= corners
            dot = next(one for one in ax.get_lines() if one.get_marker() == "o")
            assert dot.get_xdata()[0] == x[model.worst]
        for ax, x in zip(row[2:], (model.grid, model.score), strict=True):
            np.testing.assert_allclose(line(ax, "frequency"), np.column_stack([x, model.frequency - score]))
    if style == "deviation":  # the KS error of the package is the height of the dot
        dot = next(one for one in axes[0][0].get_lines() if one.get_marker() == "o")
        y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
        ks = ct.calibration_error(y_true, y_prob, statistic=ct.KS())
        assert abs(dot.get_ydata()[0]) == pytest.approx(ks, rel=1e-9)


def test_labels(graphs):
    axes = graphs.plot(Figure(layout="constrained").subplots(2, 4), style="classical")
    assert [ax.get_xlabel().replace("\n", " ") for ax in axes[0]] == [
        *("share of observations", "cumulative prediction", "share of observations", "predicted probability"),
    ]
    assert [ax.get_ylabel().replace("\n", " ") for ax in axes[1]] == [
        *("cumulative share of events", "", "frequency of the event", ""),
    ]
    assert [text.get_text() for ax in axes[1] for text in ax.texts] == ["(a)", "(b)", "(c)", "(d)"]
    assert axes[0][0].get_title("left") == "before\nCalibration is rejected (p = 0.01). KS error 0.0389"
    assert graphs.plot(Figure().subplots(2, 4), legend=False)[0][0].get_legend() is None


def test_a_path_of_few_expected_events_decides_nothing():
    prob = np.linspace(0.01, 0.02, 50)
    found = ct.cumulative_graphs(np.arange(50) < 1, prob, n_resamples=39, rng=0)
    axes = found.plot(Figure(layout="constrained").subplots(1, 4))
    assert axes[0].get_title("left").startswith("Calibration is undecidable (p = ")


def test_one_model_and_options(graphs):
    axes = graphs["after"].plot(Figure().subplots(1, 4), linewidth=3)
    assert axes.shape == (4,)
    assert {
        one.get_linewidth() for ax in axes for one in ax.get_lines() if one.get_label()[:4] in ("obse", "freq")
    } == {3}


def test_refusals(graphs):
    with pytest.raises(ValueError, match="`axes` must hold 8 axes, one for each panel, got 4"):
        graphs.plot(Figure().subplots(1, 4))
    with pytest.raises(ValueError, match="`style` must be one of"):
        graphs.plot(style="round")
    with pytest.raises(TypeError, match=r"`graphs` must be a CumulativeGraphs from cumulative_graphs\(...\), got int"):
        ct.plotting.plot_cumulative_graphs(3)
