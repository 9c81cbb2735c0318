"""Options that commands have in common: what they are called, and what their texts mean."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from caltest import predictions, statistics, streaming
from caltest.cli._messages import MEANING, WORDS, held, refuse_if, translate
from caltest.predictions.inputs._refusals import refuse, shortened
from caltest.results._expressions import PublicNames, read_object

if TYPE_CHECKING:
    from caltest.predictions import Lens, Partition, PredictionFile
    from caltest.results import Verdict
    from caltest.statistics import Statistic
    from caltest.streaming import RedrawnCells

LENSES = "Canonical(), Confidence(), ClassWise(3), TopK(2), TopRank(2), WithinTop(2), ClassGroups([[0, 1], [2, 3]])"
PARTITIONS = (
    "VarianceTree(), EqualWidth(15), EqualMass(10), EqualSpread(15), Edges([0.5, 0.9]), AgainstRest(0), "
    "SimplexGrid(5), FixedTree([1, 0, 0], [0.5, 0, 0], [1, -1, -1])"
)


class _HelpFormatter(argparse.HelpFormatter):
    """Help whose examples keep their lines: texts that begin with a line break."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text.strip("\n") if text.startswith("\n") else super()._fill_text(text, width, indent)


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], **more: Any
) -> argparse.ArgumentParser:
    """Add a command, and return its parser: ``help``, ``description`` and ``epilog`` are texts of `argparse`."""
    parser: argparse.ArgumentParser = commands.add_parser(name, formatter_class=_HelpFormatter, **more)
    parser.set_defaults(run=run, parser=parser, words=WORDS)
    return parser


FILES = "CSV, TSV, Parquet, Arrow (Feather), JSON (lines), Excel, NPZ or NPY, also compressed; - is standard input"

# What texts mean. Refusals are `argparse.ArgumentTypeError`, so that they name their option.


def parse_number(kind: type, allowed: Callable[[Any], bool], words: str) -> Callable[[str], Any]:
    """Return a function that reads a number of some kind, and says in ``words`` which numbers are allowed."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not allowed(value):
            refuse(f"must be {words}, got {text!r}", argparse.ArgumentTypeError)
        return value

    return parse


parse_count = parse_number(int, lambda value: value >= 1, "an integer >= 1")
_parse_threshold = parse_number(float, lambda value: 0 < value < 1, "risks strictly between 0 and 1, such as 0.1,0.2")
parse_level = parse_number(float, lambda value: 0 < value < 1, "a number strictly between 0 and 1")


def parse_thresholds(text: str) -> list[float]:
    """Return risks separated by commas."""
    return [_parse_threshold(part) for part in text.split(",")]


def parse_lead(text: str) -> int | str:
    """Return a number of steps of time, or a duration."""
    from caltest.predictions.inputs._times import read_duration

    if text.strip().isdecimal():
        return int(parse_count(text))
    try:
        read_duration(text)
    except (ValueError, TypeError):
        refuse(
            f"must be a whole number >= 1, or a duration such as 7D or 12h, got {text!r}", argparse.ArgumentTypeError
        )
    return text


class LeadColumn(str):
    """The name of a column with the lead of each prediction."""


def parse_leads(text: str) -> int | str:
    """Return a number of steps of time, a duration, or otherwise the name of a column."""
    try:
        return parse_lead(text)
    except argparse.ArgumentTypeError:
        if not any(mark.isalpha() for mark in text):
            raise
        return LeadColumn(text)


def parse_names(text: str) -> list[str]:
    """Return names separated by commas."""
    return [name.strip() for name in text.split(",")]


def parse_measures(text: str) -> list[str]:
    """Return measures separated by commas, such as "log_score,ECE(EqualWidth(15), euclidean)"."""
    depth, found = 0, [""]
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [name.strip() for name in found]


def parse_verbal(text: str) -> dict[str, float]:
    """Return the probability of each word in "very likely=0.9,unlikely=0.2"."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {word.strip(): float(value) for word, mark, value in pairs if word.strip() or not mark}
    except ValueError:
        refuse(
            f"must be words and probabilities such as 'very likely=0.9,unlikely=0.2', got {text!r}",
            argparse.ArgumentTypeError,
        )


def parse_micro_cells(text: str) -> int | RedrawnCells:
    """Return a number of micro-cells, or the cells of more than two outcomes that an expression names."""
    from caltest.streaming import RedrawnCells

    example = "RedrawnCells(EqualWidth(4))"
    if text.startswith("RedrawnCells"):
        return _read(text, RedrawnCells, example)
    return parse_number(int, lambda value: value >= 1, f'an integer >= 1, or "{example}"')(text)


