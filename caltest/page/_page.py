"""Writing the page: what is computed for it, in the order in which it is read, and its pictures, embedded as SVG."""

from __future__ import annotations

import base64
import hashlib
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.comparison import compare_models
from caltest.estimation import reliability_curve, score_decomposition, simplex_diagram
from caltest.estimation.curves._reliability_curve import ReliabilityCurve
from caltest.estimation.simplex._simplex_diagram import SimplexDiagram
from caltest.hypothesis_tests import CalibrationReport, CalibrationTable, calibration_report, calibration_table
from caltest.plotting._axes import literal, to_svg
from caltest.plotting._reliability import draw_both_styles, plot_reliability
from caltest.plotting._simplex import plot_simplex
from caltest.predictions import ClassWise
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, is_number, refuse_if, validate_given_problem, validate_rng
from caltest.results import Note, Result
from caltest.results._atomic_file import write_atomically
from caltest.results._description import Table, join
from caltest.results._progress import Progress, reporting
from caltest.results._test_result import short_direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Is the model calibrated?"
_PACKAGES = ("numpy", "numba", "scipy")
_TESTS_DRAWS = 999
_SHOWN = 3  # classes with a diagram
_LONGEST = 28  # characters of a name above a panel
_MOST_ROWS = 40  # lenses in the table


@dataclass(frozen=True)
class Picture:
    """A picture: its source as a data address, what it shows in words for those who cannot see it, and a caption."""

    source: str
    alternative: str
    caption: str


@dataclass(frozen=True)
class Part:
    """A part of the page: a heading, paragraphs, tables with their names, pictures and cautions."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[tuple[str, Table]] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[Note] = ()


@dataclass(frozen=True, eq=False)
class _Model:
    """What is known of a model: its name, labels, predictions, and the design of the observations."""

    name: str
    y_true: ArrayLike
    y_prob: Any
    design: Mapping[str, Any]


def write_page(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    path: str | Path,
    *,
    report: CalibrationReport | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    title: str = TITLE,
    n_resamples: int | None = None,
    alpha: float = 0.05,
    workers: int | None = None,
    rng: SeedLike = None,
    progress: bool | Progress | None = None,
) -> Path:
    """Write a self-contained HTML page that sums up the calibration of a model, or of several models.

    It has, from top to bottom: the verdict with the size of the miscalibration, its interval and the error that a
    calibrated model has; the worst classes; reliability diagrams; the tables of tests; the decomposition of the Brier
    score; how to read all this; and what is needed to repeat it. The page needs no network and runs no program.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or dict of them
        Predicted probabilities; of several models by their names.
    path : str or Path
        Where to write; an existing file is replaced.
    report : CalibrationReport, optional
        From `caltest.calibration_report` of the same observations: the tests of several statistics of a single model,
        which are not computed again.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    title : str
        Heading of the page.
    n_resamples : int, optional
        Number of draws of the tests through several lenses; by default 9,999, and 999 for more than 5,000,000 predicted
        probabilities. The report of several statistics has 999 at most.
    alpha : float
        Level of the conclusions.
    workers : int, optional
        Threads; -1 for all processors, by default 1 or as in `caltest.config_context`. The page does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness. With None a seed is chosen, and the page names it.
    progress : bool or callable, optional
        True shows a bar with the time left; a function is called with ``(done, total)``. By default as in
        `caltest.config_context`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or ``report`` is none.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if
        ``n_resamples`` < 1, or ``alpha`` is not strictly between 0 and 1; if ``report`` is of another number of
        observations, or there are several models.
    OSError
        If the file cannot be written.

    See Also
    --------
    caltest.calibration_report : The tests of several statistics, alone.

    Examples
    --------
    >>> import caltest, tempfile, pathlib
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = caltest.page.write_page(
    ...         y_true[:500], y_prob[:500], pathlib.Path(folder) / "vgg16.html", n_resamples=299, rng=0
    ...     )
    ...     "<h1>Is the model calibrated?</h1>" in path.read_text(encoding="utf-8")
    True
    """
    if isinstance(y_true, str | Path):
        refuse("`y_true` must hold labels, got a path. Labels come first: write_page(y_true, y_prob, path).", TypeError)
    design = {"classes": classes, "sample_weight": sample_weight, "groups": groups}
    probs: dict[str, Any] = dict(y_prob) if isinstance(y_prob, Mapping) else {"": y_prob}
    models = [_Model(name, y_true, prob, design) for name, prob in probs.items()]
    if report is not None:
        _check_report(report, y_true, len(models))
    seed = _seed_of(rng)
    options: dict[str, Any] = {"alpha": alpha, "workers": workers, "rng": seed, **design}
    parts, verdicts = [], []
    with reporting(progress, "computing the page") as done:
        for number, model in enumerate(models):
            table = calibration_table(y_true, model.y_prob, n_resamples=n_resamples, **options)
            done(2 * number + 1, 2 * len(models))
            verdicts.append((model.name, [table.verdict.conclusion, " ".join(table.size_sentences)]))
            fewer = None if n_resamples is None else min(n_resamples, _TESTS_DRAWS)
            tests: Any = report or calibration_report(y_true, model.y_prob, n_resamples=fewer, **options)
            found = _about_model(table, tests, model)
            heading = f"{model.name}: " if model.name else ""
            parts += [replace(part, heading=f"{heading}{part.heading}") for part in found]
            done(2 * number + 2, 2 * len(models))
        if len(models) > 1:
            parts.insert(0, _comparison(probs, models, options))
    rows = [
        ("caltest", sys.modules["caltest"].__version__),
        (
            "with",
            ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _PACKAGES)]),
        ),
        ("seed", str(seed)),
        ("draws", f"{max(test.n_resamples for test in table) if n_resamples is None else n_resamples}"),
        ("level", f"{alpha:g}"),
        *_data_rows(models, design),
    ]
    write_atomically(path, _template().render(title=title, verdicts=verdicts, parts=parts, origin=rows))
    return Path(path)


def _check_report(report: Any, y_true: ArrayLike, n_models: int) -> None:
    """Refuse a report that is not of the observations of the page."""
    if not isinstance(report, CalibrationReport):
        refuse(
            f"`report` must be a CalibrationReport from calibration_report(...), got {type(report).__name__}.",
            TypeError,
        )
    refuse_if(n_models > 1, f"`report` is of one model and the page of {n_models}; leave it out.")
    if report[0].n_samples != np.size(y_true):
        refuse(f"`report` must be of the same {np.size(y_true)} observations, got one of {report[0].n_samples}.")


def _seed_of(rng: SeedLike) -> int:
    """Return the seed that the page names: the given one, or one that is drawn from the given source or from chance."""
    if is_number(rng) and not isinstance(rng, np.random.Generator):
        validate_rng(rng)
        return int(rng)  # type: ignore[arg-type]
    return int(validate_rng(rng).integers(2**31))


def _data_rows(models: Sequence[_Model], design: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what describes the data: name and value."""
    given = [name for name in ("sample_weight", "groups") if design[name] is not None]
    if given:
        yield "design of the observations", ", ".join(given)
    for model in models:
        read = read_problem({"y_true": model.y_true}, {"y_prob": model.y_prob}, design["classes"])
        prob, outcome = validate_given_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
        about = f"{len(prob)} observations, {prob.shape[1]} classes, fingerprint {_fingerprint(prob, outcome)}"
        yield f"data of {model.name}" if model.name else "data", about


