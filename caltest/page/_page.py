"""Writing the page: what is computed for it, in the order in which it is read."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.comparison import compare_models
from caltest.estimation import reliability_curve, score_decomposition, simplex_diagram
from caltest.hypothesis_tests import CalibrationTable, calibration_report, calibration_table
from caltest.page._figures import Picture, diagram, diagrams, overlay, triangle
from caltest.predictions import ClassWise
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._validation import SeedLike, is_number, validate_given_problem, validate_rng
from caltest.results import Note, Result
from caltest.results._atomic_file import write_atomically
from caltest.results._description import Table, join
from caltest.results._progress import Progress, reporting
from caltest.results._test_result import short_direction

_PACKAGES = ("numpy", "numba", "scipy")


@dataclass(frozen=True)
class Origin:
    """Pairs of a name and a value in words."""

    rows: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, data: Data, settings: Settings) -> Origin:
        """Describe data and settings."""
        packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
        rows = [
            ("caltest", sys.modules["caltest"].__version__),
            ("with", f"Python {platform.python_version()}, {packages}"),
            ("seed", str(settings.seed)),
            ("draws", f"{settings.n_resamples}"),
            ("level", f"{settings.alpha:g}"),
        ]
        design = [name for name in ("sample_weight", "groups") if data.design[name] is not None]
        rows += [("design of the observations", ", ".join(design))] if design else []
        for name, prob in data.models.items():
            read = read_problem({"y_true": data.y_true}, {"y_prob": prob}, data.design["classes"])
            given, outcome = validate_given_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
            about = f"{len(given)} observations, {given.shape[1]} classes, fingerprint {_fingerprint(given, outcome)}"
            rows.append((f"data of {name}" if name else "data", about))
        return cls(tuple(rows))


def seed_of(rng: SeedLike) -> int:
    """Return the seed that the page names: the given one, or one that is drawn from the given source or from chance."""
    if is_number(rng) and not isinstance(rng, np.random.Generator):
        validate_rng(rng)
        return int(rng)  # type: ignore[arg-type]
    return int(validate_rng(rng).integers(2**31))


def _fingerprint(prob: Any, outcome: Any) -> str:
    """Return the first digits of SHA-256 over shape, predictions as doubles and labels, in little-endian order."""
    digest = hashlib.sha256(repr(prob.shape).encode())
    for start in range(0, len(prob), 2**14):
        digest.update(np.ascontiguousarray(prob[start : start + 2**14], dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(outcome, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def render(title: str, verdicts: Sequence[tuple[str, Sequence[str]]], parts: Sequence[Part], origin: Origin) -> str:
    """Return the page as text."""
    return _template().render(title=title, verdicts=verdicts, parts=parts, origin=origin)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("caltest.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


TITLE = "Is the model calibrated?"
_SHOWN = 3  # classes with a diagram
_MOST_ROWS = 40  # lenses in the table
_TESTS_DRAWS = 999


@dataclass(frozen=True)
class Part:
    """A part of the page: a heading, paragraphs, tables with their names, pictures and cautions."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[tuple[str, Table]] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[Note] = ()


def write_page(
    path: str | Path,
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    report: CalibrationTable | None = None,
    title: str = TITLE,
    n_resamples: int = 9999,
    alpha: float = 0.05,
    workers: int = 1,
    rng: SeedLike = None,
    progress: bool | Progress = False,
) -> Path:
    """Write a self-contained HTML page that sums up the calibration of a model, or of several models.

    It has, from top to bottom: the verdict with the size of the miscalibration, its interval and the error that a
    calibrated model has; the worst classes; reliability diagrams; the tables of tests; the decomposition of the Brier
    score; how to read all this; and what is needed to repeat it. The page needs no network and runs no program.

    Parameters
    ----------
    path : str or Path
        Where to write; an existing file is replaced.
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or dict of them
        Predicted probabilities; of several models by their names.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    report : CalibrationReport, optional
        The report of `caltest.calibration_report` on the same predictions of a single model, which is then not computed
        again.
    title : str
        Heading of the page.
    n_resamples : int
        Number of draws of the tests through several lenses; the report of several statistics has 999 at most.
    alpha : float
        Level of the conclusions.
    workers : int
        Threads; -1 for all processors. The page does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness. With None a seed is chosen, and the page names it.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if
        ``n_resamples`` < 1, or ``alpha`` is not strictly between 0 and 1.
    OSError
        If the file cannot be written.

    See Also
    --------
    caltest.calibration_report : The tests by several statistics, which may be passed as ``report``.

    Examples
    --------
    >>> import caltest, tempfile, pathlib
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = caltest.page.write_page(
    ...         pathlib.Path(folder) / "vgg16.html", y_true[:500], y_prob[:500], n_resamples=299, rng=0
    ...     )
    ...     "<h1>Is the model calibrated?</h1>" in path.read_text(encoding="utf-8")
    True
    """
    models: dict[str, Any] = dict(y_prob) if isinstance(y_prob, Mapping) else {"": y_prob}
    data = Data(y_true, models, {"classes": classes, "sample_weight": sample_weight, "groups": groups})
    reports = {} if report is None else {"": report}
    return write(path, data, Settings(n_resamples, alpha, workers, seed_of(rng), title), reports, progress)


