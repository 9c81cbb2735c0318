"""Reliability diagrams of several models, and the scales of their predictions."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import caltest as ct
from caltest.plotting import plot_reliability
from caltest.plotting._axes import COLORS
from caltest.plotting._heading import DIFFERENCE, QUESTION
from caltest.plotting._reliability import save_reliability


@pytest.fixture(scope="module")
def curves():
    y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
    flat = y_prob.astype(float) ** (1 / 1.8)
    models = {"net": y_prob, "scaled": flat / flat.sum(axis=1, keepdims=True)}
    return {name: ct.reliability_curve(y_true, prob) for name, prob in models.items()}


def new_axes():
    return Figure(layout="constrained").subplots()


@pytest.mark.parametrize("style", ["deviation", "classical"])
def test_several_models_share_the_axes(curves, style):
    ax = new_axes()
    assert plot_reliability(curves, ax, style=style, s=3) is ax
    for curve, color in zip(curves.values(), COLORS, strict=False):
        parts = [part for part in ax.collections if part.get_label() in {"_points", "_rejected"}]
        parts = [part for part in parts if to_hex(part.get_edgecolor()[0]) == color]
        drawn = np.concatenate([part.get_offsets() for part in parts])
        height = curve.deviation if style == "deviation" else curve.observed
        np.testing.assert_allclose(drawn[np.argsort(drawn[:, 0])], np.column_stack([curve.predicted, height]))
        assert {size for part in parts for size in part.get_sizes()} == {3}
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    for name, curve in curves.items():
        assert f"{name}\nECE {curve.error:.3g} (noise floor {curve.noise_floor:.2g})" in words
    (foot,) = ax.child_axes
    assert [patch.get_label() for patch in foot.patches] == ["net", "scaled"]
    assert [patch.get_data().values.sum() for patch in foot.patches] == pytest.approx([1, 1])
    assert ax.get_title() == (DIFFERENCE if style == "deviation" else QUESTION)
    assert ax.get_legend().get_title().get_text() == "confidence, 1,000 observations"


@pytest.mark.slow(few_draws=True)
def test_the_scale_is_chosen_from_the_predictions_and_named(curves):
    rng = np.random.default_rng(0)
    for case, p, label in (
        ("even", rng.random(300), "predicted probability"),
        ("sharp", 1 - rng.random(300) ** 9, "predicted probability (logit scale)"),
        ("rare", 0.01 * rng.random(300), "predicted probability (logit scale)"),
        ("one-hot", np.repeat([0.0, 1.0], 150), "predicted probability (logit scale)"),
        ("middle", rng.uniform(0.47, 0.5, 300), "predicted probability (scale of equal shares)"),
        ("constant", np.full(300, 0.44), "predicted probability"),
        ("one", np.array([0.2]), "predicted probability"),
    ):
        ax = plot_reliability(ct.reliability_curve(rng.random(len(p)) < p, p), new_axes())
        assert ax.get_xlabel() == label, case
        ax.figure.canvas.draw()
        low, high = ax.get_xlim()
        assert low <= p.min() + 0.001, case
        assert high >= p.max() - 0.001, case
        places = ax.transData.transform([(p.min(), 0), (p.max(), 0)])
        assert np.isfinite(places).all(), case
    assert plot_reliability(curves["net"], new_axes(), scale="linear").get_xlabel() == "predicted probability"


def test_sharp_predictions_stand_apart(curves):
    """On a linear axis a third of the points would cover less than a twentieth of it."""
    ax = plot_reliability(curves["net"], new_axes())
    share = ax.transData.transform(np.column_stack([curves["net"].predicted] * 2))[:, 0]
    share = (share - share.min()) / np.ptp(share)
    assert np.ptp(curves["net"].predicted[-4:]) < 0.05 * np.ptp(curves["net"].predicted)
    assert np.ptp(share[-4:]) > 0.3


def test_scales_invert_and_increase(curves):
    for scale in ("logit", "equal-mass"):
        axis = plot_reliability(curves["net"], new_axes(), scale=scale).xaxis
        transform = axis.get_transform()
        x = np.sort(
            np.concatenate([np.linspace(-0.1, 1.1, 50), 10.0 ** -np.arange(3, 6), 1 - 10.0 ** -np.arange(3, 6)])
        )
        there = transform.transform(x)
        assert (np.diff(there) > 0).all(), scale
        np.testing.assert_allclose(transform.inverted().transform(there), x, atol=1e-9, err_msg=scale)


def test_no_bar_of_a_full_cell_is_cut(curves):
    for scale in ("linear", "logit", "equal-mass"):
        ax = plot_reliability(curves, new_axes(), scale=scale, style="deviation")
        low, high = ax.get_ylim()
        for curve in curves.values():
            assert (curve.bar_upper - curve.expected).max() < high, scale
            assert (curve.bar_lower - curve.expected).min() > low, scale


def test_what_is_refused(curves):
    single = curves["net"]
    with pytest.raises(ValueError, match="`scale` must be one of 'linear', 'logit', 'equal-mass', got 'log'"):
        plot_reliability(single, scale="log")
    with pytest.raises(ValueError, match="`curve` must hold at least one ReliabilityCurve, got none"):
        plot_reliability({})
    with pytest.raises(TypeError, match=r"`curve\['net'\]` must be a ReliabilityCurve from reliability_curve"):
        plot_reliability({"net": 3})
    with pytest.raises(ValueError, match="`tests` must be the cell_tests"):
        plot_reliability(curves, tests={"other": single.cell_tests()})
    bare = plot_reliability(single, new_axes(), histogram=False, legend=False)
    assert (bare.child_axes, bare.get_legend()) == ([], None)


@pytest.mark.slow(few_draws=True)
def test_long_names_of_classes_do_not_run_into_the_other_diagram(tmp_path, monkeypatch):
    name = "squamous cell carcinoma of the lung"
    y_true = np.arange(20) % 2
    frame = np.column_stack([np.full(20, 0.5), np.full(20, 0.5)])
    lens = ct.predictions.ClassWise(1)
    curve = ct.reliability_curve(np.array(["a", name])[y_true], frame, lens=lens, classes=["a", name])
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    save_reliability(curve, tmp_path / "a.png")
    (figure,) = drawn
    figure.draw_without_rendering()
    left, right = (ax.title.get_window_extent() for ax in figure.axes[:2])
    assert left.x1 < right.x0
    assert right.x1 < figure.bbox.x1
