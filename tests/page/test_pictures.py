"""The pictures of the page."""

import pytest
from matplotlib.figure import Figure

import caltest as ct
from caltest.page._pictures import deviations, diagram, forest
from caltest.page._places import Place
from tests.reference.cases import mostly_slow


@pytest.mark.parametrize("draw", mostly_slow([diagram, deviations]))
def test_what_is_below_the_axes_is_inside_the_picture(monkeypatch, draw):
    curve = ct.reliability_curve([0, 1] * 20, [0.25, 0.75] * 20)
    drawn, save = [], Figure.savefig

    def keep(figure, *args, **options):
        figure.set_dpi(72)  # that of SVG
        save(figure, *args, **options)
        drawn.extend(ax.get_legend().get_window_extent().y0 for ax in figure.axes if ax.get_legend())
        drawn.extend(ax.xaxis.label.get_window_extent().y0 for ax in figure.axes)

    monkeypatch.setattr(Figure, "savefig", keep)
    draw({"cat": curve}) if draw is deviations else draw({"cat": curve}, "")
    assert min(drawn) >= 0


def test_a_forest_is_told_in_words():
    places = [
        Place("site=$north$", 200, 0.1, 0.24, 0.18, 0.31, is_wrong=True),
        Place("few", 3, 0.1, 0.0, float("nan"), float("nan")),
    ]
    picture = forest(places, ("predicted", "observed"), "")
    assert (
        "site=$north$: 10.0 % predicted, 24.0 % observed; few: 10.0 % predicted, 0 % observed." in picture.alternative
    )