def parse_statistic(text: str) -> Statistic:
    """Return the statistic that an expression names."""
    from caltest.statistics import Statistic

    return _read(text, Statistic, "ECE(EqualWidth(15))")


def parse_partition(text: str) -> Partition:
    """Return the partition that an expression names."""
    from caltest.predictions import Partition

    return _read(text, Partition, "EqualMass(10)")


def parse_lens(text: str) -> Lens | str:
    """Return the lens that an expression names; the text itself if it names classes, which only the file knows."""
    from caltest.predictions import Lens

    try:
        return _read(text, Lens, "ClassWise(3)", _ask_for_labels)
    except _LabelsNeededError:
        return text


class _LabelsNeededError(Exception):
    """An expression names a class by its label."""


def _ask_for_labels(label: str) -> int:
    raise _LabelsNeededError


def _read(text: str, kind: type, example: str, label: Any = None) -> Any:
    try:
        found = read_object(text, PublicNames(predictions, statistics, streaming), label, example)
    except ValueError as error:
        refuse(translate(str(error), {}).removesuffix("."), argparse.ArgumentTypeError)
    if not isinstance(found, kind):
        refuse(
            f"{text!r} is not a {kind.__name__.lower()} such as {example}; known are {_known(kind)}",
            argparse.ArgumentTypeError,
        )
    return found


def _known(kind: type) -> str:
    """Return the public names of a kind of object."""
    things = dict(PublicNames(predictions, statistics))
    return ", ".join(sorted(n for n, t in things.items() if isinstance(t, type) and issubclass(t, kind) and t != kind))


def parse_picture(text: str) -> Path:
    """Return the path of a picture that can be written."""
    from caltest.plotting._reliability import picture_formats

    path = Path(text)
    if path.suffix.lstrip(".").lower() not in picture_formats():
        refuse(f"must name a picture such as FILE.png, got {text}", argparse.ArgumentTypeError)
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        refuse(f"cannot write to {text}", argparse.ArgumentTypeError)
    return path


LENS = f"what to look at, one of {LENSES}; a class may be named by its label: ClassWise(dog)"
CLASSES = "labels of the probability columns, in their order, or of a single column the label of the event"
_SHARED: dict[str, dict[str, Any]] = {
    "--label": {"metavar": "NAME", "help": "label column (guessed by default)"},
    "--prob": {"type": parse_names, "metavar": "NAMES", "help": "probability columns (guessed by default)"},
    "--classes": {"type": parse_names, "metavar": "NAMES", "help": CLASSES},
    "--sep": {
        "metavar": "MARK",
        "help": 'separator of a CSV file: ";", "tab" or " " for blanks (by default the one that divides all lines)',
    },
    "--decimal": {"metavar": "MARK", "help": 'decimal mark of a CSV file, "." or "," (guessed by default)'},
    "--header": {"action": argparse.BooleanOptionalAction},
    "--lens": {"type": parse_lens, "metavar": "LENS", "help": LENS},
    "--statistic": {"type": parse_statistic, "metavar": "STATISTIC", "help": "test statistic (default: Omnibus())"},
    "--resamples": {"dest": "n_resamples", "type": parse_count, "metavar": "B"},
    "--alpha": {
        "type": parse_level,
        "default": 0.05,
        "metavar": "LEVEL",
        "help": "level of the tests (default: %(default)s)",
    },
    "--exit-code": {"action": "store_true", "help": f"exit with status {MEANING}"},
    "--json": {"action": "store_true", "help": "print JSON instead of tables"},
    "--plot": {"type": parse_picture, "metavar": "FILE.png"},
    "--seed": {
        "dest": "rng",
        "type": parse_number(int, lambda value: value >= 0, "an integer >= 0"),
        "default": 0,
        "metavar": "S",
    },
    "--workers": {
        "type": parse_number(int, lambda n: n >= 1 or n == -1, "an integer >= 1, or -1 for all processors"),
        "default": -1,
        "metavar": "N",
        "help": "threads, -1 for all processors; the results do not depend on it (default: %(default)s)",
    },
}
"""Options that several commands have, as `argparse` takes them."""


