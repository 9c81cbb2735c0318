"""The main pictures look as they did: compared with small stored images, pinned to a minor version of matplotlib.

``python tests/plotting/test_plotting_images.py`` writes the stored images again; look at every one before committing.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles

import caltest as ct
from tests.reference.cases import mostly_slow

BASELINES = Path(__file__).parent / "baselines"
VERSION = "3.11"
TOLERANCE = 3  # root mean squared difference of 256 levels; without its points or its bars a picture differs by 7
DPI = 45

if not mpl.__version__.startswith(f"{VERSION}."):
    pytest.skip(f"images are of matplotlib {VERSION}, this is {mpl.__version__}", allow_module_level=True)


def data():
    y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
    flat = y_prob.astype(float) ** (1 / 1.8)
    return y_true, {"VGG-16": y_prob, "scaled": flat / flat.sum(axis=1, keepdims=True)}


def reliability():
    y_true, models = data()
    curve = ct.reliability_curve(y_true, models["VGG-16"])
    return curve.plot(tests=curve.cell_tests())


def reliability_of_several():
    y_true, models = data()
    return ct.plotting.plot_reliability({name: ct.reliability_curve(y_true, prob) for name, prob in models.items()})


def triangle():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([1, 1, 1], 500)
    return ct.simplex_diagram(rng.integers(0, 3, 500), prob, partition=ct.SimplexGrid(5), n_resamples=199, rng=0).plot()


def cumulative_graphs():
    y_true, models = data()
    return ct.cumulative_graphs(y_true, models, n_resamples=199, rng=0).plot()


def null_distribution():
    y_true, models = data()
    return ct.calibration_test(y_true, models["scaled"], statistic=ct.KS(), n_resamples=199, rng=0).plot()


def forest():
    y_true, models = data()
    return ct.compare_models(y_true, models | {"long name " * 6: models["scaled"] ** 1.0}, n_resamples=99, rng=0).plot()


PICTURES = (reliability, reliability_of_several, triangle, cumulative_graphs, null_distribution, forest)


def draw(picture, path):
    """Draw without words, whose rendering differs between machines; other tests read them as text.

    Places of axes follow from the size of the words too, so that those of matplotlib without a layout are taken.
    """
    with mpl.rc_context(fname=mpl.matplotlib_fname()):
        figure = np.ravel(picture())[0].figure
        figure.set_layout_engine("none")
        for ax in figure.axes:  # room for the panel below the axes
            box = ax.get_position(original=True)
            ax.set_position((box.x0, 0.25 + 0.75 * box.y0, box.width, 0.75 * box.height))
        remove_ticks_and_titles(figure)
        for part in (*figure.findobj(mpl.text.Text), *figure.findobj(mpl.legend.Legend)):
            part.set_visible(False)
        figure.savefig(path, dpi=DPI, metadata={"Software": None})
        plt.close(figure)


@pytest.mark.parametrize("picture", mostly_slow(PICTURES), ids=lambda picture: picture.__name__)
def test_the_picture_is_the_stored_one(picture, tmp_path):
    stored, drawn = BASELINES / f"{picture.__name__}.png", tmp_path / f"{picture.__name__}.png"
    assert stored.stat().st_size < 40_000
    draw(picture, drawn)
    assert compare_images(str(stored), str(drawn), TOLERANCE) is None


@pytest.mark.slow(few_draws=True)
def test_a_lost_element_is_noticed(tmp_path):
    """Without its points, or without its bars, the picture is not the stored one."""

    def without_points():
        ax = reliability()
        for points in [part for part in ax.collections if part.get_label() in {"_points", "_rejected"}]:
            points.remove()
        return ax

    def without_bars():
        ax = reliability()
        for bars in [part for part in ax.collections if part.get_label() == "_bars"]:
            bars.remove()
        return ax

    for picture in (without_points, without_bars):
        drawn = tmp_path / f"{picture.__name__}.png"
        draw(picture, drawn)
        message = compare_images(str(BASELINES / "reliability.png"), str(drawn), TOLERANCE)
        assert message is not None, picture.__name__
        assert "did not match" in message


if __name__ == "__main__":
    BASELINES.mkdir(exist_ok=True)
    for each in PICTURES:
        draw(each, BASELINES / f"{each.__name__}.png")
