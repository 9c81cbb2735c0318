"""Results of every kind that is drawn, from easy and from odd data, and what is cut off or overlaps in a picture."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import caltest as ct
from caltest import simulation as sim

OF_ROWS = ("comparison", "agreement", "recalibration")
"""Pictures whose height follows from the number of their rows: they are made smaller by a tenth, 32 metrics not."""
QUICK: dict[str, Any] = {"n_resamples": 19, "rng": 0}
LONG = "the network of the second hospital, recalibrated in March "
SLACK = 1.5
"""Pixels by which the box of a text is larger than its letters."""


@contextmanager
def drawn_texts() -> Iterator[list[tuple[Text | Legend, Bbox]]]:
    """Collect texts and legends with their boxes while they are drawn: what is hidden or outside is not."""
    found: list[tuple[Text | Legend, Bbox]] = []
    originals = {kind: kind.draw for kind in (Text, Legend)}

    def recorder(kind: type) -> Callable[..., Any]:
        def draw(artist: Any, renderer: Any, *args: Any, **options: Any) -> Any:
            shown = artist.get_visible() and (kind is Legend or artist.get_text().strip())
            if shown:
                found.append((artist, artist.get_window_extent(renderer).frozen()))
            return originals[kind](artist, renderer, *args, **options)

        return draw

    try:
        for kind in originals:
            kind.draw = recorder(kind)  # type: ignore[method-assign]
        yield found
    finally:
        for kind, draw in originals.items():
            kind.draw = draw  # type: ignore[method-assign]


def faults_of(figure: Any, *, dpi: int = 100) -> list[str]:
    """What is wrong with the texts and legends of a figure when it is saved: cut off, overlapping, or upon the data."""
    with drawn_texts() as found:
        figure.savefig(io.BytesIO(), format="png", dpi=dpi)
    width, height = (dpi * inches for inches in figure.get_size_inches())
    found = list({id(artist): (artist, box) for artist, box in found}.values())
    faults = [
        f"cut off: {named(artist)} {np.round(box.extents)} of {width:.0f} x {height:.0f}"
        for artist, box in found
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < -SLACK
    ]
    for (one, first), (other, second) in combinations(found, 2):
        own = any(isinstance(a, Legend) and b in a.findobj(Text) for a, b in ((one, other), (other, one)))
        common = Bbox.intersection(first, second)
        if not own and common is not None and min(common.width, common.height) > SLACK:
            faults.append(f"overlap: {named(one)} and {named(other)}")
    panels = [ax.patch.get_window_extent() for ax in figure.axes if ax.axison and ax.name != "3d"]
    panels += [child.patch.get_window_extent() for ax in figure.axes for child in ax.child_axes]
    scale = dpi / figure.dpi
    for artist, box in found:
        for panel in panels if isinstance(artist, Legend) else ():
            common = Bbox.intersection(box, Bbox(panel.get_points() * scale))
            if common is not None and min(common.width, common.height) > SLACK:
                faults.append(f"a legend lies upon the data: {named(artist)}")
    return faults


def named(artist: Text | Legend) -> str:
    if isinstance(artist, Legend):
        return f"legend {[text.get_text() for text in artist.get_texts()]}"
    return repr(artist.get_text())


def shapes(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Labels and probabilities of an event, by what is odd about them."""
    rng = np.random.default_rng(0)
    p = {
        "even": rng.beta(1.0, 1.5, n),
        "rare": rng.gamma(1.0, 0.001, n).clip(0, 1),
        "sharp": np.where(rng.random(n) < 0.5, 1e-4 * rng.random(n), 1 - 1e-4 * rng.random(n)),
        "tied": rng.choice([0.1, 0.35, 0.7], n),
        "one-hot": rng.choice([0.0, 1.0], n, p=[0.8, 0.2]),
    }
    found = {}
    for name, prob in p.items():
        truth = prob.copy()
        if name == "even":
            truth = prob**1.3
        if name in {"sharp", "one-hot"}:
            truth = 0.02 + 0.96 * prob
        label = (rng.random(n) < truth).astype(int)
        label[:2] = 0, 1
        found[name] = label, prob
    return found


