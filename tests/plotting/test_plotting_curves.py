"""Pictures of rejection, temperature, cells, shift and isotonic curves show their numbers."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import caltest as ct
from tests.reference.cases import mostly_slow


@pytest.fixture(scope="module")
def problem():
    y_true, y_prob = (part[:600] for part in ct.datasets.load_cifar10_vgg16())
    flat = y_prob**0.4 / (y_prob**0.4).sum(axis=1, keepdims=True)
    return y_true, {"net": y_prob, "flat": flat}


def new_axes(n=1):
    return Figure(layout="constrained").subplots(1, n)


def lines(ax, *words):
    return [line for line in ax.get_lines() if str(line.get_label()).startswith(words)]


def corners(band):
    return {tuple(x) for path in band.get_paths() for x in path.vertices.round(9)}


def legend_words(legend):
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("against", ["rejected", "threshold"])
def test_rejection(problem, against):
    curve = ct.rejection_curve(*problem)
    ax = new_axes()
    assert curve.plot(ax, against=against, linewidth=3) is ax
    x = getattr(curve, against)
    for (model, measure), line, band in zip(curve.curves, lines(ax, "net", "flat"), ax.collections, strict=False):
        rows = curve.entries(model, measure)
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([x[rows], curve.error[rows]]))
        assert line.get_linewidth() == 3
        assert {tuple(p) for p in np.column_stack([x[rows], curve.error_lower[rows]]).round(9)} <= corners(band)
    predicted = [line for line in ax.get_lines() if line.get_linestyle() == ":" and len(line.get_xdata())]
    np.testing.assert_allclose(predicted[0].get_ydata(), curve.predicted_error[curve.entries("net", "entropy")])
    assert ax.get_ylabel().replace("\n", " ") == "error rate of what is kept"
    assert ax.child_axes[0].get_ylabel() == "accuracy of what is kept"
    assert legend_words(ax.get_legend()) == [
        *("net, normalised entropy", "net, 1 - confidence", "flat, normalised entropy", "flat, 1 - confidence"),
        *("error rate predicted", "95 % interval, pointwise"),
    ]
    with pytest.raises(ValueError, match="`against` must be one of 'rejected', 'threshold', got 'time'"):
        curve.plot(against="time")


def test_temperature(problem):
    curve = ct.temperature_curve(*problem, temperatures=[0.5, 1, 2, 4], n_resamples=19, rng=0)
    axes = new_axes(3)
    assert all(np.equal(curve.plot(axes, linewidth=3), axes))
    for s, ax in enumerate(axes[:2]):
        assert ax.get_ylabel().replace("\n", " ") == curve.quantities[s]
        for m, line in enumerate(lines(ax, "net", "flat")):
            np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.temperature, curve.value[s, m]]))
            assert line.get_linewidth() == 3
            top = np.column_stack([curve.temperature, curve.floor_upper[s, m]]).round(9)
            assert {tuple(p) for p in top} <= corners(ax.collections[m])
        dashed = [one for one in ax.get_lines() if one.is_dashed() and len(one.get_xdata()) == 4]
        np.testing.assert_allclose([one.get_ydata() for one in dashed], curve.floor[s])
        stars = [one.get_xdata()[0] for one in ax.get_lines() if one.get_marker() == "*" and len(one.get_xdata())]
        assert stars == curve.temperature[curve.best[s]].tolist()
    assert curve.quantities == ("average error of the confidence", "average error of the uncertainty")
    assert axes[2].get_ylabel().replace("\n", " ") == "negative log-likelihood"
    np.testing.assert_allclose([one.get_ydata() for one in lines(axes[2], "net", "flat")], curve.log_score)
    assert legend_words(axes[0].figure.legends[0]) == [
        *("net", "flat", "noise floor", "95 % of calibrated models", "smallest value"),
    ]


def test_scores_beside_errors(problem):
    """The log score has one panel, with its floor, if it is asked for."""
    statistics = ["brier", ct.statistics.ConfidenceECE(), "log"]
    curve = ct.temperature_curve(*problem, statistics=statistics, temperatures=[0.5, 1, 2], n_resamples=19, rng=0)
    axes = curve.plot(new_axes(3))
    words = [ax.get_ylabel().replace("\n", " ") for ax in axes]
    assert words == ["Brier score", "average error of the confidence", "log score"]
    for s, ax in enumerate(axes):
        np.testing.assert_allclose([one.get_ydata() for one in lines(ax, "net", "flat")], curve.value[s])
        dashed = [one for one in ax.get_lines() if one.is_dashed() and len(one.get_xdata()) == 3]
        np.testing.assert_allclose([one.get_ydata() for one in dashed], curve.floor[s])


def test_an_infinite_log_score_is_said(problem):
    axes = ct.temperature_curve([1, 0], [0.0, 0.5], n_resamples=9, rng=0).plot(new_axes(3))
    assert [text.get_text() for text in axes[2].texts] == ["infinite: a label had probability 0"]


def test_cells(problem):
    curve = ct.cells_curve(*problem, n_cells=[5, 15, 45], n_resamples=19, rng=0)
    axes = curve.plot(new_axes(3))
    for s, ax in enumerate(axes):
        assert ax.get_xlabel().replace("\n", " ") == "number of cells (bins)"
        assert ax.get_ylabel().replace("\n", " ") == curve.quantities[s]
        np.testing.assert_allclose([one.get_ydata() for one in lines(ax, "net", "flat")], curve.value[s])
        np.testing.assert_allclose(lines(ax, "net")[0].get_xdata(), curve.n_cells)
    with pytest.raises(ValueError, match="`axes` must hold 3 axes, one for each panel, got 2"):
        curve.plot(new_axes(2))


def test_shift(problem):
    _, models = problem
    curve = ct.shift_curve(models["net"], models["flat"], n_resamples=99, rng=0)
    ax = curve.plot(new_axes())
    for measure, line, band in zip(
        ("entropy", "confidence"), lines(ax, "normalised entropy", "1 - confidence"), ax.collections, strict=False
    ):
        rows = curve.entries("", measure)
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.share[rows], curve.mean[rows]]))
        assert {tuple(p) for p in np.column_stack([curve.share[rows], curve.upper[rows]]).round(9)} <= corners(band)
    assert (ax.get_xlabel(), ax.get_ylabel().replace("\n", " ")) == (
        "share of foreign data",
        "mean uncertainty of a batch",
    )
    assert ax.get_title() == "Does foreign data make the predictions less certain?"
    assert ax.get_legend().get_title().get_text() == "600 predictions at home, 600 foreign"
    assert "90 % of batches of 100" in legend_words(ax.get_legend())


@pytest.mark.parametrize("style", mostly_slow(["classical", "deviation"]))
@pytest.mark.parametrize("band", ["consistency", "confidence"])
def test_isotonic(problem, style, band):
    y_true, models = problem
    curve = ct.isotonic_curve(y_true, models["net"], band=band, n_resamples=19, rng=0)
    ax = new_axes()
    assert curve.plot(ax, style=style) is ax
    base = curve.score if style == "deviation" else 0
    (line,) = lines(ax, "isotonic fit")
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.score, curve.recalibrated - base]))
    for end in (curve.lower, curve.upper):
        assert {tuple(p) for p in np.column_stack([curve.score, end - base]).round(9)} <= corners(ax.collections[0])
    assert ax.get_title().replace("\n", " ").startswith("Calibration is ")
    said = ax.get_legend().get_title().get_text().replace("\n", " ")
    assert f"; Brier: MCB {curve.brier.miscalibration:.2g}, DSC" in said
    (foot,) = ax.child_axes
    assert sum(bar.get_height() for bar in foot.patches) == pytest.approx(1)
    kind = {"consistency": "at each prediction", "confidence": "everywhere at once"}[band]
    assert f"90 % {band} band, {kind}" in legend_words(ax.get_legend())
    thick = lines(ax, "outside the band")
    assert bool(thick) == bool(curve.outside.any())
    if thick:
        assert np.array_equal(np.isfinite(thick[0].get_ydata()), curve.outside)


def test_without_a_legend(problem):
    y_true, models = problem
    curves = [
        *(ct.rejection_curve(*problem), ct.isotonic_curve(y_true, models["net"], n_resamples=9)),
        ct.shift_curve(models["net"], models["flat"], n_resamples=9),
    ]
    assert [curve.plot(new_axes(), legend=False).get_legend() for curve in curves] == [None] * 3


def test_several_isotonic_curves_share_the_axes(problem):
    y_true, models = problem
    curves = {name: ct.isotonic_curve(y_true, prob, n_resamples=19, rng=0) for name, prob in models.items()}
    for style in ("classical", "deviation"):
        ax = new_axes()
        assert ct.plotting.plot_isotonic_curve(curves, ax, style=style, scale="logit", linewidth=2) is ax
        words = legend_words(ax.get_legend())
        for (name, curve), band in zip(curves.items(), ax.collections, strict=False):
            base = curve.score if style == "deviation" else 0
            (line,) = lines(ax, name)
            np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.score, curve.recalibrated - base]))
            assert line.get_linewidth() == 2
            assert {tuple(x) for x in np.column_stack([curve.score, curve.lower - base]).round(9)} <= corners(band)
            size = f"MCB {curve.brier.miscalibration:.2g} (noise floor {curve.noise_floor:.2g})"
            assert any(word.startswith(f"{name}\n{size}") for word in words)
        assert ax.get_xlabel() == "predicted probability (logit scale)"
        assert [patch.get_label() for patch in ax.child_axes[0].patches] == ["net", "flat"]
    assert ct.plotting.plot_isotonic_curve(curves, new_axes(), scale="linear").get_xlabel() == "predicted probability"
