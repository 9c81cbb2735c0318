"""Pictures show the numbers of results, draw into the axes of the caller, and leave no text clipped."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import caltest as ct
from caltest import simulation as sim
from caltest.plotting._axes import FAINT, FINDING, POINT
from caltest.plotting._comparison import save_comparison
from caltest.plotting._reliability import picture_formats, save_reliability


@pytest.fixture(scope="module")
def curve():
    return ct.reliability_curve(*ct.datasets.load_cifar10_vgg16())


@pytest.fixture(scope="module")
def comparison():
    y_true, y_prob = ct.datasets.load_digits_predictions()
    return ct.compare_models(y_true, y_prob, n_resamples=99, rng=0)


@pytest.fixture(scope="module")
def results(curve, comparison):
    """A result of every kind that has a picture, with the number of its panels."""
    y_true, y_prob = (part[:500] for part in ct.datasets.load_cifar10_vgg16())
    digits, models = ct.datasets.load_digits_predictions()
    epochs = [(y_true, y_prob ** (1 + 0.2 * t) / (y_prob ** (1 + 0.2 * t)).sum(axis=1)[:, None]) for t in range(5)]
    labels = np.arange(120) % 3
    bins = {n: ct.ECE(ct.EqualWidth(n)) for n in (5, 20)}
    quick = {"n_resamples": 19, "rng": 0}
    return [
        (curve, 1),
        (ct.calibration_band(y_true, y_prob, n_resamples=99, rng=0), 1),
        (ct.smooth_reliability_curve(y_true, y_prob, n_resamples=19, rng=0), 1),
        (comparison, 3),
        (ct.training_track(None, {"one": epochs, "two": epochs[:3]}, **quick), 4),
        (ct.isotonic_curve(y_true, y_prob, **quick), 1),
        (ct.rejection_curve(y_true, {"long name " * 9: y_prob, "other": y_prob}), 1),
        (ct.shift_curve(y_prob, y_prob[:100], **quick), 1),
        (ct.prediction_distribution(y_prob, classes=["long name " * 9, *range(9)]), 1),
        (ct.temperature_curve(y_true, {"long name " * 9: y_prob}, temperatures=[0.5, 1, 2], **quick), 3),
        (ct.cells_curve(y_true, {"long name " * 9: y_prob}, n_cells=[5, 15, 45], **quick), 3),
        (ct.cumulative_graphs(y_true, {"long name " * 9: y_prob}, n_resamples=99, rng=0), 4),
        (sim.bias_study(sim.GaussianMixture1D(1, 1), bins, [50, 200], 20, rng=0), 2),
        (
            sim.size_study([sim.DirichletModel(2), sim.DirichletModel(3, 0.1)], ct.KS(), [20, 40], 20, **quick),
            2,
        ),
        (sim.power_study({"t": family}, [0.8, 1.0, 1.25], [ct.ECE(), ct.KS()], [20, 40], 10, **quick), 4),
        (sim.approximation_study(sim.GaussianMixture1D(0, -1), None, [30, 60], 5, n_holdout=1000, rng=0), 2),
        (sim.metric_agreement(digits, models, **quick), 1),
        (
            sim.metric_agreement(
                digits, models, metrics=[ct.statistics.GCE(), ct.statistics.GCE("equal-mass")], **quick
            ),
            1,
        ),
        (ct.leaderboard(digits, models, by=("brier", "l2"), **quick), 2),
        (ct.hypothesis_tests.giviti_belt(y_true, y_prob), 1),
        (ct.clinical.clinical_calibration(y_true == 3, y_prob[:, 3], **quick), 1),
        (ct.simplex_diagram(y_true, y_prob, lens=ct.TopK(2), rng=0), 1),
        (ct.calibration_test(y_true, y_prob, **quick), 5),
        (ct.calibration_table(y_true, y_prob, statistic=ct.KS(), n_resamples=299, rng=0), 1),
        (ct.calibration_test(y_true, y_prob, statistic=ct.KS(), **quick), 1),
        (ct.CalibrationMonitor().update(y_true, y_prob).result(), 1),
        (ct.estimation.uncertainty_diagram(y_true, y_prob), 1),
        (sim.label_noise_study(counted, labels, labels, shares=[0, 0.5], **quick), 3),
    ]


def family(t):
    return sim.DirichletModel(2, 1.0, sim.Temperature(t))


def counted(labels):
    return np.tile(np.bincount(labels, minlength=3) / len(labels), (120, 1))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn_points(ax):
    return np.concatenate(
        [found.get_offsets() for found in ax.collections if found.get_label() in {"_points", "_rejected"}]
    )


def new_axes():
    return Figure(layout="constrained").subplots()


# All pictures.


def test_every_picture_is_tried(results):
    pictures = {type(result).plot.name for result, _ in results}
    elsewhere = {"plot_simplex_interactive", "ReliabilityDisplay"}  # test_simplex, test_display
    elsewhere |= {"plot_recalibration", "plot_before_after", "plot_parts"}  # test_recalibration, test_parts
    elsewhere |= {"plot_residual_correlation"}  # test_over_time
    elsewhere |= {"plot_cell_edges"}  # below
    elsewhere |= {"plot_sites"}  # test_clinical
    assert pictures == set(ct.plotting.__all__) - elsewhere


@pytest.mark.slow(few_draws=True)
def test_cell_edges_are_drawn_by_epoch():
    prob = np.linspace(0.01, 0.99, 40)
    epochs = [prob, 1 / (1 + ((1 - prob) / prob) ** 2)]
    options = {"statistics": ["ACE(4)", "ECE", "TACE(2, 0.5)"], "n_resamples": 9, "rng": 0}
    track = ct.training_track(prob > 0.5, {"one": epochs, "two": epochs[:1]}, **options)
    axes = ct.plotting.plot_cell_edges(track)
    names = ["ACE(n_cells=4), one", "ACE(n_cells=4), two"]
    assert [ax.get_title() for ax in axes] == names + [f"TACE(n_cells=2, threshold=0.5), {run}" for run in track.runs]
    assert [len(ax.lines) for ax in axes] == [4, 4, 2, 2]
    for cell, line in enumerate(axes[0].lines):
        mean = [(np.sort(p)[10 * cell] + np.sort(1 - p)[10 * cell]) / 2 for p in epochs]
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([[1, 2], mean]))
    assert len(np.ravel(track.plot())) == 8
    with pytest.raises(ValueError, match="`axes` must hold 4 axes, one for each panel, got 1"):
        ct.plotting.plot_cell_edges(track, axes[:1])
    with pytest.raises(TypeError, match=r"must be a TrainingTrack from training_track"):
        ct.plotting.plot_cell_edges(3)
    none = ct.training_track(prob > 0.5, epochs, n_resamples=9, rng=0)
    with pytest.raises(ValueError, match="`track` has no adaptive cells"):
        ct.plotting.plot_cell_edges(none)


@pytest.mark.parametrize("which", [slice(4), pytest.param(slice(4, None), marks=pytest.mark.slow)])
def test_pictures_draw_into_new_axes_and_return_them(results, which):
    for result, n_panels in results[which]:
        plt.close("all")
        axes = np.ravel(result.plot())
        assert len(axes) == n_panels, result
        for ax in axes:
            assert ax.has_data(), result
            assert ax.figure is axes[0].figure
            assert ax.get_xlabel() or type(result).plot.name in {
                "plot_training",
                "plot_metric_agreement",
                "plot_simplex",
            }
        assert axes[0].figure.number in plt.get_fignums()


@pytest.mark.slow(few_draws=True)
def test_pictures_draw_into_the_axes_of_the_caller_and_touch_nothing_else(results):
    before = mpl.rcParams.copy()
    for result, n_panels in results:
        grid = Figure(figsize=(4 * n_panels, 5), layout="constrained").subplots(1, n_panels)
        found = result.plot(grid)
        assert all(drawn is given for drawn, given in zip(np.ravel(found), np.ravel(grid), strict=True)), result
        assert all(ax.has_data() for ax in np.ravel(grid)), result
        if n_panels > 1:
            with pytest.raises(ValueError, match=rf"`axes` must hold {n_panels} axes, one for each panel, got 1"):
                result.plot(grid[0])
    assert plt.get_fignums() == []
    assert mpl.rcParams == before


def test_pictures_refuse_other_results(results):
    for result, _ in results:
        with pytest.raises(TypeError, match=r"must be an? \w+ from [\w.]+\(...\), got int"):
            getattr(ct.plotting, type(result).plot.name)(3)


@pytest.fixture(scope="module", params=["main", pytest.param("others", marks=pytest.mark.slow)])
def drawn(request, results):
    """New figures drawn once, with the results and options: the main pictures, or every other result and style."""
    styles = [(result, {"style": style}) for result, _ in results[:3] for style in ("classical", "deviation")]
    starred = [(curve, {**style, "tests": curve.cell_tests()}) for curve, style in styles[:2]]
    every = [*starred, *styles, *((result, {}) for result, _ in results[3:])]
    main = [*starred, (results[3][0], {})]
    figures = []
    for result, options in main if request.param == "main" else [case for case in every if case not in main]:
        axes = np.ravel(result.plot(**options))
        axes[0].figure.canvas.draw()
        plt.close(axes[0].figure)
        figures.append((axes, (type(result).__name__, options)))
    return figures


@pytest.mark.slow(few_draws=True)
def test_no_text_of_a_new_figure_is_clipped(drawn):
    for axes, case in drawn:
        figure = axes[0].figure
        box = figure.bbox
        texts = [text for text in figure.findobj(mpl.text.Text) if text.get_visible() and text.get_text().strip()]
        assert len(texts) > 5, case
        every = [each for ax in figure.axes for each in (ax, *ax.child_axes)]
        hidden = {id(label) for ax in every for label in hidden_labels(ax)}
        for text in texts:
            if id(text) in hidden:
                continue
            inside, where = text.get_window_extent(), (*case, text.get_text())
            assert inside.x0 >= box.x0 - 2, where
            assert inside.x1 <= box.x1 + 2, where
            assert inside.y0 >= box.y0 - 2, where
            assert inside.y1 <= box.y1 + 2, where
            assert text.get_fontsize() >= 8, where


def hidden_labels(ax):
    """Labels of ticks outside the limits, which matplotlib keeps but does not draw."""
    for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


@pytest.mark.slow(few_draws=True)
def test_titles_of_panels_do_not_overlap(drawn):
    for axes, case in drawn:
        boxes = [ax.title.get_window_extent() for ax in axes if ax.get_title()]
        for i, one in enumerate(boxes):
            assert not any(one.overlaps(other) for other in boxes[:i]), case


# The reliability diagram.


def test_plotted_data_equal_the_curve(curve):
    event = ct.datasets.load_cifar10_vgg16()[1].max(axis=1).astype(float)
    for style in ("deviation", "classical"):
        ax = new_axes()
        assert ct.plotting.plot_reliability(curve, ax, style=style) is ax
        height = curve.deviation if style == "deviation" else curve.observed
        points = drawn_points(ax)
        expected = np.column_stack([curve.predicted, height])
        np.testing.assert_allclose(points[np.argsort(points[:, 0])], expected, err_msg=style)
        base = curve.expected if style == "deviation" else 0
        bars = [segment for found in ax.collections if found.get_label() == "_bars" for segment in found.get_segments()]
        ends = np.array([segment[:, 1] for segment in sorted(bars, key=lambda segment: segment[0, 0])])
        np.testing.assert_allclose(
            ends, np.column_stack([curve.bar_lower - base, curve.bar_upper - base]), err_msg=style
        )
        (foot,) = ax.child_axes
        bars = [bar for bar in foot.patches if bar.get_height()]
        np.testing.assert_allclose(sum(bar.get_height() for bar in bars), 1, err_msg=style)
        for bar in bars:  # the number of predictions in the bin
            inside = (event >= bar.get_x()) & (event < bar.get_x() + bar.get_width())
            assert bar.get_height() == pytest.approx(inside.mean(), abs=2e-4), style


def test_labels_and_shape(curve):
    ax = curve.plot(new_axes(), style="deviation")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted probability (logit scale)", "observed - predicted")
    number = curve.cell_tests().rejected.sum()
    assert ax.get_title() == f"Calibration is rejected in {number} of {curve.n_cells} cells (bins)."
    caption = ax.get_legend().get_title().get_text().replace("\n", " ")
    assert caption == "confidence, 10,000 observations; ECE 0.0397 (noise floor 0.0037)"
    square = curve.plot(new_axes())
    assert square.get_ylabel().replace("\n", " ") == "observed frequency (logit scale)"
    assert square.get_box_aspect() == 1
    words = [text.get_text() for text in square.get_legend().get_texts()]
    assert words == ["90 % consistency bars", "observed (area: count)", "rejected (Holm, p ≤ 0.05)", "calibrated"]
    assert curve.plot(new_axes(), legend=False).get_legend() is None


def test_rejected_cells_are_orange_and_areas_count(curve):
    strict = curve.cell_tests(alpha=1e-9)
    assert 0 < strict.rejected.sum() < curve.cell_tests().rejected.sum()
    for style, tests in (("deviation", None), ("classical", None), ("classical", strict)):
        ax = curve.plot(new_axes(), style=style, tests=tests)
        (found,) = [one for one in ax.collections if one.get_label() == "_rejected"]
        chosen = (curve.cell_tests() if tests is None else tests).rejected
        np.testing.assert_allclose(found.get_offsets()[:, 0], curve.predicted[chosen], err_msg=style)
        assert {mpl.colors.to_hex(colour) for colour in found.get_facecolor()} == {FINDING}
        area = found.get_sizes()
        np.testing.assert_allclose(
            np.diff(area) / np.ptp(area), np.diff(curve.count[chosen]) / np.ptp(curve.count[chosen])
        )
    other = ct.reliability_curve([0, 1], [0.5, 0.5]).cell_tests()
    with pytest.raises(ValueError, match=r"`tests` must be the cell_tests\(...\) of this curve"):
        curve.plot(tests=other)
    with pytest.raises(TypeError, match=r"`tests` must be the cell_tests\(...\) of this curve, got str"):
        curve.plot(tests="holm")


def test_one_cell_and_everything_inside():
    for bars in ("consistency", "confidence"):
        single = ct.reliability_curve([0, 1], [0.5, 0.5], bars=bars)
        assert len(drawn_points(single.plot(new_axes()))) == 1, bars


def test_sparse_cells_do_not_set_the_scale():
    """One observation in 400 is 0.7 off; it is an arrow head at the edge, and the other points keep their scale."""
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0.6, 1, 400), 0.3)
    y = np.append(rng.random(400) < p[:-1], True)
    sparse = ct.reliability_curve(y, p, partition=ct.EqualWidth(5))
    ax = sparse.plot(new_axes(), style="deviation")
    assert ax.get_ylim()[1] < 0.5
    (arrow,) = [line for line in ax.get_lines() if line.get_marker() == "^" and line.get_color() == POINT]
    (pale,) = [found for found in ax.collections if found.get_label() == "_bars" and found.get_alpha() == FAINT]
    assert len(pale.get_segments()) == (sparse.count < 10).sum()
    assert arrow.get_xdata() == pytest.approx([0.3])
    assert arrow.get_ydata()[0] < ax.get_ylim()[1]


@pytest.mark.slow(few_draws=True)
def test_unknown_styles_are_refused(results):
    for result, _ in results[:3]:
        with pytest.raises(ValueError, match=r"`style` must be one of '\w+', '\w+', got 'pie'"):
            result.plot(style="pie")
        square = result.plot(new_axes(), style="classical", legend=False)
        assert (square.get_box_aspect(), square.get_legend()) == (1, None)
        assert result.plot(new_axes(), style="deviation").get_box_aspect() is None


# Studies of bias; those of size and power are tested with the studies.


@pytest.mark.slow(few_draws=True)
def test_the_picture_of_a_bias_study_shows_the_study(results):
    study = next(result for result, _ in results if isinstance(result, sim.BiasStudy))
    axes = study.plot()
    assert [ax.get_title() for ax in axes] == ["5", "20"]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["50", "200"]
    line = axes[0].collections[0].get_segments()[0]
    assert line[0][1] == pytest.approx(0.5637511406)
    title = axes[0].figure.get_suptitle().replace("\n", " ")
    assert title == f"{sim.GaussianMixture1D(1, 1)} through Canonical() (line: true value)"
    assert [ax.get_title() for ax in study.plot(by="n_cells")] == ["50 observations", "200 observations"]
    for wrong in ({"model": "other"}, {"lens": "other"}, {"by": "other"}):
        (name,) = wrong
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            study.plot(**wrong)


@pytest.mark.slow(few_draws=True)
def test_bias_without_truth_or_cells_and_many_panels():
    statistics = {f"number {k}": ct.KS() for k in range(7)}
    study = sim.bias_study(sim.GaussianMixture1D(1, 1), statistics, [20], 3, rng=0)
    axes = study.plot()
    assert len(axes) == len(axes[0].figure.axes) == 7, "no empty panels"
    assert "true value" not in axes[0].figure.get_suptitle()
    assert [ax.get_ylabel() for ax in axes] == ["estimate", "", "", "", "", "estimate", ""]
    with pytest.raises(ValueError, match='`by` must be "n_samples": a statistic of the study has no number of cells'):
        study.plot(by="n_cells")


# Files.


def test_points_are_filled_where_the_conclusion_rejects(comparison):
    """1 - 0.9 is less than 0.1, so that a p-value of 0.1 was rejected in words and not in the picture."""
    models = [replace(model, pvalue_adjusted=0.1, tests=(replace(model.test, alpha=0.1),)) for model in comparison]
    tied = replace(comparison, models=tuple(models), alpha=0.1)
    assert all(model.rejected for model in tied.models)
    plain, size, _ = ct.plotting.plot_comparison(tied)
    for ax in (plain, size):
        filled = [line for line in ax.lines if line.get_marker() == "o" and line.get_markerfacecolor() == FINDING]
        assert sum(len(line.get_xdata()) for line in filled) == 4
    plt.close("all")


@pytest.mark.slow(few_draws=True)
def test_pictures_are_written(curve, comparison, tmp_path):
    assert {"png", "svg", "pdf"} <= picture_formats()
    for save, result, suffix in ((save_reliability, curve, "png"), (save_comparison, comparison, "svg")):
        path = tmp_path / f"{save.__name__}.{suffix}"
        save(result, path)
        assert path.stat().st_size > 10_000, path
