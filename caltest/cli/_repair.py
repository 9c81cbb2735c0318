"""``caltest repair FILE -o OUT``: recalibrate predictions, and prove on held-out folds what is left."""

from __future__ import annotations

import argparse
import io
import tempfile
import textwrap
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from caltest import predictions, recalibration, statistics
from caltest.cli._messages import MEANING, WORDS, code_of, refuse_if, say, say_written, show, wrapped
from caltest.cli._options import (
    FILES,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    columns_of,
    computing,
    facts_of,
    lens_for,
    parse_count,
    problem_of,
    read_file,
    reading_of,
    standard_input,
)
from caltest.results._atomic_file import atomic_file, require_writable
from caltest.results._expressions import PublicNames, read_object

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from caltest.predictions import PredictionFile
    from caltest.recalibration import RecalibrationStudy, Recalibrator

ENDINGS = (".csv", ".tsv", ".parquet", ".npz")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def require_places(paths: Collection[Path]) -> None:
    """Refuse, before the work begins, what could not be written after it.

    Raises
    ------
    OSError
        If nothing can be written in one of the places.
    ValueError
        If the library of a format is not installed.
    """
    for path in paths:
        require_writable(path)
        lacking = path.suffix == ".parquet" and find_spec("pyarrow") is None
        refuse_if(lacking, f"writing {path} needs pyarrow: pip install pyarrow")


def repaired_columns(
    data: PredictionFile, rest: Mapping[str, NDArray[Any]], study: RecalibrationStudy, method: str
) -> dict[str, NDArray[Any]]:
    """Return labels, folds, probabilities that were held out, and all other columns, by their names.

    Probabilities that stood in one array, or as a list in each row, are one array ``(n_samples, n_classes)`` here.
    """
    import numpy as np

    prob = study.predict(method)
    fold = np.empty(len(prob), dtype=object)
    for name, rows in zip(study.fold_names, study.held_out, strict=True):
        fold[rows] = name
    taken = {data.label, *data.prob, *rest}
    of_folds = "fold"
    for name in ("repair_fold", *(f"repair_fold_{k}" for k in range(2, 3 + len(taken)))):
        of_folds = name if of_folds in taken else of_folds
    if data.y_prob.ndim == 1:
        columns = {data.prob[0]: prob[:, 1]}
    elif len(data.prob) == 1:
        columns = {data.prob[0]: prob}
    else:
        columns = {name: prob[:, k] for k, name in enumerate(data.columns.values())}
    return {data.label: data.y_true, of_folds: fold, **columns, **rest}


def write_columns(path: Path, columns: Mapping[str, NDArray[Any]], labels: Collection[Any]) -> Path:
    """Write columns to a file, and return it; one in the folder for temporary files if it cannot be written.

    Finished work is not lost because a disk is full or a folder is gone: then the exception has a note that says where
    the columns are.
    """
    try:
        with atomic_file(path) as stream:
            _write(stream, path.suffix, columns, labels)
    except Exception as error:  # what a failed write raises is up to libraries
        saved = Path(tempfile.mkdtemp(prefix="caltest-repair-")) / f"{path.stem}.csv"
        with atomic_file(saved) as stream:
            _write(stream, ".csv", columns, labels)
        reason = getattr(error, "strerror", None) or error
        msg = f"{path} could not be written ({reason}); the repaired predictions are in {saved}"
        raise ValueError(msg) from error
    return path


def _write(stream: BinaryIO, ending: str, columns: Mapping[str, NDArray[Any]], labels: Collection[Any]) -> None:
    import numpy as np
    import pandas as pd

    if ending == ".npz":
        arrays: dict[str, Any] = {name: _without_objects(values) for name, values in columns.items()}
        np.savez(stream, allow_pickle=False, **arrays)
        return
    table: dict[str, Any] = {}
    for name, values in columns.items():
        table |= dict(_as_columns(name, values, labels, columns))
    frame = pd.DataFrame(table)
    if ending == ".parquet":
        frame.to_parquet(stream, index=False)
    else:
        frame.to_csv(stream, index=False, sep=_SEPARATORS[ending])


