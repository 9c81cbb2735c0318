"""Colours that all can tell apart, legends that are no wider than their room, and texts that are broken to fit."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import caltest as ct
from caltest.plotting._axes import COLORS, FINDING, MOST_TOGETHER, TEXT, legend_below

# Matrices on linear RGB of complete protanopia and deuteranopia: Machado, Oliveira and Fernandes (2009), table 1.
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def lab(colors, sight):
    """CIE Lab of sRGB colours as they are seen."""
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(SIGHTS[sight]), 0, 1)
    f = np.cbrt(np.maximum(seen @ TO_XYZ.T / WHITE, 0.008856))
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


def closest(colors, sight):
    points = lab(colors, sight)
    return np.linalg.norm(points[:, None] - points, axis=2)[~np.eye(len(colors), dtype=bool)].min()


@pytest.mark.parametrize("sight", SIGHTS)
def test_models_in_one_panel_and_findings_can_be_told_apart(sight):
    """A distance of 2.3 is just noticeable; red and green of the same lightness fall short of 30."""
    assert closest([*COLORS[:MOST_TOGETHER], FINDING], sight) > 30
    if sight == "deuteranopia":
        assert closest(["#d0504f", "#8a8b3a"], sight) < 30


def test_a_legend_is_no_wider_than_the_figure():
    for width, columns in ((8.0, 2), (3.0, 1)):
        figure = Figure(figsize=(width, 3), layout="constrained")
        ax = figure.subplots()
        for label in ("a name that is rather long, " * 3, "short"):
            ax.plot([0, 1], [0, 1], label=label)
        legend_below(ax)
        figure.draw_without_rendering()
        box = ax.get_legend().get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert ax.get_legend()._ncols == columns


def test_all_texts_have_the_one_size_and_long_titles_are_broken():
    curve = ct.reliability_curve([0, 1, 1, 0] * 20, [0.2, 0.7, 0.9, 0.4] * 20)
    figure = Figure(figsize=(2.5, 3), layout="constrained")
    ax = curve.plot(figure.subplots())
    figure.draw_without_rendering()
    size = Figure().text(0, 0, "", fontsize=TEXT).get_fontsize()
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_legend().get_texts()]
    texts += [ax.child_axes[0].yaxis.label, *ax.child_axes[0].get_yticklabels()]
    assert {text.get_fontsize() for text in texts} == {size}
    assert ax.get_title().count("\n") == 1
