"""Triangles and tetrahedra show the numbers of their diagram, in words that can be read."""

import shutil
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.quiver import Quiver

import caltest as ct
from caltest.plotting._axes import FINDING
from caltest.plotting._simplex import PALE, TETRAHEDRON, TRIANGLE, lines
from tests.reference.examples import draw_labels


def made(n=2000, n_classes=3, temperature=0.7, **options):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(n_classes), n)
    truth = prob**temperature
    y = draw_labels(truth / truth.sum(axis=1, keepdims=True), rng)
    return ct.simplex_diagram(y, prob, rng=0, n_resamples=999, **options)


@pytest.fixture(scope="module")
def diagram():
    return made()


@pytest.fixture(scope="module")
def solid():
    return made(n_classes=4)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def new_axes(**options):
    return Figure(figsize=(6, 6), layout="constrained").subplots(**options)


def arrows(ax):
    return [found for found in ax.collections if isinstance(found, Quiver)]


def cells(ax):
    (found,) = [c for c in ax.collections if isinstance(c, PolyCollection) and c.get_label() == "_cells"]
    return found


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_arrows_are_those_of_the_diagram(diagram):
    ax = new_axes()
    assert ct.plotting.plot_simplex(diagram, ax) is ax
    assert 0 < diagram.rejected.sum() < diagram.n_cells
    pale, dark = arrows(ax)
    full = diagram.count >= 10
    for quiver, chosen in ((pale, full & ~diagram.rejected), (dark, full & diagram.rejected)):
        np.testing.assert_allclose(quiver.XY, diagram.predicted[chosen] @ TRIANGLE)
        np.testing.assert_allclose(
            quiver.XY + np.column_stack([quiver.U, quiver.V]), diagram.observed[chosen] @ TRIANGLE
        )
        assert (quiver.angles, quiver.scale_units, quiver.scale) == ("xy", "xy", 1)
    assert pale.width < dark.width
    points = [line for line in ax.get_lines() if line.get_marker() == "o"]
    few = diagram.predicted[~full] @ TRIANGLE
    np.testing.assert_allclose(np.concatenate([p.get_xydata() for p in points]), np.vstack([few, pale.XY, dark.XY]))
    assert set(map(mpl.colors.to_hex, dark.get_facecolor())) == {FINDING}
    opaque = dark.get_facecolor()[:, 3]
    assert (np.argsort(opaque) == np.argsort(diagram.count[full & diagram.rejected])).all(), (
        "more observations, more opaque"
    )


def test_cells_have_the_colours_of_their_shares(diagram):
    ax = new_axes()
    diagram.plot(ax)
    np.testing.assert_allclose(cells(ax).get_array(), diagram.share)
    for path, corners in zip(cells(ax).get_paths(), diagram.corners, strict=True):
        np.testing.assert_allclose(path.vertices[: len(corners)], corners @ TRIANGLE)
    (bar,) = ax.child_axes
    assert bar.get_title() == "share"
    assert bar.get_yticklabels()[-1].get_text() == f"{100 * diagram.share.max():.3g} %"


def test_the_legend_says_all_of_it(diagram):
    ax = diagram.plot(new_axes(), ellipses=0.9)
    n, rejected = diagram.n_cells, int(diagram.rejected.sum())
    assert words(ax) == [
        f"rejected (Holm, p ≤ 0.05) ({rejected} of {n} cells)",
        f"not rejected ({n - rejected} of {n} cells)",
        "average prediction of a cell (bin)",
        "90 % of the frequencies if calibrated",
    ]
    said = (
        "whole prediction, 2,000 observations arrow: from the average prediction to the frequencies, more opaque with "
    )
    said += "more observations"
    assert ax.get_legend().get_title().get_text().replace("\n", " ") == said
    assert ax.get_title() == f"Calibration is rejected in {rejected} of {n} cells (bins)."
    assert [text.get_text() for text in ax.texts] == ["class 0", "class 1", "class 2"]
    assert diagram.plot(new_axes(), legend=False).get_legend() is None


def test_empty_cells_are_white_and_few_predictions_can_be_read():
    diagram = made(10)
    ax = diagram.plot(new_axes())
    grid, drawn = [c for c in ax.collections if isinstance(c, PolyCollection) and not isinstance(c, Quiver)]
    assert len(grid.get_paths()) == 25
    assert grid.get_facecolor().tolist() == [[1, 1, 1, 1]]
    assert len(drawn.get_paths()) == diagram.n_cells < 25
    assert words(ax) == [
        f"fewer than 10 observations ({diagram.n_cells} of {diagram.n_cells} cells)",
        "average prediction of a cell (bin)",
        "no observations",
    ]


