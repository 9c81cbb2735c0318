"""The pictures of the page."""

from matplotlib.figure import Figure

import caltest as ct
from caltest.page._page import diagrams


def test_labels_below_several_panels_are_inside_the_picture(monkeypatch):
    curve = ct.reliability_curve([0, 1] * 20, [0.25, 0.75] * 20)
    drawn, save = [], Figure.savefig

    def keep(figure, *args, **options):
        figure.set_dpi(72)  # that of SVG
        save(figure, *args, **options)
        drawn.append([ax.xaxis.label.get_window_extent().y0 for ax in figure.axes])

    monkeypatch.setattr(Figure, "savefig", keep)
    diagrams(dict.fromkeys("abc", curve), "")
    (lowest,) = map(min, drawn)
    assert lowest >= 0
