"""Names with dollar signs are drawn as they are, in every picture that names classes or models of the user."""

import numpy as np
import pytest
from matplotlib.text import Text

import caltest
from caltest import plotting
from caltest.plotting._axes import literal
from caltest.streaming import CalibrationMonitor
from tests.reference.cases import mostly_slow

NAMES = ["$5$ & {more", r"a_$x^{$", "$\\undefined$"]


def data(n_classes):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(n_classes), 200)
    y = (rng.random(200)[:, None] > prob.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return np.array(NAMES[:n_classes], dtype=object)[y], prob, NAMES[:n_classes]


def three(function, **options):
    y, prob, names = data(3)
    return function(y, prob, classes=names, **options)


def models(function, **options):
    y, prob, names = data(3)
    return {
        name: function(y, prob, classes=names, lens=caltest.ClassWise(k), **options) for k, name in enumerate(NAMES)
    }


LENS = {"lens": caltest.ClassWise(0), "n_resamples": 19, "rng": 0}
PICTURES = {
    "reliability": lambda: plotting.plot_reliability(three(caltest.reliability_curve, **LENS)),
    "reliability of models": lambda: plotting.plot_reliability(
        models(caltest.reliability_curve, n_resamples=19, rng=0)
    ),
    "simplex": lambda: plotting.plot_simplex(three(caltest.simplex_diagram, n_resamples=99, rng=0)),
    "smooth": lambda: plotting.plot_smooth_reliability(three(caltest.estimation.smooth_reliability_curve, **LENS)),
    "isotonic": lambda: plotting.plot_isotonic_curve(three(caltest.estimation.isotonic_curve, **LENS)),
    "band": lambda: plotting.plot_calibration_band(three(caltest.estimation.calibration_band, **LENS)),
    "prediction distribution": lambda: plotting.plot_prediction_distribution(
        caltest.estimation.prediction_distribution(data(3)[1], classes=NAMES)
    ),
    "comparison": lambda: plotting.plot_comparison(
        caltest.compare_models(data(3)[0], {name: data(3)[1] for name in NAMES}, classes=NAMES, n_resamples=99, rng=0)
    ),
    "monitor": lambda: plotting.plot_monitor(
        CalibrationMonitor(lens=caltest.ClassWise(0), classes=NAMES).update(*data(3)[:2]).result()
    ),
    "display": lambda: (
        caltest.ReliabilityDisplay.from_predictions(data(2)[0], data(2)[1][:, 1], pos_label=NAMES[1], name=NAMES[0]).ax_
    ),
}


@pytest.mark.parametrize("name", mostly_slow(PICTURES))
def test_names_are_no_mathematics(name):
    figure = np.ravel(PICTURES[name]())[0].figure
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if "$" in text.get_text().replace(r"$\mathdefault", "")]
    own = [text for text in texts if "mathdefault" not in text.get_text()]
    assert own, "no name is in the picture"
    for text in own:
        assert text.get_text().count("$") == text.get_text().count(r"\$"), text.get_text()


def test_matplotlib_shows_what_was_given():
    for name in [*NAMES, "plain", r"\$", "one $", "a$b$c$"]:
        shown, is_mathematics = Text()._preprocess_math(literal(name))
        assert (shown, is_mathematics) == (name, False)