def add_option(parser: Any, name: str, text: str | None = None, **changes: Any) -> None:
    """Add an option that several commands have; its help is ``text`` where it is not the usual one."""
    parser.add_argument(name, **_SHARED[name] | ({} if text is None else {"help": text}) | changes)


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which columns of a file are what, how it is read, and how observations depend."""
    group = parser.add_argument_group("columns of a file")
    add_option(group, "--label")
    add_option(group, "--prob", "probability columns, separated by commas (guessed by default)")
    words = "(default: the names of the columns, or 0, 1, ...); --classes=-1,1 if the first one begins with -"
    add_option(group, "--classes", f"{CLASSES} {words}")
    words = "names of the labels 0, 1, ..., if labels are numbers and columns have names"
    group.add_argument("--class-names", metavar="NAMES", type=parse_names, help=words)
    add_event(group)
    add_values(group)
    words = "leave out rows with missing values, and say how many of which column"
    group.add_argument("--drop-missing", action="store_true", help=words)
    words = "which rows to take, a condition on columns such as \"split == 'test'\""
    group.add_argument("--filter", dest="where", metavar="CONDITION", help=words)
    words = "column of cross-validation folds: each fold is tested separately, and the p-values are combined"
    group.add_argument("--folds", metavar="NAME", help=words)
    add_reading(parser)
    add = parser.add_argument_group("dependent or weighted observations").add_argument
    add("--groups", metavar="COLUMN", help="group of each observation, such as its patient, if groups may be dependent")
    add("--weights", dest="sample_weight", metavar="COLUMN", help="weight of each observation")


def add_event(group: Any) -> None:
    """Add the option that says which label the event is."""
    words = "the label whose probability the only probability column is; of several classes the one to judge"
    group.add_argument("--event", metavar="LABEL", help=words)


def add_values(group: Any) -> None:
    """Add the options that say what the numbers and words of probability columns mean."""
    words = "the probability columns hold logits: softmax, of one column the logistic function"
    kind: dict[str, Any] = {"dest": "input", "action": "store_const", "default": "probabilities"}
    group.add_argument("--logits", const="logits", help=words, **kind)
    group.add_argument("--percent", const="percent", help='they hold percentages, such as 3.2 or "3.2 %%"', **kind)
    words = "the probabilities that words stand for: --verbal 'very likely=0.9,unlikely=0.2'"
    group.add_argument("--verbal", type=parse_verbal, metavar="WORDS", help=words)


def add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say when predictions were made, and when their labels were known."""
    add = parser.add_argument_group("forecasts in time").add_argument
    words = "time of each prediction: dates, or numbers; labels of predictions less than a lead apart may be dependent"
    add("--time", metavar="COLUMN", help=words)
    words = (
        "how long after its prediction a label is known, such as 7D or 12h, a number of steps between the times, or "
    )
    words += "the column with the lead of each prediction, the longest of which counts"
    add("--lead", type=parse_leads, metavar="LEAD", help=f"{words} (default: before the next prediction)")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a file is read."""
    group = parser.add_argument_group("how a file is read")
    formats = ("csv", "tsv", "json", "jsonl", "parquet", "arrow", "excel", "npz", "npy")
    words = f"{', '.join(formats[:-1])} or {formats[-1]}, where the ending of the file does not say it"
    group.add_argument("--format", dest="file_format", choices=formats, metavar="FORMAT", help=words)
    add_option(group, "--sep")
    add_option(group, "--decimal")
    words = "whether the first line holds names (by default it must look like names, not like data)"
    add_option(group, "--header", words)
    words = "encoding of a CSV file, such as utf-16 or latin-1 (default: UTF-8)"
    group.add_argument("--encoding", metavar="NAME", help=words)
    words = "divide each row of rounded probabilities by its sum, and say the largest change"
    group.add_argument("--normalise", "--normalize", action="store_true", help=words)


def add_draws(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options of everything that draws."""
    group = parser.add_argument_group("computation")
    add_option(group, "--seed", f"seed of {what} (default: %(default)s)")
    add_option(group, "--workers")
    parser.set_defaults(progress=True)