def _fingerprint(prob: Any, outcome: Any) -> str:
    """Return the first digits of SHA-256 over shape, predictions as doubles and labels, in little-endian order."""
    digest = hashlib.sha256(repr(prob.shape).encode())
    for start in range(0, len(prob), 2**14):
        digest.update(np.ascontiguousarray(prob[start : start + 2**14], dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(outcome, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("caltest.page", ".")
    strict: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined}
    return Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, **strict).get_template("page.html.jinja")


def _about_model(table: CalibrationTable, report: CalibrationReport, model: _Model) -> Iterator[Part]:
    """Yield the parts about one model."""
    curve = reliability_curve(model.y_true, model.y_prob, rng=0, **model.design)
    yield from _worst(table, model)
    yield Part("Do frequencies follow the predictions?", [], [], [diagram(curve)], curve.notes)
    if table[0].n_outcomes == 3:
        found = simplex_diagram(model.y_true, model.y_prob, alpha=table.alpha, rng=0, **model.design)
        yield _part_of("Which classes are confused?", found, [triangle(found)])
    yield _part_of("Tests through several lenses" if len(table) > 1 else "Test of the event", table)
    yield _part_of("Tests by several statistics", report)
    # Dependence within groups does not change the decomposition of the Brier score.
    independent = {key: value for key, value in model.design.items() if key != "groups"}
    scores = score_decomposition(model.y_true, model.y_prob, **independent)
    yield _part_of("What would recalibration gain?", scores)


def _worst(table: CalibrationTable, model: _Model) -> Iterator[Part]:
    """Yield the classes with the largest errors: those that are shown to be miscalibrated come first."""
    rows = [
        (str(test.lens_short_name), test, adjusted, rejected)
        for test, adjusted, rejected in zip(table.tests, table.pvalue_adjusted, table.rejected_tests, strict=True)
        if isinstance(test.lens, ClassWise)
    ]
    if not rows:
        return
    rows.sort(key=lambda row: (not row[3], -row[1].l2_error.root))
    found = [name for name, _, _, rejected in rows[:_SHOWN] if rejected]
    said = "No single class is rejected after Holm's correction."
    if found:
        said = f"The largest errors among the classes that are rejected after Holm's correction: {join(found)}."
    cells = [
        (name, test.l2_error.root_text, f"{adjusted:.4g}", short_direction(test.direction if rejected else None))
        for name, test, adjusted, rejected in rows[:_MOST_ROWS]
    ]
    errors = Table(("class", "l2 error (95 % interval)", "p (Holm)", "direction"), cells, left=("direction",))
    curves = {
        name: reliability_curve(model.y_true, model.y_prob, lens=test.lens, rng=0, **model.design)
        for name, test, _, _ in rows[:_SHOWN]
    }
    picture = diagrams(curves, "Reliability diagrams of these classes against the rest.")
    yield Part("Which classes are worst?", [said], [("Classes by their error", errors)], [picture])


def _part_of(heading: str, result: Result, pictures: Sequence[Picture] = ()) -> Part:
    """Return what a result prints as a part of the page."""
    said = result._description()
    several = len(said.tables) > 1
    named = [(f"{said.title} ({number})" if several else said.title, one) for number, one in enumerate(said.tables, 1)]
    return Part(heading, [*said.conclusion, *said.remarks], named, pictures, said.notes)


def _comparison(probs: Mapping[str, Any], models: Sequence[_Model], options: Mapping[str, Any]) -> Part:
    """Return the comparison of several models on the same observations."""
    found = compare_models(models[0].y_true, probs, **options)
    curves = {one.name: reliability_curve(one.y_true, one.y_prob, rng=0, **one.design) for one in models}
    caption = "Reliability diagram of all models, each with its ECE in these cells (bins) and the noise floor of it."
    return _part_of("Which model is better calibrated?", found, [overlay(curves, caption)])


def diagram(curve: ReliabilityCurve) -> Picture:
    """Return the reliability diagram of one event, as deviations and as frequencies."""
    caption = f"Reliability diagram of the {curve.lens_name}. {curve.conclusion}"
    return _picture(lambda figure: draw_both_styles(figure, curve), (11, 6.0), _in_words([curve]), caption)


def diagrams(curves: Mapping[str, ReliabilityCurve], caption: str) -> Picture:
    """Return the reliability diagrams of several classes side by side."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(-(-len(curves) // 3), 3, squeeze=False)
        for panel in panels.flat[len(curves) :]:
            panel.remove()
        for panel, (name, curve) in zip(panels.flat, curves.items(), strict=False):
            plot_reliability(curve, panel, style="classical", tests=curve.cell_tests(), legend=False)
            shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
            panel.set_title(literal(shown), fontsize="medium")

    height = 4.8 * -(-len(curves) // 3)  # in less, the labels of the predictions are cut off
    return _picture(draw, (11, height), _in_words(list(curves.values()), list(curves)), caption)


def overlay(curves: Mapping[str, ReliabilityCurve], caption: str) -> Picture:
    """Return the reliability diagram of several models in the same axes, as deviations and as frequencies."""
    height = 5.6 + 0.32 * len(curves)
    words = _in_words(list(curves.values()), list(curves))
    return _picture(lambda figure: draw_both_styles(figure, curves), (11, height), words, caption)


def triangle(found: SimplexDiagram) -> Picture:
    """Return the reliability diagram of three classes in the triangle of their probabilities."""
    words = f"Reliability diagram on the triangle of three classes. {found.conclusion}"
    return _picture(lambda figure: plot_simplex(found, figure.subplots()), (8, 7), words, "")


def _picture(draw: Callable[[Figure], Any], size: tuple[float, float], words: str, caption: str) -> Picture:
    content = base64.b64encode(to_svg(draw, size)).decode()
    return Picture(f"data:image/svg+xml;base64,{content}", words, caption)


def _in_words(curves: Sequence[ReliabilityCurve], names: Sequence[str] | None = None) -> str:
    """Return what diagrams show, in words."""
    texts = []
    for name, curve in zip(names or [curve.lens_name for curve in curves], curves, strict=True):
        worst = int(abs(curve.deviation).argmax())
        texts.append(
            f"{name}: {int(curve.outside.sum())} of {curve.n_cells} cells (bins) are outside their bars; the largest "
            f"difference between frequency and prediction is {curve.deviation[worst]:+.3f}, where the prediction is "
            f"{curve.predicted[worst]:.3f}."
        )
    return "Reliability diagram. " + " ".join(texts)