@pytest.mark.slow(few_draws=True)
def test_one_cell_tiny_arrows_and_single_predictions_are_drawn():
    for n in (1, 2, 500):
        prob = np.tile([0.5, 0.25, 0.25], (n, 1))
        for partition in (ct.SimplexGrid(5), ct.SimplexGrid(1), ct.VarianceTree(), lambda p: np.zeros(len(p), int)):
            diagram = ct.simplex_diagram(np.arange(n) % 2, prob, partition=partition, n_resamples=19, rng=0)
            ax = diagram.plot(new_axes(), ellipses=0.5)
            ax.figure.canvas.draw()
            assert sum(len(quiver.XY) for quiver in arrows(ax)) == (n == 500)
    exact = ct.simplex_diagram([0, 0, 1, 2], np.tile([0.5, 0.25, 0.25], (4, 1)))
    np.testing.assert_array_equal(exact.arrow, 0)
    exact.plot(new_axes()).figure.canvas.draw()


def test_tree_cells_are_polygons_and_sharp_shares_a_logarithmic_scale():
    diagram = made(partition=ct.VarianceTree())
    assert len(cells(diagram.plot(new_axes())).get_paths()) == diagram.n_cells
    network = ct.simplex_diagram(*ct.datasets.load_cifar10_vgg16(), lens=ct.TopK(2), rng=0, n_resamples=99)
    norm = cells(network.plot(new_axes())).norm
    assert isinstance(norm, mpl.colors.LogNorm)
    assert (norm.vmin, norm.vmax) == (network.share.min(), network.share.max())


def test_ellipses_hold_what_the_covariance_says(diagram):
    ax = diagram.plot(new_axes(), ellipses=0.9)
    drawn = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(drawn) == diagram.n_cells
    rng = np.random.default_rng(1)
    for ellipse, mean, covariance in zip(drawn, diagram.predicted, diagram.covariance, strict=True):
        points = rng.multivariate_normal(mean, covariance, 4000) @ TRIANGLE
        inside = ellipse.get_patch_transform().inverted().transform(points)
        share = (np.square(inside).sum(axis=1) <= 1).mean()
        assert abs(share - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 4000)


def test_ellipses_are_refused_where_they_are_not_known(diagram, solid):
    with pytest.raises(ValueError, match="`ellipses` must lie strictly between 0 and 1, got 90"):
        diagram.plot(ellipses=90)
    with pytest.raises(
        ValueError, match="`ellipses` needs three outcomes and independent observations, got 4 outcomes"
    ):
        solid.plot(ellipses=0.9)
    grouped = made(200, groups=np.arange(200) // 2)
    with pytest.raises(ValueError, match=r"`ellipses` needs .* got groups"):
        grouped.plot(ellipses=0.9)


@pytest.mark.slow(few_draws=True)
def test_long_names_do_not_overlap():
    names = [
        f"the {k} class with a name that is far longer than anybody would like to read" for k in ("1st", "2nd", "3rd")
    ]
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 50)
    diagram = ct.simplex_diagram([names[k] for k in draw_labels(prob, rng)], prob, classes=names)
    for size in ((6, 6), (4.5, 5), (12, 6)):
        ax = diagram.plot(plt.figure(figsize=size, layout="constrained").subplots())
        ax.figure.canvas.draw()
        texts = [*ax.texts, ax.title]
        boxes = [text.get_window_extent() for text in texts]
        for i, box in enumerate(boxes):
            for j in range(i):
                assert not box.overlaps(boxes[j]), (size, texts[i].get_text(), texts[j].get_text())
        legend = ax.get_legend().get_window_extent()
        assert [text.get_text() for text, box in zip(texts, boxes, strict=True) if box.overlaps(legend)] == [], size
        assert all(text.get_text().count("\n") <= 2 for text in ax.texts)
    assert lines("a" * 100, 10) == f"{'a' * 10}\n{'a' * 10}\n{'a' * 9}…"


def test_keywords_reach_the_arrows(diagram, solid):
    (pale, dark) = arrows(diagram.plot(new_axes(), width=0.02, color="red"))
    assert (pale.width, dark.width) == (0.02, 0.02)
    assert mpl.colors.to_hex(dark.get_facecolor()[0]) == "#ff0000"
    solid.plot(color="red")


