"""``caltest repair FILE -o OUT``: recalibrate predictions, and prove on held-out folds what is left."""

from __future__ import annotations

import argparse
import shlex
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest import predictions, recalibration, statistics
from caltest.cli._messages import MEANING, WORDS, code_of, refuse_if, say_written, show, wrapped
from caltest.cli._options import (
    FILES,
    about_file,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    add_time_options,
    computing,
    facts_of,
    guessed_or_named,
    lens_for,
    parse_count,
    problem_of,
    read_file,
    reread,
    times_of,
    typed_test,
    typed_to_apply,
)
from caltest.cli._recalibrated_file import RecalibratedFile, check_outputs, parse_output
from caltest.predictions.inputs._refusals import refuse
from caltest.results._expressions import PublicNames, read_object

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from caltest.predictions import PredictionFile
    from caltest.recalibration import RecalibrationStudy, Recalibrator
    from caltest.recalibration.study._study_entries import RepairedModel

_AUTO = "auto"
_EXAMPLES = """
examples:
  caltest repair predictions.csv -o repaired.csv
  caltest repair predictions.csv --method TemperatureScaling -o repaired.csv
  caltest repair predictions.csv --method "SplineCalibration(n_knots=13)" -o out.csv
  caltest repair predictions.csv --groups patient_id --n-folds 10 -o repaired.csv

repaired.csv has labels, folds, recalibrated probabilities (those of each fold by
a map that was fitted to the other folds) and all other columns of the file, so
that it can be tested in the same way, also with --groups. repaired.json is the map that was
fitted to all observations (caltest.recalibration.load_recalibrator reads it),
for new predictions. repaired.png shows reliability before and after.

--method auto takes, within the other folds of each fold, the method with the
smallest cross-validated log score, among those that get no more labels wrong than
the predictions themselves.

methods:
{methods}
"""


def add_to(commands: Any) -> None:
    """Add ``repair`` to the commands of a parser."""
    known = textwrap.fill(", ".join(_method_names()), 78, initial_indent="  ", subsequent_indent="  ")
    repair = add_command(
        commands,
        "repair",
        _run,
        help="recalibrate predictions, and test the repaired ones",
        description="Recalibrate the predictions in a file. Every fold is predicted by a map that was fitted to the "
        "other folds, so that its labels can prove whether the repaired model is calibrated, how much error remains, "
        "and whether anything was lost. No label of the file may have been used to make the predictions.",
        epilog=_EXAMPLES.format(methods=known),
    )
    add = repair.add_argument
    add("file", type=Path, metavar="FILE", help=FILES)
    add("-o", "--output", type=parse_output, required=True, metavar="OUT.csv", help="where to write predictions")
    add("--method", type=_parse_method, default=_AUTO, metavar="METHOD", help="auto (default), or a method, as below")
    add("--map", type=Path, metavar="FILE.json", help="where to write the map (default: OUT.json)")
    add_option(repair, "--plot", "where to draw before and after (default: OUT.png)")
    add("--n-folds", type=parse_count, default=5, metavar="K", help="number of folds, unless --folds (default: 5)")
    add_option(repair, "--lens")
    add_option(repair, "--statistic")
    add_option(repair, "--resamples", "number of draws (default: 9,999, fewer for large data)")
    add_option(repair, "--alpha")
    add_option(repair, "--exit-code", f"exit after the repair with status {MEANING}")
    add("--details", action="store_true", help="print all numbers of the study")
    add_option(repair, "--json")
    add_file_options(repair)
    add_time_options(repair)
    add_draws(repair, "the folds and the draws")
    repair.set_defaults(words=WORDS | {"recalibrators": "--method"})


