"""The uncertainty diagram shows what was computed."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import caltest as ct
from caltest.plotting import plot_uncertainty_diagram
from caltest.plotting._axes import FINDING
from tests.reference.cases import check_refused


@pytest.fixture(scope="module")
def diagram():
    y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
    return ct.estimation.uncertainty_diagram(y_true, y_prob)


def new_axes():
    return Figure(layout="constrained").subplots()


def test_points_bars_and_gaps_are_those_of_the_result(diagram):
    ax = diagram.plot(new_axes(), scale="linear")
    kinds = [kind for kind in ax.collections if kind.get_label() in {"_points", "_rejected"}]
    points = np.concatenate([kind.get_offsets().data for kind in kinds])
    expected = np.column_stack([diagram.predicted, diagram.observed])
    np.testing.assert_allclose(points[np.lexsort(points.T[::-1])], expected)
    drawn = {
        label: [ends for kind in ax.collections if kind.get_label() == label for ends in kind.get_segments()]
        for label in ("_bars", "_gaps")
    }
    gaps = np.array(sorted(drawn["_gaps"], key=lambda ends: ends[0][0]))
    np.testing.assert_allclose(gaps[:, 1, 1] - gaps[:, 0, 1], diagram.gap)
    np.testing.assert_allclose(gaps[:, 0, 0], gaps[:, 0, 1])  # from the diagonal
    assert len(drawn["_bars"]) == diagram.n_cells
    rejected = [kind for kind in ax.collections if kind.get_label() == "_rejected"]
    assert sum(len(kind.get_offsets()) for kind in rejected) == diagram.cell_tests().rejected.sum() > 0
    assert {to_hex(color) for kind in rejected for color in kind.get_facecolor()} == {FINDING}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("normalised entropy", "error rate")
    assert ax.get_title().startswith("Calibration is rejected (p ")
    caption = " ".join(ax.get_legend().get_title().get_text().split())
    assert caption == "error of the top class, 1,000 observations; UCE 0.037 (noise floor 0.012)"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"gap (UCE)", "UCE 0", "90 % consistency bars"} <= set(texts)


@pytest.mark.slow(few_draws=True)
def test_several_models_share_the_axes_or_have_a_panel_each(diagram):
    ax = new_axes()
    assert plot_uncertainty_diagram({"a": diagram, "b": diagram}, ax) is ax
    texts = " ".join(text.get_text() for text in ax.get_legend().get_texts())
    assert "a\nUCE 0.037" in texts
    assert len(plot_uncertainty_diagram({str(k): diagram for k in range(5)}).ravel()) == 5


def test_what_is_refused(diagram):
    y_true, event = [0, 1, 1], [0.2, 0.7, 0.6]
    curve = ct.reliability_curve(y_true, event)
    told = "`diagram` must be an UncertaintyDiagram from uncertainty_diagram(...), got ReliabilityCurve."
    check_refused(plot_uncertainty_diagram, TypeError, told, curve)
    check_refused(plot_uncertainty_diagram, ValueError, "`tests` must be", diagram, tests=curve.cell_tests())