@pytest.mark.slow(few_draws=True)
def test_four_classes_are_a_tetrahedron(solid):
    ax = new_axes(subplot_kw={"projection": "3d"})
    assert solid.plot(ax) is ax
    ax.figure.canvas.draw()
    points = next(c for c in ax.collections if c.get_label() == "_cells")
    np.testing.assert_allclose(np.column_stack(points._offsets3d), solid.predicted @ TETRAHEDRON)
    np.testing.assert_allclose(points.get_array(), solid.share)
    drawn = [c for c in ax.collections if c is not points]
    n = sum(len(c._segments3d) for c in drawn)
    assert n == 3 * solid.n_cells, "a shaft and two sides of a head for each"
    ends = np.vstack([np.array(c._segments3d)[: len(c._segments3d) // 3] for c in drawn]).reshape(-1, 2, 3)
    order = np.concatenate([np.flatnonzero(~solid.rejected), np.flatnonzero(solid.rejected)])
    np.testing.assert_allclose(ends[:, 1], (solid.predicted @ TETRAHEDRON)[order], atol=1e-12)
    np.testing.assert_allclose(ends[:, 0], (solid.observed @ TETRAHEDRON)[order], atol=1e-12)
    assert [text.get_text() for text in ax.texts][:4] == ["class 0", "class 1", "class 2", "class 3"]
    assert solid.plot().name == "3d"
    lengths = np.linalg.norm(TETRAHEDRON[:, None] - TETRAHEDRON, axis=2)
    np.testing.assert_allclose(lengths[~np.eye(4, dtype=bool)], 1)


def test_axes_must_fit(diagram, solid):
    with pytest.raises(ValueError, match='`ax` does not fit: four outcomes need axes with projection="3d"'):
        solid.plot(new_axes())
    with pytest.raises(ValueError, match='three outcomes need flat axes, got projection="3d"'):
        diagram.plot(new_axes(subplot_kw={"projection": "3d"}))


def test_interactive_pictures_show_counts_and_pvalues(diagram, solid):
    import plotly.graph_objects as go

    for result, place, axes in ((diagram, TRIANGLE, "xy"), (solid, TETRAHEDRON, "xyz")):
        figure = result.plot_interactive(width=400)
        assert isinstance(figure, go.Figure)
        assert figure.layout.width == 400
        traces = {trace.name: trace for trace in figure.data}
        points = traces["average prediction of a cell (bin)"]
        np.testing.assert_allclose(np.column_stack([points[axis] for axis in axes]), result.predicted @ place)
        assert len(points.text) == result.n_cells
        assert points.text[0].startswith(f"{result.count[0]} observation")
        assert f"{result.outcomes[1]}: predicted {result.predicted[0, 1]:.4f}" in points.text[0]
        assert "p-value " in points.text[0]
        assert "Holm-adjusted" in points.text[0]
        assert list(traces["outcomes"].text) == [f"<b>{name}</b>" for name in result.outcomes]
        heads = traces["rejected (Holm, p ≤ 0.05): head"]
        np.testing.assert_allclose(
            np.column_stack([heads[axis] for axis in axes]), (result.observed @ place)[result.rejected]
        )
        assert result.plot_interactive(figure=figure) is figure


def test_without_plotly_the_command_is_given(diagram, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match=r'needs plotly: pip install "caltest\[interactive\]" or pip install plotly'):
        diagram.plot_interactive()
    with pytest.raises(TypeError, match="`diagram` must be a SimplexDiagram"):
        ct.plotting.plot_simplex_interactive(3)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the file in")
def test_the_tetrahedron_opens_in_a_browser_without_errors(solid, tmp_path):
    """One file without a network: nothing on the console but the browser's advice, and every part is drawn."""
    path, picture = tmp_path / "diagram.html", tmp_path / "diagram.png"
    figure = ct.plotting.plot_simplex_interactive(solid)
    figure.write_html(path)
    assert "<script src=" not in path.read_text(encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", *SOFTWARE, "--enable-logging=stderr", "--v=0"]
    size = ["--window-size=900,800", "--virtual-time-budget=8000", f"--screenshot={picture}"]
    shown = subprocess.run([*command, *size, path.as_uri()], capture_output=True, text=True, timeout=300, check=True)
    said = [
        line for line in shown.stderr.splitlines() if "CONSOLE" in line and "Canvas2D: Multiple readback" not in line
    ]
    assert said == []
    drawn = mpl.image.imread(picture)[150:640, 100:700, :3]
    words = figure.layout.template.layout.font.color
    for part, colour in (("findings", FINDING), ("other arrows", PALE), ("names of corners", words)):
        assert (np.abs(drawn - mpl.colors.to_rgb(colour)).max(axis=-1) < 0.05).sum() > 60, part
    cells = (drawn[..., 2] > 0.8) & (drawn[..., 2] > drawn[..., 0] + 0.1)
    assert cells.sum() > 300
