"""``caltest apply MAP FILE -o OUT``: a saved recalibration map, applied to the predictions of a new file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from caltest.cli._messages import WORDS, refuse_if, say_written, show, wrapped
from caltest.cli._options import (
    FILES,
    OF_VALUES,
    add_command,
    add_option,
    add_reading,
    add_values,
    chosen,
    reading_of,
    reread,
)
from caltest.cli._recalibrated_file import RecalibratedFile, check_outputs, parse_output
from caltest.predictions.inputs._refusals import shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from caltest.recalibration import Recalibrator

_EXAMPLES = """
examples:
  caltest repair predictions.csv -o repaired.csv --map map.json
  caltest apply map.json new.csv -o new_repaired.csv
  caltest apply map.json new.parquet --prob p_cat,p_dog,p_eel -o out.parquet

The map is what 'caltest repair' wrote, or 'save' of a method in Python. OUT has
all columns of the file, in their order, with the recalibrated probabilities in
the place of the others. Labels are not needed. To test whether the recalibrated
predictions are calibrated, take observations that the map was not fitted to.
"""


def add_to(commands: Any) -> None:
    """Add ``apply`` to the commands of a parser."""
    apply = add_command(
        commands,
        "apply",
        _run,
        help="recalibrate new predictions by the map that 'repair' wrote",
        description="Recalibrate the predictions in a file by a map that was fitted before. The file needs no labels.",
        epilog=_EXAMPLES,
    )
    add = apply.add_argument
    add("map", type=Path, metavar="MAP.json", help="the map")
    add("file", type=Path, metavar="FILE", help=FILES)
    add("-o", "--output", type=parse_output, required=True, metavar="OUT.csv", help="where to write predictions")
    words = "probability columns in the order of the classes of the map (default: those to which it was fitted)"
    add_option(apply, "--prob", words)
    add_option(apply, "--json", "print JSON instead of text")
    add_values(apply)
    add_reading(apply)
    apply.set_defaults(words=WORDS | {"X": "the probability columns"})


def _run(options: argparse.Namespace) -> int:
    from caltest.recalibration.study._study_entries import method_in_words
    from caltest.results._description import counted

    found, given = _load(options.map), reread(options.file)
    order = found.columns_.argsort()  # of the classes as they were passed to the fit
    labels = found.classes_[order].tolist()
    names, prob = _probabilities(given, found, labels, options)
    mapped = found.predict_proba(prob if prob.shape[1] > 1 else prob[:, 0])[:, order][:, -prob.shape[1] :]
    check_outputs({"-o": options.output}, [options.map, options.file])
    file = RecalibratedFile(options.output, options)
    file.fill(given, mapped, names, labels)
    file.write()

    what = "confidence" if prob.shape[1] > 1 else f"predicted probability of {labels[1]}"
    before, after = (float(one.max(axis=1).mean()) for one in (prob, mapped))
    source = "standard input" if str(options.file) == "-" else str(options.file)
    done = "stay as they are, because the map changes nothing"
    if not found.unchanged_:
        done = f"are recalibrated by {method_in_words(found.chosen)}"
    said = (
        f"{source}: the predictions of {counted(len(prob))} {done}. The average {what} is "
        f"{100 * before:.1f} % before and {100 * after:.1f} % after."
    )
    facts = {"source": source, "n_samples": len(prob), "prob": names, "classes": labels}
    numbers = {"quantity": f"average {what}", "before": before, "after": after}
    show(options, wrapped([said]), facts, method=" ".join(repr(found.chosen).split()), **numbers)
    say_written("recalibrated predictions", options.output)
    return 0


def _load(path: Path) -> Recalibrator:
    """Return the fitted map of a file; refuse one that no file can be mapped by."""
    from caltest.recalibration import load_recalibrator

    refuse_if(not path.is_file(), f"no such file: {path}")
    found = load_recalibrator(path)
    refuse_if(not hasattr(found, "classes_"), f"{path} holds a method that was not fitted yet: fit and save it first")
    wrong = f"{path} is a map of {found.input}, and files hold probabilities: apply it in Python, by `predict_proba`"
    refuse_if(found.input != "probabilities", wrong)
    return found


def _probabilities(
    given: Path | BinaryIO, found: Recalibrator, labels: list[Any], options: argparse.Namespace
) -> tuple[list[str], NDArray[Any]]:
    """Return names and values ``(n_samples, n_columns)`` of the probability columns, in the order of the labels.

    Columns are those of ``--prob``, or have the names of those that the map was fitted to, or of its classes.
    """
    from caltest.predictions.files._read import read_probabilities

    of_map = getattr(found, "feature_names_in_", None)
    known = None if of_map is None else of_map[found.columns_.argsort() if len(of_map) > 1 else [0]].tolist()
    by_name = options.prob is None or sorted(options.prob) == sorted(known or ())
    of_columns = f", columns {shortened(known)}" if known and known != list(map(str, labels)) else ""
    what = f"the map is for the classes {shortened(labels)}{of_columns}"
    advice = f"{what}; name the columns of these classes, in this order, with --prob"
    if found.n_features_in_ == 1:
        what = f"the map is for the probability of {labels[1]}" + (f", column {known[0]}" if known else "")
        advice = f"{what}; name this column with --prob"
    asked = known if by_name else options.prob
    how = reading_of(options) | chosen(options, *OF_VALUES, "normalise")
    columns, prob = read_probabilities(given, asked, labels, advice, **how)
    names = list(columns.names)
    wrong = f"{columns.name}: there are {prob.shape[1]} columns of probabilities, {shortened(names)}; {advice}"
    refuse_if(prob.shape[1] != found.n_features_in_, wrong)
    if known or options.prob or len(names) == 1:
        return names, prob
    bare, wanted = columns.bare, list(map(str, labels))
    refuse_if(sorted(bare) != sorted(wanted), f"{columns.name}: the columns are {shortened(names)}; {advice}")
    places = [bare.index(label) for label in wanted]
    return [names[place] for place in places], prob[:, places]
