"""Writing the page: what is computed for it, in the order in which it is read."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.comparison import compare_models
from caltest.hypothesis_tests import CalibrationReport, calibration_report, calibration_table
from caltest.hypothesis_tests._subgroups import judge_levels, levels_of_columns
from caltest.page._answer import Answer, Model
from caltest.page._details import Folded, codes_in, details_of, explain, linked, of_result
from caltest.page._pictures import Picture, deviations, diagram
from caltest.predictions.inputs._arguments import time_of_index
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    SeedLike,
    is_number,
    refuse_if,
    require,
    validate_given_problem,
    validate_rng,
)
from caltest.results import BeforeAfter
from caltest.results._atomic_file import write_atomically
from caltest.results._description import Table, counted
from caltest.results._progress import Progress, reporting

TITLE = "Is the model calibrated?"
_TITLE_OF_SEVERAL = "Which model is better calibrated?"
_PACKAGES = ("numpy", "numba", "scipy")
_TESTS_DRAWS = 999
_MOST_IN_DETAIL = 3  # models with a second diagram: pages stay small enough for an e-mail
_DESIGN = {"sample_weight": "weights", "groups": "groups"}


@dataclass(frozen=True)
class Comparison:
    """What is said of several models together."""

    sentences: Sequence[str]
    table: Table
    picture: Picture


def write_page(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    path: str | Path,
    *,
    subgroup: Mapping[str, ArrayLike] | None = None,
    repaired: BeforeAfter | Mapping[str, BeforeAfter] | None = None,
    report: CalibrationReport | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: Any = None,
    lead: Any = None,
    title: str | None = None,
    n_resamples: int | None = None,
    alpha: float = 0.05,
    workers: int | None = None,
    rng: SeedLike = None,
    progress: bool | Progress | None = None,
    input: str = "probabilities",  # noqa: A002
) -> Path:
    """Write a self-contained HTML page that sums up the calibration of a model, or of several models.

    It is made for the person who decides. From top to bottom it has the decision in a word; the answer with its
    numbers; a reliability diagram; where and for whom predictions are wrong; what to do; and what could be missed.
    Everything for statisticians is folded below: all tests, notes with their explanations, how to read them, and what
    is needed to repeat the page. The page needs no network and runs no program.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or dict of them
        Predicted probabilities; of several models by their names.
    path : str or Path
        Where to write; an existing file is replaced.
    subgroup : dict of str to array-like of shape (n_samples,), optional
        Columns whose values are subgroups of the observations, by the names of the columns. They must depend on
        predictions or covariates, never on outcomes.
    repaired : BeforeAfter, or dict of them, optional
        What recalibration achieves on held-out observations, from ``before_after`` of a study by
        `caltest.recalibration_study`; of several models by their names.
    report : CalibrationReport, optional
        From `caltest.calibration_report` of the same observations: the tests of several statistics of a single model,
        which are not computed again.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    time : array-like of shape (n_samples,), optional
        When each prediction was made, as in `caltest.calibration_test`; with ``lead`` by default an index of pandas
        that holds dates. Not together with ``groups``.
    lead : int, timedelta, str or array-like of these, optional
        How long after its prediction a label is known; closer labels may depend on each other. With time the page has
        no diagram of three classes, whose tests take labels as independent.
    title : str, optional
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
    input : {"probabilities", "logits"}
        What predictions are, as in `caltest.calibration_test`.

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
        observations, or there are several models; if ``lead`` is given without ``time`` or longer than the data, or
        ``time`` with ``groups``.
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
    ...         y_true[:200], y_prob[:200], pathlib.Path(folder) / "vgg16.html", n_resamples=299, rng=0
    ...     )
    ...     "<h1>Is the model calibrated?</h1>" in path.read_text(encoding="utf-8")
    True
    """
    if isinstance(y_true, str | Path):
        refuse("`y_true` must hold labels, got a path. Labels come first: write_page(y_true, y_prob, path).", TypeError)
    probs: dict[str, Any] = dict(y_prob) if isinstance(y_prob, Mapping) else {"": y_prob}
    time = time_of_index(y_true, *probs.values()) if time is None else time
    design = {"classes": classes, "sample_weight": sample_weight, "groups": groups, "time": time, "lead": lead}
    design["input"] = input
    levels = levels_of_columns({name: np.asarray(column) for name, column in (subgroup or {}).items()})
    found = repaired if isinstance(repaired, Mapping) else dict.fromkeys(probs, repaired)
    for one in found.values():
        must = "`repaired` must be a BeforeAfter from `before_after` of a recalibration_study(...)"
        require(isinstance(one, BeforeAfter | None), must, one, right_type=False)
    models = [
        Model(name, y_true, prob, design, levels=levels, repaired=found.get(name)) for name, prob in probs.items()
    ]
    if report is not None:
        _check_report(report, models)
    options: dict[str, Any] = {"n_resamples": n_resamples, "alpha": alpha, "workers": workers, "rng": rng}
    return write_page_of(models, path, report=report, title=title, progress=progress, **options)


def write_page_of(
    models: Sequence[Model],
    path: str | Path,
    *,
    report: CalibrationReport | None = None,
    title: str | None = None,
    n_resamples: int | None = None,
    alpha: float = 0.05,
    workers: int | None = None,
    rng: SeedLike = None,
    progress: bool | Progress | None = None,
    command: str = "",
) -> Path:
    """Write the page of some models of the same observations; ``command`` is how it was asked for."""
    seed = _seed_of(rng)
    both = models[0].design["groups"] is not None and models[0].lead
    refuse_if(both, "a page knows how observations depend on each other in `groups` or in `time`, not both.")
    options: dict[str, Any] = {"alpha": alpha, "workers": workers, "rng": seed}
    fewer = _TESTS_DRAWS if n_resamples is None else min(n_resamples, _TESTS_DRAWS)
    answers, folded, draws = [], [], {0}
    with reporting(progress, "computing the page") as done:
        for number, model in enumerate(models):
            data: dict[str, Any] = {"y_true": model.y_true, "y_prob": model.y_prob, **model.design}
            table = calibration_table(**data, n_resamples=n_resamples, **options)
            done(2 * number + 1, 2 * len(models))
            few: dict[str, Any] = {"n_resamples": fewer, **options}
            tests = report or calibration_report(**data, **few)
            parts = judge_levels(levels=model.levels, **data, **few) if model.levels else None
            answer = Answer.of(model, table, parts)
            answers.append(answer)
            draws.update(test.n_resamples for test in table)
            found = [*details_of(table, tests, answer.verdict, model)]
            found += [of_result("Tests of subgroups", parts)] if parts is not None else []
            found += [of_result("Recalibration", model.repaired)] if model.repaired is not None else []
            folded.append((model.name, found))
            done(2 * number + 2, 2 * len(models))
        compared = None
        if len(models) > 1:
            compared, more = _comparison(models, answers, {"n_resamples": fewer, **options})
            folded.insert(0, ("", [more]))
    codes = codes_in(text for _, parts in folded for part in parts for text in part.texts)
    html = template_of("page").render(
        title=title or _heading(answers),
        date=today(),
        answers=answers,
        compared=compared,
        folded=folded,
        notes={code: explain(code) for code in codes},
        linked=lambda text: linked(text, codes),
        origin=_origin(models, seed, max(draws), alpha, command),
    )
    write_atomically(path, html)
    return Path(path)


def _heading(answers: Sequence[Answer]) -> str:
    """Return the name of the data, or the question."""
    if len(answers) > 1:
        return _TITLE_OF_SEVERAL
    subject = answers[0].verdict.subject
    return subject.source if subject is not None and subject.path else TITLE


def _comparison(
    models: Sequence[Model], answers: Sequence[Answer], options: Mapping[str, Any]
) -> tuple[Comparison, Folded]:
    """Return what is said of several models of the same observations, and the details."""
    probs = {model.name: model.y_prob for model in models}
    found = compare_models(models[0].y_true, probs, **models[0].design, **options)
    curves = {model.name: model.curve for model in models}
    chance = f" Bars are what chance explains{models[0].by_chance}." if models[0].lead else ""
    words = f"All models in one diagram. On the diagonal, what was predicted is what happened.{chance}"
    picture = diagram(curves, words)
    names = dict.fromkeys(name for one in answers for name in one.numbers)
    rows = [(one.name, one.word.text, *(one.numbers.get(name, "-") for name in names)) for one in answers]
    table = Table(("model", "calibration", *names), rows, left=("calibration",))
    more = [deviations(curves)] if len(models) <= _MOST_IN_DETAIL else []
    return Comparison([found.conclusion], table, picture), of_result("Comparison", found, more)


def _origin(
    models: Sequence[Model], seed: int, n_resamples: int, alpha: float, command: str
) -> Iterator[tuple[str, str]]:
    """Yield what is needed to repeat the page: name and value."""
    yield from versions()
    if command:
        yield "command", command
    yield "seed", str(seed)
    yield "draws", f"{n_resamples:,}"
    yield "level", f"{alpha:g}"
    yield from _data_rows(models)


def today() -> str:
    """Return the date of the page."""
    return f"{date.today():%d %B %Y}".lstrip("0")


def versions() -> Iterator[tuple[str, str]]:
    """Yield the versions of the package and of what it needs."""
    yield "caltest", sys.modules["caltest"].__version__
    with_what = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _PACKAGES)]
    yield "with", ", ".join(with_what)


def _check_report(report: Any, models: Sequence[Model]) -> None:
    """Refuse a report that is not of the observations of the page."""
    if not isinstance(report, CalibrationReport):
        refuse(
            f"`report` must be a CalibrationReport from calibration_report(...), got {type(report).__name__}.",
            TypeError,
        )
    refuse_if(len(models) > 1, f"`report` is of one model and the page of {len(models)}; leave it out.")
    if report[0].n_samples != (size := np.size(models[0].y_true)):
        refuse(f"`report` must be of the same {size:,} observations, got one of {report[0].n_samples}.")
    in_time = any(test._in_time for test in report)
    refuse_if(in_time != bool(models[0].lead), "`report` must have the same `time` and `lead` as the page.")


def _seed_of(rng: SeedLike) -> int:
    """Return the seed that the page names: the given one, or one that is drawn from the given source or from chance."""
    if is_number(rng) and not isinstance(rng, np.random.Generator):
        validate_rng(rng)
        return int(rng)  # type: ignore[arg-type]
    return int(validate_rng(rng).integers(2**31))


def _data_rows(models: Sequence[Model]) -> Iterator[tuple[str, str]]:
    """Yield what describes the data: name and value."""
    design = models[0].design
    given = [words for name, words in _DESIGN.items() if design[name] is not None]
    if given:
        yield "design of the observations", ", ".join(given)
    if models[0].lead:
        yield "lead", models[0].lead
    for model in models:
        prob, outcome = validate_given_problem(*model.problem)
        about = f"{counted(len(prob))}, {prob.shape[1]} classes, fingerprint {_fingerprint(prob, outcome)}"
        yield f"data of {model.name}" if model.name else "data", about


def _fingerprint(prob: Any, outcome: Any) -> str:
    """Return the first digits of SHA-256 over shape, predictions as doubles and labels, in little-endian order."""
    digest = hashlib.sha256(repr(prob.shape).encode())
    for start in range(0, len(prob), 2**14):
        digest.update(np.ascontiguousarray(prob[start : start + 2**14], dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(outcome, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


@cache
def template_of(name: str) -> Any:
    """Return the template of a kind of page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("caltest.page", ".")
    strict: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined}
    return Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, **strict).get_template(f"{name}.html.jinja")