def chosen(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those of some options that the command has, as the public functions take them."""
    return {name: value for name, value in vars(options).items() if name in names}


def computing(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of everything that draws, as the public functions take them."""
    return chosen(options, "n_resamples", "n_exceedances", "alpha", "workers", "rng", "progress")


def given_option(options: argparse.Namespace, names: Iterable[str]) -> str | None:
    """Return the first of some options that is not as it is without being given."""
    return next((name for name in names if getattr(options, name) != options.parser.get_default(name)), None)


# What files and options mean together.


OF_VALUES = ("input", "verbal")
OF_ROWS = ("event", *OF_VALUES, "drop_missing", "where")
OF_COLUMNS = (
    "label",
    "prob",
    "classes",
    "class_names",
    "folds",
    "groups",
    "sample_weight",
    "time",
    *OF_ROWS,
    "normalise",
)
OF_FORMAT = ("file_format", "sep", "decimal", "header", "encoding")
_ORDER = (*OF_FORMAT, *OF_COLUMNS)
"""Options that say what the columns of a file are, and how it is read, as `read_predictions` takes them."""


def read_file(file: Path | BinaryIO, options: argparse.Namespace) -> PredictionFile:
    """Return the predictions of a file, of standard input, or of what was read from it."""
    from caltest.predictions import read_predictions
    from caltest.predictions.files._source import UndecidedError

    source = standard_input() if str(file) == "-" else file
    with held(options.notes):
        try:
            named: dict[str, Any] = {} if (lead := lead_column(options)) is None else {"lead": lead}
            return read_predictions(source, **chosen(options, *OF_COLUMNS, "subgroup"), **named, **reading_of(options))
        except UndecidedError as error:
            refuse_if(not error.options.keys() <= vars(options).keys(), str(error))
            decided = argparse.Namespace(**(vars(options) | error.options))
            own = " ".join(_typed(decided, [name for name in _ORDER if name in error.options]))
            refuse(f"{str(error).removesuffix('.')}. If that is what the file means: {options.command} {own}")


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how a file is read, as `read_predictions` takes it."""
    header = "infer" if options.header is None else 0 if options.header else None
    return chosen(options, *OF_FORMAT) | {"header": header}


def lead_column(options: argparse.Namespace) -> str | None:
    """Return the column with the lead of each prediction, if it was named."""
    lead = getattr(options, "lead", None)
    return lead if isinstance(lead, LeadColumn) else None


def problem_of(data: PredictionFile) -> dict[str, Any]:
    """Return classes, groups and weights, as the public functions take them."""
    return {"classes": data.classes, "groups": data.groups, "sample_weight": data.sample_weight}


NO_TIME = "--lead needs --time, the column with the time of each prediction"


def times_of(data: PredictionFile, options: argparse.Namespace) -> dict[str, Any]:
    """Return times and lead, as the public functions take them; without times a column of dates that may be named."""
    import shlex
    from dataclasses import replace

    time: Any = data.time
    if time is None and data.offered_time is not None:
        option = f"--time {shlex.quote(str(data.offered_time.column))} --lead LEAD"
        time = replace(data.offered_time, option=option)
    no_time = options.lead is not None and time is None
    refuse_if(no_time, NO_TIME)
    return {"time": time, "lead": options.lead if lead_column(options) is None else data.lead}


def reread(file: Path | BinaryIO) -> Path | BinaryIO:
    """Return a file that can be read twice: what standard input holds, and any other as it is."""
    return io.BytesIO(standard_input().read()) if str(file) == "-" else file


def standard_input(command: str = "test") -> BinaryIO:
    """Return standard input; refuse a terminal with advice for a command.

    Raises
    ------
    ValueError
        If it is a terminal.
    """
    advice = f"name a file, or send one: caltest {command} - < FILE"
    refuse_if(sys.stdin.isatty(), f"standard input is a terminal: {advice}")
    return sys.stdin.buffer


def columns_of(data: PredictionFile) -> str:
    """Return a sentence that says which label has which column, and how this was found."""
    pairs = [f"{label} -> {column}" for label, column in data.columns.items()]
    found = f"; found by {translate(data.matched_by, WORDS)}" if data.matched_by else ""
    return f"Labels and their probability columns: {shortened(pairs)}{found}."


def named_columns(data: PredictionFile, options: argparse.Namespace) -> dict[str, str | None]:
    """Return what the columns are that were named besides labels and probabilities, with their names."""
    named = {"Folds": options.folds, "Groups": options.groups, "Weights": options.sample_weight}
    if "lead" in options:
        named["Times"] = options.time
        if options.lead is not None and data.time is None and data.offered_time is not None:
            named["Times"] = f"{data.offered_time.column} (guessed)"
        named["Leads"] = lead_column(options)
    return named


def guessed_or_named(data: PredictionFile, options: argparse.Namespace) -> str:
    """Return in sentences which columns were guessed or named."""
    named = named_columns(data, options)
    read = [f"Labels: column {data.label}{' (guessed)' if data.label_guessed else ''}."]
    read += [f"{what}: column {column}." for what, column in named.items() if column]
    usual = {"header", "probability columns"}
    guesses = [
        (what, said)
        for what, said in data.reading.items()
        if what == "rows" or ("(guessed)" in said and what not in usual)
    ]
    read += [f"{what.capitalize()}: {said}." for what, said in guesses]
    return " ".join([*read, *([columns_of(data)] if "guessed" in data.matched_by else [])])


def facts_of(data: PredictionFile) -> dict[str, Any]:
    """Return what JSON says about a file."""
    return {
        "n_samples": len(data.y_true),
        "label": data.label,
        "label_guessed": data.label_guessed,
        "prob": list(data.prob),
        "classes": data.classes,
        "columns": [{"label": label, "column": column} for label, column in data.columns.items()],
        "matched_by": data.matched_by,
        "reading": dict(data.reading),
    }


def typed_options(options: argparse.Namespace) -> list[str]:
    """Return the options that say which columns of the file are what, and how it is read, as they are typed."""
    own = ("label", "prob", "classes", "class_names", *OF_ROWS, *OF_FORMAT, "normalise")
    return _typed(options, (*own, "groups", "sample_weight", "time", "lead"))


OF_TEST = ("--lens", "--statistic")
"""Options of a test that a page does not have: it looks through all lenses."""


def typed_test(options: argparse.Namespace) -> list[str]:
    """Return the options above, and those that say what is tested and how it is decided."""
    return [*typed_options(options), *_typed(options, ("folds", "lens", "statistic", "alpha"))]


def typed_to_apply(options: argparse.Namespace) -> list[str]:
    """Return those of the options that say how the file is read which a file without labels needs too."""
    return _typed(options, ("prob", *OF_VALUES, *OF_FORMAT, "normalise"))


def _typed(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    import shlex

    flags = {"class_names": "--class-names", "file_format": "--format", "sample_weight": "--weights"}
    flags |= {"where": "--filter"}
    found = []
    for name in names:
        value = getattr(options, name, None)
        if name == "header":
            found += [] if value is None else ["--header" if value else "--no-header"]
        elif name in {"normalise", "drop_missing"}:
            found += [f"--{name.replace('_', '-')}"] if value else []
        elif name == "input":
            found += [] if value in {None, "probabilities"} else [f"--{value}"]
        elif value != options.parser.get_default(name):
            pairs = [f"{word}={number:g}" for word, number in value.items()] if isinstance(value, dict) else value
            text = ",".join(map(str, pairs)) if isinstance(pairs, list | tuple) else str(value)
            found.append(f"{flags.get(name, f'--{name}')} {shlex.quote(text)}")
    return found


def about_file(
    verdict: Verdict, data: PredictionFile, source: str, path: Path | None = None, typed: Sequence[str] = ()
) -> Verdict:
    """Return a verdict that names the file, its event and its column as the user wrote them.

    ``typed`` are the options with which the file was read and tested, which commands that are advised need too.
    """
    import shlex
    from dataclasses import replace

    if verdict.subject is None:
        return verdict
    file = "" if path is None else shlex.quote(str(path))
    named: dict[str, Any] = {"source": source, "path": file, "typed": tuple(typed)}
    if data.n_classes == 2 and not verdict.subject.of_confidence:
        ((event, column),) = [*data.columns.items()][-1:]
        # Columns without names are called by their numbers, which alone look like values.
        number = "column " if data.reading.get("header", "").startswith("none") else ""
        named |= {"event": f"{number}{data.label} = {event}", "column": f"{number}{column}"}
    return replace(verdict, subject=replace(verdict.subject, **named))


def lens_for(given: Lens | str | None, data: PredictionFile) -> Lens | None:
    """Return the lens of ``--lens`` for these classes.

    Raises
    ------
    ValueError
        If a label is none of the classes, or the lens does not fit their number.
    """
    import numpy as np

    n_classes = data.n_classes
    labels = list(map(str, range(n_classes) if data.classes is None else data.classes))

    def index(label: str) -> int:
        words = f"there is no class {label!r}; the classes of this file are {shortened(labels)}."
        refuse_if(label not in labels, words)
        return labels.index(label)

    try:
        found = read_object(given, PublicNames(predictions), index) if isinstance(given, str) else given
        if found is not None:
            found.induced(np.full((1, n_classes), 1 / n_classes))
    except ValueError as error:
        refuse(f"--lens: {error}")
    return found