def _as_columns(
    name: str, values: NDArray[Any], labels: Collection[Any], taken: Collection[str]
) -> list[tuple[str, NDArray[Any]]]:
    """Return the columns of an array: a table of probabilities has a column ``p_LABEL`` for each label."""
    if values.ndim == 1:
        return [(name, values)]
    flat = values.reshape(len(values), -1)
    ends = list(map(str, labels)) if flat.shape[1] == len(labels) else [str(k) for k in range(flat.shape[1])]
    stem = "p" if flat.shape[1] == len(labels) else name
    while any(f"{stem}_{end}" in taken for end in ends):
        stem = f"{stem}_{name}"
    return [(f"{stem}_{end}", flat[:, k]) for k, end in enumerate(ends)]


def _without_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is read without running code: objects as texts, missing ones as empty texts."""
    if values.dtype != object:
        return values
    import numpy as np
    import pandas as pd

    texts = pd.Series(values.ravel()).map(str, na_action="ignore").fillna("")
    return texts.to_numpy().astype(np.str_).reshape(values.shape)


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
smallest cross-validated log score among those that keep the accuracy.

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
    add("-o", "--output", type=_parse_output, required=True, metavar="OUT.csv", help="where to write predictions")
    add("--method", type=_parse_method, default=_AUTO, metavar="METHOD", help="auto (default), or a method, as below")
    add("--map", type=Path, metavar="FILE.json", help="where to write the map (default: OUT.json)")
    add_option(repair, "--plot", "where to draw before and after (default: OUT.png)")
    add("--n-folds", type=parse_count, default=5, metavar="K", help="number of folds, unless --folds (default: 5)")
    add_option(repair, "--lens")
    add_option(repair, "--statistic")
    add_option(repair, "--resamples", "number of draws (default: 9,999, fewer for large data)")
    add_option(repair, "--alpha")
    add_option(repair, "--exit-code", f"exit after the repair with status {MEANING}")
    add_option(repair, "--json")
    add_file_options(repair)
    add_draws(repair, "the folds and the draws")
    repair.set_defaults(words=WORDS | {"recalibrators": "--method"})


def _run(options: argparse.Namespace) -> int:
    outputs = {
        "-o": options.output,
        "--map": options.map or options.output.with_suffix(".json"),
        "--plot": options.plot or options.output.with_suffix(".png"),
    }
    _check_outputs(outputs, options.file)
    given: Any = options.file
    if str(given) == "-":  # read once for the predictions, and once for what else is in it
        given = io.BytesIO(standard_input().read())
    if options.folds is None:
        options.words = options.words | {"folds": "--n-folds"}
    data = read_file(given, options)
    rest = _other_columns(given, data, options)
    recalibrator = _method(options.method)
    few = options.n_folds < 2 and not options.folds
    refuse_if(few, "--n-folds must be at least 2: every fold is repaired by a map that was fitted to the others")

    from caltest.recalibration import recalibration_study

    study = recalibration_study(
        data.y_true,
        {"the model": data.y_prob},
        {str(options.method): recalibrator},
        folds=options.n_folds if data.folds is None else data.folds,
        **problem_of(data),
        lens=lens_for(options.lens, data),
        statistics=None if options.statistic is None else [options.statistic],
        **computing(options),
    )
    row = study.rows[1]
    labels = list(range(data.n_classes)) if data.classes is None else list(data.classes)
    # Before the last fit, so that finished work is not lost if that fails.
    write_columns(outputs["-o"], repaired_columns(data, rest, study, row.recalibrator), labels)
    fitted = recalibrator.set_params(classes=labels).fit(data.y_prob, data.y_true, data.sample_weight)
    fitted.save(outputs["--map"])

    from caltest.plotting._recalibration import save_before_after

    save_before_after(study, row.recalibrator, outputs["--plot"])
    verdict = f"{study.achieved(row.recalibrator)} {_how(options.method, study, fitted)}"
    text = wrapped([verdict, f"Label column: {data.label}. {columns_of(data)}"], "\n\n")
    method = " ".join(repr(fitted.chosen).split())
    show(options, f"{text}\n\n{study}", facts_of(data), verdict=verdict, method=method, **study.to_dict())
    for what, path in zip(("recalibrated predictions", "map", "picture"), outputs.values(), strict=True):
        say_written(what, path)
    return code_of(row.decision) if options.exit_code else 0


def _other_columns(given: Any, data: PredictionFile, options: argparse.Namespace) -> dict[str, Any]:
    """Return the columns of the file that are neither labels nor probabilities."""
    from caltest.predictions.files._read import read_other_columns

    if given is not options.file:
        given.seek(0)
    return read_other_columns(given, {data.label, *data.prob}, **reading_of(options))


def _how(given: str, study: RecalibrationStudy, fitted: Recalibrator) -> str:
    """Return how the method was chosen, and what was fitted to all observations."""
    from caltest.recalibration.study._study_entries import method_in_words

    if fitted.unchanged_:
        return (
            "The map that was written leaves predictions as they are, because no method predicts held-out observations "
            "better; the tests judge maps that were chosen without the fold that they predict."
        )
    final: Any = fitted.chosen
    temperature = f" (T = {final.temperature_:.3g})" if hasattr(final, "temperature_") else ""
    what = (
        f"The map that was written is {method_in_words(final)}{temperature}, fitted to all observations; the tests "
        "judge maps that were fitted without the fold that they predict."
    )
    if given != _AUTO:
        return what
    rule = "the smallest cross-validated log score among the methods that keep the accuracy"
    return f"{what} It has {rule}; in each fold the choice was repeated without the labels of the fold."


def _method_names() -> list[str]:
    """Return the names of the methods, without loading scikit-learn."""
    return [
        *("TemperatureScaling", "VectorScaling", "MatrixScaling", "DirichletCalibration", "PlattScaling"),
        *("BetaCalibration", "IsotonicCalibration", "HistogramBinning", "ScalingBinning", "SplineCalibration"),
    ]


def _parse_method(text: str) -> str:
    names, name = _method_names(), text.partition("(")[0]
    if text != _AUTO and name not in names:
        near = [known for known in names if name and known.lower().startswith(name.lower())]
        meant = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
        msg = f"must be auto or a method such as TemperatureScaling(), got {text!r}; {meant}"
        raise argparse.ArgumentTypeError(msg)
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
        msg = f"--method: {error}"
        raise ValueError(msg) from None
    return found() if isinstance(found, type) else found


def _parse_output(text: str) -> Path:
    path = Path(text)
    if path.suffix not in ENDINGS:
        msg = f"must name a file such as OUT.csv, OUT.tsv, OUT.parquet or OUT.npz, got {text}"
        raise argparse.ArgumentTypeError(msg)
    return path


def _check_outputs(outputs: dict[str, Path], source: Path) -> None:
    """Refuse folders that do not exist, the file that is read, and one file for two things."""
    for option, path in outputs.items():
        refuse_if(not path.parent.is_dir(), f"{option}: the folder {path.parent} does not exist")
        refuse_if(
            path.resolve() == source.resolve(),
            f"{option} would replace the file that is read, {source}: name another one",
        )
    same = len({path.resolve() for path in outputs.values()}) < len(outputs)
    refuse_if(same, "-o, --map and --plot must name different files")
    require_places(outputs.values())
    if any(path.exists() for path in outputs.values()):
        say("note", f"replacing {', '.join(str(path) for path in outputs.values() if path.exists())}")
