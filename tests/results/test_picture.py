"""The method `plot`: only where there is a picture, and drawn by a room that is loaded when it is called."""

import subprocess
import sys

import pytest

from caltest.results._picture import Picture


class _Plain:
    """A result without a picture."""


class _Drawn:
    """A result with a picture."""

    plot = Picture("plot_it")


class _DrawnWithoutFolds:
    """A result of which there is a picture, but not of all folds."""

    plot = Picture("plot_it", known=lambda result: not result.folds)

    def __init__(self, folds):
        self.folds = folds


def test_plot_passes_result_axes_and_options_on(monkeypatch):
    calls = []
    monkeypatch.setattr(
        Picture, "find", lambda name: lambda result, ax, **options: calls.append((name, result, ax, options))
    )
    result = _Drawn()
    result.plot()
    result.plot("axes", style="deviation")
    result.plot(ax="axes")
    assert calls == [
        ("plot_it", result, None, {}),
        ("plot_it", result, "axes", {"style": "deviation"}),
        ("plot_it", result, "axes", {}),
    ]


def test_a_result_without_a_picture_has_no_plot():
    assert hasattr(_Drawn(), "plot")
    assert not hasattr(_Plain(), "plot")
    assert hasattr(_DrawnWithoutFolds(()), "plot")
    assert not hasattr(_DrawnWithoutFolds((1, 2)), "plot")
    with pytest.raises(AttributeError, match="there is no picture of this _DrawnWithoutFolds"):
        _ = _DrawnWithoutFolds((1, 2)).plot


@pytest.mark.slow(few_draws=True)
def test_pictures_are_not_loaded_before_one_is_drawn():
    code = (
        "import sys, caltest\n"
        "curve = caltest.reliability_curve([0, 1, 1, 0], [0.1, 0.8, 0.7, 0.3])\n"
        "assert hasattr(curve, 'plot')\n"
        "assert not {'caltest.plotting', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