def classes(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and over-confident predictions of k classes."""
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.full(k, 0.6), n)
    label = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    sharp = truth**1.4
    return label, sharp / sharp.sum(axis=1, keepdims=True)


def models(n: int, count: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Labels and the predictions of several models, of which the first has a long name."""
    label, prob = classes(n, 3)
    names = [LONG, *(f"model {number}" for number in range(2, count + 1))]
    flat = {name: prob ** max(1.2 - 0.15 * i, 0.1) for i, name in enumerate(names)}
    return label, {name: one / one.sum(axis=1, keepdims=True) for name, one in flat.items()}


def of_an_event(kind: str, n: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Pictures of the predictions of one event, by name; what is called draws one."""
    y, p = shapes(n)[kind]
    what = f"{kind}-{n}"
    curve = ct.reliability_curve(y, p)
    for style in ("classical", "deviation"):
        yield f"reliability-{style}-{what}", partial(curve.plot, style=style)
    band = n <= 20_000
    if band:
        isotonic, smooth = ct.isotonic_curve(y, p, **QUICK), ct.smooth_reliability_curve(y, p, **QUICK)
        for style in ("classical", "deviation"):
            yield f"isotonic-{style}-{what}", partial(isotonic.plot, style=style)
            yield f"smooth-{style}-{what}", partial(smooth.plot, style=style)
        yield f"band-{what}", ct.calibration_band(y, p, n_resamples=99, rng=0).plot
        yield f"cumulative-{what}", ct.cumulative_graphs(y, p, n_resamples=99, rng=0).plot
    yield f"test-{what}", ct.calibration_test(y, p, n_resamples=99, rng=0).plot
    yield f"test-ks-{what}", ct.calibration_test(y, p, statistic=ct.KS(), n_resamples=99, rng=0).plot
    yield f"monitor-{what}", ct.CalibrationMonitor().update(y, p).result().plot
    yield f"distribution-{what}", ct.prediction_distribution(p).plot
    yield f"uncertainty-{what}", ct.estimation.uncertainty_diagram(y, p).plot
    yield f"rejection-{what}", ct.rejection_curve(y, p).plot
    yield f"shift-{what}", ct.shift_curve(p, np.sqrt(p), **QUICK).plot


def of_models(n: int, count: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Pictures of several models of three classes."""
    y, probs = models(n, count)
    what = f"{count}-models-{n}"
    curves = {name: ct.reliability_curve(y, prob) for name, prob in probs.items()}
    smooth = {name: ct.smooth_reliability_curve(y, prob, **QUICK) for name, prob in probs.items()}
    isotonic = {name: ct.isotonic_curve(y, prob, **QUICK) for name, prob in probs.items()}
    for style in ("classical", "deviation"):
        yield f"reliability-{style}-{what}", partial(ct.plotting.plot_reliability, curves, style=style)
        yield f"smooth-{style}-{what}", partial(ct.plotting.plot_smooth_reliability, smooth, style=style)
        yield f"isotonic-{style}-{what}", partial(ct.plotting.plot_isotonic_curve, isotonic, style=style)
    yield f"comparison-{what}", ct.compare_models(y, probs, n_resamples=99, rng=0).plot
    yield f"cumulative-{what}", ct.cumulative_graphs(y, probs, n_resamples=99, rng=0).plot
    diagrams = {name: ct.estimation.uncertainty_diagram(y, prob) for name, prob in probs.items()}
    yield f"uncertainty-{what}", partial(ct.plotting.plot_uncertainty_diagram, diagrams)
    yield f"rejection-{what}", ct.rejection_curve(y, probs).plot
    yield f"cells-{what}", ct.cells_curve(y, probs, n_cells=[5, 15, 45], **QUICK).plot
    yield f"temperature-{what}", ct.temperature_curve(y, probs, temperatures=[0.5, 1, 2], **QUICK).plot


def of_comparisons() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Comparisons of few and of many models, on few and on many observations."""
    for n, count in ((10, 2), (10, 12), (500, 12), (100_000, 4)):
        y, probs = models(n, count)
        yield f"comparison-{count}-models-{n}", ct.compare_models(y, probs, n_resamples=99, rng=0).plot


def of_classes(n: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Pictures of three and of four classes."""
    for k in (3, 4):
        y, prob = classes(n, k)
        for names in (None, ["a", "adenocarcinoma in situ", "squamous cell carcinoma of the lung", "d"][:k]):
            what = f"{k}-classes-{n}{'-named' if names else ''}"
            labels = y if names is None else np.array(names)[y]
            yield f"simplex-{what}", ct.simplex_diagram(labels, prob, classes=names, **QUICK).plot
            yield f"distribution-{what}", ct.prediction_distribution(prob, classes=names).plot
        yield f"test-{k}-classes-{n}", ct.calibration_test(y, prob, n_resamples=99, rng=0).plot
        yield f"table-{k}-classes-{n}", ct.calibration_table(y, prob, statistic=ct.KS(), n_resamples=199, rng=0).plot


def of_times() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Pictures of residuals in time: few and many lags, and batches."""
    for n, lags, batch in ((10, None, 1), (500, 99, 1), (500, None, 5)):
        y, p = shapes(n)["even"]
        options = {"max_lag": lags, "time": np.arange(n) // batch, "n_resamples": 99, "rng": 0}
        yield f"correlation-{n}-{lags}-{batch}", ct.hypothesis_tests.residual_correlation(y, p, **options).plot


def of_studies() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Pictures of studies and trainings."""
    y, prob = classes(400, 3)
    epochs = [(y, prob ** (1 + 0.2 * t) / (prob ** (1 + 0.2 * t)).sum(axis=1)[:, None]) for t in range(5)]
    yield "training", ct.training_track(None, {"one": epochs, LONG: epochs[:3]}, **QUICK).plot
    several = {"statistics": [ct.statistics.ACE(10), "TACE(5, 0.2)"], **QUICK}
    track = ct.training_track(None, {"one": epochs, LONG: epochs[:3]}, **several)
    yield "training-of-several", track.plot
    yield "cell-edges", partial(ct.plotting.plot_cell_edges, track)
    bins = {n: ct.ECE(ct.EqualWidth(n)) for n in (5, 20)}
    yield "bias", sim.bias_study(sim.GaussianMixture1D(1, 1), bins, [50, 200], 20, rng=0).plot
    calibrated = [sim.DirichletModel(2), sim.DirichletModel(3, 0.1)]
    yield "size", sim.size_study(calibrated, ct.KS(), [20, 40], 20, **QUICK).plot
    tests = [ct.ECE(), ct.KS()]
    family = lambda t: sim.DirichletModel(2, 1.0, sim.Temperature(t))  # noqa: E731
    yield "power", sim.power_study({"temperature": family}, [0.8, 1.0, 1.25], tests, [20, 40], 10, **QUICK).plot
    holdout = {"n_holdout": 1000, "rng": 0}
    yield "approximation", sim.approximation_study(sim.GaussianMixture1D(0, -1), None, [30, 60], 5, **holdout).plot
    digits, by_model = ct.datasets.load_digits_predictions()
    yield "agreement", sim.metric_agreement(digits, by_model, **QUICK).plot
    two = [ct.statistics.GCE(), ct.statistics.GCE("equal-mass")]
    yield "agreement-of-two", sim.metric_agreement(digits, by_model, metrics=two, **QUICK).plot
    labels = np.arange(120) % 3
    counted = lambda train: np.tile(np.bincount(train, minlength=3) / len(train), (120, 1))  # noqa: E731
    yield "label-noise", sim.label_noise_study(counted, labels, labels, shares=[0, 0.5], **QUICK).plot
    methods = [ct.recalibration.TemperatureScaling(), ct.recalibration.PlattScaling()]
    bayes = {"naive Bayes": by_model["naive_bayes"]}
    study = ct.recalibration_study(digits, bayes, methods, folds=2, n_resamples=99, rng=0)
    yield "recalibration", study.plot
    yield "before-after", partial(ct.plotting.plot_before_after, study, "TemperatureScaling()")


GALLERY: list[tuple[str, Callable[[], Iterator[tuple[str, Callable[..., Any]]]]]] = [
    *((f"{kind}-1000", partial(of_an_event, kind, 1000)) for kind in ("even", "rare", "sharp", "tied", "one-hot")),
    *((f"even-{n}", partial(of_an_event, "even", n)) for n in (2, 10)),
    ("rare-20000", partial(of_an_event, "rare", 20_000)),
    ("even-1000000", partial(of_an_event, "even", 1_000_000)),
    *((f"{count}-models", partial(of_models, 500, count)) for count in (2, 4, 7)),
    ("comparisons", of_comparisons),
    *((f"classes-{n}", partial(of_classes, n)) for n in (10, 2000)),
    ("times", of_times),
    ("studies", of_studies),
]
"""All pictures, by what they show."""


def figure_of(axes: Any) -> Any:
    return np.ravel(axes)[0].get_figure(root=True)


def at_two_sizes(name: str, draw: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """A picture in a new figure of its default size, and in a small one: 4 x 3 inches for each panel, or less.

    Several models in one panel have a legend of many lines: they get 6.4 x 4.8 inches, the default of matplotlib.
    """
    axes = draw()
    panels, figure = np.ravel(axes), figure_of(axes)
    yield "default", figure
    grid = panels[0].get_subplotspec().get_gridspec()
    legend = panels[0].get_legend()
    models = legend is not None and any("\n" in text.get_text() for text in legend.get_texts())
    width, height = (6.4, 4.8) if models else (4.0, 3.0)
    size = np.minimum((width * grid.ncols, height * grid.nrows), figure.get_size_inches())
    if name.startswith(OF_ROWS):
        size = (1.0 if name == "agreement" else 0.9) * figure.get_size_inches()
    small = Figure(figsize=tuple(size), layout="constrained")
    same, kind = (grid.nrows, grid.ncols), {"projection": panels[0].name}
    places = small.subplots(*same, squeeze=False, width_ratios=grid.get_width_ratios(), subplot_kw=kind).ravel()
    for unused in places[len(panels) :]:
        unused.remove()
    used = places[: len(panels)]
    draw(used[0] if np.ndim(axes) == 0 else used.reshape(np.shape(axes)))
    yield "small", small