def _run(options: argparse.Namespace) -> int:
    outputs = {
        "-o": options.output,
        "--map": options.map or options.output.with_suffix(".json"),
        "--plot": options.plot or options.output.with_suffix(".png"),
    }
    check_outputs(outputs, [options.file])
    given = reread(options.file)  # for the predictions, and for what else is in it
    if options.folds is None:
        options.words = options.words | {"folds": "--n-folds"}
    data = read_file(given, options)
    layout = data.reading.get("layout")
    refuse_if(layout, f"the file has {layout}, which OUT cannot have: write one row for each observation first")
    recalibrator = _method(options.method)
    times = times_of(data, options)
    in_time = options.time is not None or options.lead is not None
    few = options.n_folds < 2 and not options.folds and not in_time
    refuse_if(few, "--n-folds must be at least 2: every fold is repaired by a map that was fitted to the others")

    from caltest.hypothesis_tests import calibration_table
    from caltest.recalibration import recalibration_study

    statistics = None if options.statistic is None else [options.statistic]
    lens, common = lens_for(options.lens, data), problem_of(data) | times | computing(options)
    study = recalibration_study(
        data.y_true,
        {_name_of(options.file): data.y_prob},
        {str(options.method): recalibrator},
        folds=options.n_folds if data.folds is None else data.folds,
        lens=lens,
        statistics=statistics,
        **common,
    )
    row = study.rows[1]
    labels = list(range(data.n_classes)) if data.classes is None else list(data.classes)
    held_out = study.predict(row.recalibrator)
    file = RecalibratedFile(options.output, options)
    file.fill(given, held_out[:, 1:] if data.y_prob.ndim == 1 else held_out, data.prob, labels, data.rows)
    file.add("fold", _folds_of(study))
    file.write()  # before the last fit, so that finished work is not lost if that fails
    fitted = _fit_to_all(recalibrator.set_params(classes=labels), data)
    fitted.save(outputs["--map"])

    apply = ["caltest", "apply", shlex.quote(str(outputs["--map"])), "FILE", "-o", "OUT", *typed_to_apply(options)]
    found = study.before_after(row.recalibrator)
    if data.folds is None:  # otherwise the predictions of each fold are those of another model
        lenses = None if lens is None and statistics is None else [row.test.lens]
        table = calibration_table(data.y_true, data.y_prob, lenses=lenses, statistic=options.statistic, **common)
        found = found.tested(table.verdict)
    words = partial(about_file, data=data, source=_name_of(options.file), path=options.file, typed=typed_test(options))
    found = replace(
        found,
        before=words(found.before),
        after=words(found.after),
        unchanged=found.unchanged or fitted.unchanged_,
        further=f"`{' '.join(apply)}` recalibrates new predictions in the same way.",
    )
    from caltest.plotting._recalibration import save_before_after

    save_before_after(study, found, outputs["--plot"])
    of_time = _ABOUT_TIME if study.design["timing"] is not None else ""
    remarks = [_about_map(options.method, fitted), _about_folds(row, fitted), of_time, guessed_or_named(data, options)]
    text = f"{found}\n\n{wrapped([*filter(None, remarks), 'More: --details (every number of the study).'])}"
    shown = {"verdict": found.verdict.to_dict(), "method": " ".join(repr(fitted.chosen).split())}
    show(
        options,
        f"{text}\n\n{study}" if options.details else text,
        facts_of(data),
        **shown,
        before_after=found.to_dict(),
        **study.to_dict(),
    )
    for what, path in zip(("recalibrated predictions", "map", "picture"), outputs.values(), strict=True):
        say_written(what, path)
    return code_of(found.decision) if options.exit_code else 0


_ABOUT_TIME = (
    "Each fold is a stretch of time, repaired by a map that was fitted to the predictions made a lead or more before. "
    "Predictions before the first one are missing in what was written: no map was fitted before them."
)


def _name_of(file: Path) -> str:
    return "standard input" if str(file) == "-" else file.name


def _folds_of(study: RecalibrationStudy) -> NDArray[Any]:
    """Return the id of the fold of each observation."""
    import numpy as np

    fold = np.empty(len(study.y_true), dtype=object)
    for name, rows in zip(study.fold_names, study.held_out, strict=True):
        fold[rows] = name
    return fold


def _fit_to_all(method: Recalibrator, data: PredictionFile) -> Recalibrator:
    """Return a method that is fitted to all observations, with the names of the columns where each class has one."""
    if len(data.prob) < data.n_classes and data.y_prob.ndim == 2:
        return method.fit(data.y_prob, data.y_true, data.sample_weight)
    import pandas as pd

    columns = pd.DataFrame(data.y_prob, columns=list(data.columns.values()))
    return method.fit(columns, data.y_true, data.sample_weight)


def _about_map(given: str, fitted: Recalibrator) -> str:
    """Return what was fitted to all observations, and how it was chosen."""
    from caltest.recalibration.study._study_entries import method_in_words

    if fitted.unchanged_:
        return "The map that was written leaves predictions as they are."
    final: Any = fitted.chosen
    temperature = f" (T = {final.temperature_:.3g})" if hasattr(final, "temperature_") else ""
    what = f"The map that was written is {method_in_words(final)}{temperature}, fitted to all observations"
    if given != _AUTO:
        return f"{what}; it was not tested itself."
    return (
        f"{what}; it was not tested itself. Of the methods that get no more labels wrong than the predictions "
        "themselves, it predicts best; in each fold the choice was repeated without the labels of the fold."
    )


def _about_folds(row: RepairedModel, fitted: Recalibrator) -> str:
    """Return that the written predictions differ where those of the file are to be kept; empty if they do not."""
    changed = sum(not one.unchanged_ for one in row.maps)
    if not fitted.unchanged_ or not changed:
        return ""
    return (
        f"The predictions that were written are not those of the file: in {changed} of {len(row.maps)} folds the other "
        "folds chose a map that changes them. Use those of the file."
    )


def _method_names() -> list[str]:
    """Return the names of the methods, without loading scikit-learn."""
    return [
        *("TemperatureScaling", "VectorScaling", "MatrixScaling", "DirichletCalibration", "PlattScaling"),
        *("BetaCalibration", "IsotonicCalibration", "HistogramBinning", "ScalingBinning", "SplineCalibration"),
        "InterceptCalibration",
    ]


def _parse_method(text: str) -> str:
    names, typed = _method_names(), text.lower()
    if text != _AUTO and not any(text == name or text.startswith(f"{name}(") for name in names):
        near = [name for name in names if typed and name.lower().startswith(typed)]
        meant = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
        refuse(
            f"must be auto or a method such as TemperatureScaling(), got {text!r}; {meant}", argparse.ArgumentTypeError
        )
    return text


def _method(text: str) -> Recalibrator:
    """Return the method that an expression names."""
    from caltest.recalibration import AutomaticCalibration

    if text == _AUTO:
        return AutomaticCalibration()
    try:
        known = PublicNames(recalibration, predictions, statistics)
        found = read_object(text, known, None, "TemperatureScaling()")
    except (ValueError, TypeError) as error:
        refuse(f"--method: {error}")
    return found() if isinstance(found, type) else found