@dataclass(frozen=True, eq=False)
class Data:
    """What the page is about: labels, predictions by the name of the model, and the design of the observations."""

    y_true: ArrayLike
    models: Mapping[str, Any]
    design: Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """How the page is computed."""

    n_resamples: int
    alpha: float
    workers: int
    seed: int
    title: str

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of every test."""
        return {"alpha": self.alpha, "workers": self.workers, "rng": self.seed}


def write(
    path: str | Path,
    data: Data,
    settings: Settings,
    reports: Mapping[str, CalibrationTable],
    progress: bool | Progress = False,
) -> Path:
    """Write the page; a report of several statistics that is there already is not computed again."""
    parts, verdicts = [], []
    with reporting(progress, "computing the page") as report:
        for number, (name, prob) in enumerate(data.models.items()):
            options = {**settings.options, **data.design}
            table = calibration_table(data.y_true, prob, n_resamples=settings.n_resamples, **options)
            report(2 * number + 1, 2 * len(data.models))
            verdicts.append((name, verdict(table)))
            statistics = reports.get(name) or calibration_report(
                data.y_true, prob, n_resamples=min(settings.n_resamples, _TESTS_DRAWS), **options
            )
            found = about_model(table, statistics, data, name)
            parts += [replace(part, heading=f"{name}: {part.heading}") for part in found] if name else found
            report(2 * number + 2, 2 * len(data.models))
        if len(data.models) > 1:
            parts.insert(0, comparison(data, settings))
    text = render(settings.title, verdicts, parts, Origin.of(data, settings))
    write_atomically(path, text)
    return Path(path)


def verdict(table: CalibrationTable) -> list[str]:
    """Return the verdict in two paragraphs: the decision, and the error beside that of a calibrated model."""
    return [" ".join(table.first_sentences), " ".join(table.size_sentences)]


def about_model(table: CalibrationTable, report: CalibrationTable, data: Data, name: str) -> list[Part]:
    """Return the parts about one model."""
    return [
        *_worst(table, data, name),
        _reliability(data, name),
        *_triangle(table, data, name),
        part_of("Tests through several lenses", table),
        part_of("Tests by several statistics", report),
        *_decomposition(data, name),
    ]


def _worst(table: CalibrationTable, data: Data, name: str) -> list[Part]:
    """Return the classes with the largest errors: those that are shown to be miscalibrated come first."""
    rows = [
        (test.l2_error, test, adjusted, rejected)
        for test, adjusted, rejected in zip(table.tests, table.pvalue_adjusted, table.rejected, strict=True)
        if isinstance(test.lens, ClassWise)
    ]
    if not rows:
        return []
    rows.sort(key=lambda row: (not row[3], -row[0].root))
    shown = rows[:_SHOWN]
    found = [test.lens_name.removesuffix(" against the rest") for _, test, _, rejected in shown if rejected]
    said = (
        f"The largest errors among the classes that are rejected after Holm's correction: {join(found)}."
        if found
        else "No single class is rejected after Holm's correction."
    )
    cells = [
        (
            test.lens_name.removesuffix(" against the rest"),
            error.root_text,
            f"{adjusted:.4g}",
            short_direction(test.direction if rejected else None),
        )
        for error, test, adjusted, rejected in rows[:_MOST_ROWS]
    ]
    table_of = Table(("class", "l2 error (95 % interval)", "p (Holm)", "direction"), cells, left=("direction",))
    curves = {
        test.lens_name.removesuffix(" against the rest"): reliability_curve(
            data.y_true, data.models[name], lens=test.lens, rng=0, **data.design
        )
        for _, test, _, _ in shown
    }
    picture = diagrams(curves, "Reliability diagrams of these classes against the rest.")
    return [Part("Which classes are worst?", [said], [("Classes by their error", table_of)], [picture])]


def _reliability(data: Data, name: str) -> Part:
    curve = reliability_curve(data.y_true, data.models[name], rng=0, **data.design)
    return Part("Do frequencies follow the predictions?", [], [], [diagram(curve)], curve.notes)


def _triangle(table: CalibrationTable, data: Data, name: str) -> list[Part]:
    """Return the diagram on the simplex of three classes."""
    if table[0].n_outcomes != 3:
        return []
    diagram_of = simplex_diagram(data.y_true, data.models[name], alpha=table.alpha, rng=0, **data.design)
    return [part_of("Which classes are confused?", diagram_of, [triangle(diagram_of)])]


def part_of(heading: str, result: Result, pictures: Sequence[Picture] = ()) -> Part:
    """Return what a result prints as a part of the page."""
    said = result._description()
    several = len(said.tables) > 1
    named = [(f"{said.title} ({number})" if several else said.title, one) for number, one in enumerate(said.tables, 1)]
    return Part(heading, [*said.conclusion, *said.remarks], named, pictures, said.notes)


def _decomposition(data: Data, name: str) -> list[Part]:
    """Return the decomposition of the Brier score; dependence within groups does not change it."""
    options = {key: value for key, value in data.design.items() if key != "groups"}
    found = score_decomposition(data.y_true, data.models[name], **options)
    return [part_of("What would recalibration gain?", found)]


def comparison(data: Data, settings: Settings) -> Part:
    """Return the comparison of several models on the same observations."""
    found = compare_models(
        data.y_true,
        data.models,
        alpha=settings.alpha,
        workers=settings.workers,
        rng=settings.seed,
        **data.design,
    )
    curves = {name: reliability_curve(data.y_true, prob, rng=0, **data.design) for name, prob in data.models.items()}
    caption = "Reliability diagram of all models, each with its ECE in these cells (bins) and the noise floor of it."
    picture = overlay(curves, caption)
    return part_of("Which model is better calibrated?", found, [picture])
