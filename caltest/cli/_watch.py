"""``caltest watch FILE``: follow predictions that keep coming, until calibration is rejected."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from caltest.cli._followed_file import FollowedFile
from caltest.cli._messages import refuse_if, say
from caltest.cli._options import (
    about_file,
    add_command,
    add_event,
    add_option,
    add_values,
    columns_of,
    lens_for,
    parse_count,
    parse_lead,
    parse_number,
    read_file,
    standard_input,
)
from caltest.predictions.files._source import content_of
from caltest.predictions.inputs._refusals import refuse, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from caltest.predictions import PredictionFile
    from caltest.predictions.files._table import Table
    from caltest.streaming import CalibrationMonitor, MonitorResult

ALARM = 1  # exit code
_BYTES = 2**22  # that are read at once
_SHOWN = 60  # characters of a line that is left out
_TRIED = 100  # lines with which columns and classes are guessed again, as long as they are not clear

_EXAMPLES = """
examples:
  caltest watch predictions.csv
  tail -n +1 -F predictions.csv | caltest watch -
  caltest watch log.jsonl --label outcome --prob risk --alpha 0.001
  caltest watch predictions.csv --classes yes --every 1000 --json
  caltest watch predictions.csv --once          what is there now
  caltest watch forecasts.csv --time date --lead 7D
  caltest watch visits.csv --batch patient

Every line is one observation, written when its label is known. With --time,
lines are in the order of their predictions, and those of the last time wait
for a later one; with --batch, those of a batch stand together. A line counts
when it ends with a line break. A file that was rotated, deleted or cut off is
followed under its name, as by tail -F. Exit codes: 1 after an alarm, 0 at the
end of the input without one, 2 after an error.
"""


def add_to(commands: Any) -> None:
    """Add ``watch`` to the commands of a parser."""
    watch = add_command(
        commands,
        "watch",
        _run,
        help="follow a growing file, with an alarm when calibration is rejected",
        description="Follow a growing file of predictions and labels, or standard input, and stop with exit code 1 "
        "when the predictions are shown not to be calibrated. However long it runs, the probability of a false alarm "
        "is at most --alpha, if each prediction is made after all earlier labels are known, or those that --time and "
        "--lead or --batch say, or if the observations are independent of each other.",
        epilog=_EXAMPLES,
    )
    add = watch.add_argument
    add("file", type=Path, metavar="FILE", help="CSV, TSV or JSON lines, which may grow; - is standard input")
    add_option(watch, "--lens")
    add_option(watch, "--alpha", "largest probability of a false alarm over all time (default: %(default)s)")
    words = "print a line about every N observations (default: %(default)s)"
    add("--every", type=parse_count, default=10_000, metavar="N", help=words)
    seconds = parse_number(float, lambda value: 0 < value < float("inf"), "a positive number of seconds")
    add("--poll", type=seconds, default=1.0, metavar="S", help="look for new lines every S seconds (default: 1)")
    add("--once", action="store_true", help="stop at the end of the file instead of waiting for more")
    add("--keep-going", action="store_true", help="go on after an alarm; the exit code at the end is still 1")
    add_option(watch, "--json", "print one line of JSON instead of each text")
    columns = watch.add_argument_group("columns and format of the file")
    add_option(columns, "--label")
    add_option(columns, "--prob", "probability columns, separated by commas")
    add_option(columns, "--classes")
    add_event(columns)
    add_values(columns)
    of_time = watch.add_argument_group("predictions that are made before earlier labels are known").add_argument
    of_time("--time", metavar="COLUMN", help="time of each prediction: dates, or numbers, which do not go backwards")
    of_time("--batch", metavar="COLUMN", help="batch of each prediction, such as its patient, in the place of --time")
    words = "how long after its prediction a label is known, such as 7D or 12h, or a number of times, batches or lines"
    of_time("--lead", type=parse_lead, metavar="LEAD", help=f"{words} (default: before the next prediction)")
    words = "time at which each label was reported; early ones are held back until all of their --time may be known"
    of_time("--known-at", metavar="COLUMN", help=words)
    formats = ("csv", "tsv", "jsonl")
    columns.add_argument("--format", dest="file_format", choices=formats, metavar="FORMAT", help="csv, tsv or jsonl")
    add_option(columns, "--sep")
    add_option(columns, "--decimal", default=".")
    add_option(columns, "--header", "whether the first line of a CSV file holds names")


def _run(options: argparse.Namespace) -> int:
    def wait() -> bool:
        time.sleep(options.poll)
        return True

    if str(options.file) == "-":
        stream: Any = standard_input("watch")
        return watch(partial(stream.read1, _BYTES), lambda: False, options, print)
    refuse_if(not options.file.exists(), f"no such file: {options.file}")
    refuse_if(not options.file.is_file(), f"{options.file} is not a regular file")
    content = content_of(options.file)
    refuse_if(
        content not in {None, "json", "jsonl"},
        f"{options.file}: watch follows CSV, TSV and JSON lines, and this is {content}; 'caltest test' reads it",
    )
    if not options.once:
        with FollowedFile(options.file, partial(say, "note")) as followed:
            return watch(followed.read, wait, options, print)
    with options.file.open("rb") as file:

        def read() -> bytes:
            shorter = os.fstat(file.fileno()).st_size < file.tell()
            refuse_if(shorter, f"{options.file} has become shorter while it was read: begin again")
            return file.read(_BYTES)

        return watch(read, lambda: False, options, print)


def watch(
    read: Callable[[], bytes | None], wait: Callable[[], bool], options: argparse.Namespace, show: Callable[..., object]
) -> int:
    """Follow a stream until an alarm or its end, and return the exit code.

    Parameters
    ----------
    read : callable
        Returns the next bytes, none where there are no new ones, and None where the file begins again.
    wait : callable
        Called then; returns whether more may come.
    options : Namespace
        The options of the command.
    show : callable
        Prints a text.

    Returns
    -------
    int
        1 after an alarm, 0 at the end without one.
    """
    lines = _Lines(options)
    shown, alarm_shown, printed = 0, None, 0
    try:
        for monitor in lines.updates(_complete_lines(read, wait, lines.name)):
            result = lines.result(monitor)
            if result.alarm is not None and alarm_shown is None:
                alarm_shown = printed = result.n_samples
                _show(result, options, show)
                if not options.keep_going:
                    return ALARM
            elif result.n_samples // options.every > shown:
                printed = result.n_samples
                _show(result, options, show, brief=True)
            shown = result.n_samples // options.every
    except KeyboardInterrupt:  # what was found until here is the last thing that is printed
        if lines.monitor is not None and lines.monitor.n_samples > printed:
            _show(lines.result(lines.monitor), options, show)
        raise
    if lines.monitor is None:
        refuse(f"{lines.name}: there are no observations in it")
    if alarm_shown != lines.monitor.n_samples:  # otherwise the same report was printed last
        _show(lines.result(lines.monitor), options, show)
    return 0 if alarm_shown is None else ALARM


def _show(
    result: MonitorResult, options: argparse.Namespace, show: Callable[..., object], *, brief: bool = False
) -> None:
    from caltest.results._description import counted
    from caltest.streaming.monitors._monitor_result import show_e_value

    if options.json:
        text = json.dumps(result.to_dict(), allow_nan=False)
    elif brief:
        pending = f" ({result.n_pending:,} pending)" if result.n_pending else ""
        text = f"{counted(result.n_samples)}{pending}: e-value {show_e_value(result.log_e_value)}"
        text += f" (alarm at {1 / result.alpha:.4g})" if result.alarm is None else f"; alarm at {result.alarm:,}"
    else:
        text = str(result)
    show(text, flush=True)


def _complete_lines(
    read: Callable[[], bytes | None], wait: Callable[[], bool], name: str
) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines that are complete, as they come, and whether the file ends there; another one may follow.

    A line that does not end with a line break may be cut off in the middle of a number, and is left out with a note.
    """
    begun, goes_on = b"", True
    while goes_on:
        new = read()
        if new:
            complete, mark, begun = (begun + new).rpartition(b"\n")
            if mark:
                yield complete + mark, False
        elif new is None or not wait():
            if begun.strip():
                text = begun.decode(errors="backslashreplace").strip()
                text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
                words = "is left out, because it does not end with a line break and may be cut off"
                say("note", f"{name}: the last line {words}: {text}")
            begun, goes_on = b"", new is None
            yield b"", True


class _Lines:
    """Lines of a file that become observations; columns and classes are those of the first ones."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.monitor: CalibrationMonitor | None = None
        self.name = "standard input" if str(options.file) == "-" else str(options.file)
        self._options = options
        self._first: PredictionFile | None = None
        self._head, self._n_lines = b"", 0
        self._waiting: _Problem | None = None

    def result(self, monitor: CalibrationMonitor) -> MonitorResult:
        """Return what a monitor has found, with the names of the file."""
        found = monitor.result()
        assert self._first is not None
        path = None if self.name == "standard input" else self._options.file
        return replace(found, verdict=about_file(found.verdict, self._first, self.name, path))

    def updates(self, parts: Iterator[tuple[bytes, bool]]) -> Iterator[CalibrationMonitor]:
        """Yield the monitor after each part of the lines that holds observations."""
        held, begins = b"", True
        for part, ended in parts:
            held += part
            if begins and self._first is not None:
                held = self._without_names(held)
            begins = ended
            n_lines = len(held.strip(b"\r\n").splitlines())
            names_alone = self._first is None and n_lines <= self._n_names(held)
            if held.strip() and not names_alone:
                end = self._n_lines + held.count(b"\n")
                try:
                    problem = self._read_first(held) if self._first is None else self._read_further(held)
                except ValueError:
                    if self._first is None and not ended and n_lines < _TRIED:
                        continue
                    raise
                complete = self._complete(problem)
                if complete is not None:
                    yield self._update(complete)
                held, self._n_lines = b"", end
            if ended:
                held, self._n_lines = b"", 0
        if self._waiting is not None:
            yield self._update(self._waiting)

    def _complete(self, new: _Problem) -> _Problem | None:
        """Return the observations to whose time nothing is added; those of the last time wait for a later one."""
        import numpy as np

        name = next((name for name in ("known_at", "time", "batch") if name in new.times), None)
        if name is None:
            return new
        whole = new if self._waiting is None else self._waiting.with_more(new)
        same = whole.times[name] == whole.times[name][-1]
        n = 0 if same.all() else int(np.flatnonzero(~same)[-1]) + 1
        self._waiting = whole.part(slice(n, None))
        return whole.part(slice(n)) if n else None

    def _without_names(self, lines: bytes) -> bytes:
        """Return the first lines of a further file without the names of its columns, which may be in another order."""
        from caltest.predictions.files._source import Source
        from caltest.predictions.files._text import read_text

        first, options = self._first, self._options
        head, mark, rest = lines.partition(b"\n")
        if not self._head or first is None:
            return lines
        source = Source(self.name, options.file_format, (head + mark) * 2, {})
        try:
            names = read_text(source, options.sep, options.decimal, 0, None).frame.columns
        except ValueError:  # two names are equal, as numbers can be
            return lines
        if not {first.label, *first.prob} <= set(names):
            return lines
        self._head, self._n_lines = head + mark, 1
        return rest

    def _n_names(self, lines: bytes) -> int:
        file_format = self._options.file_format or _format_of(self._options.file, lines)
        return 0 if file_format == "jsonl" or self._options.header is False else 1

    def _read_first(self, lines: bytes) -> _Problem:
        """Read lines whose columns and classes are not known yet."""
        options = self._options
        options.file_format = options.file_format or _format_of(options.file, lines)
        self._first = read_file(_Named(lines, self.name), options)
        if self._n_names(lines):
            self._head, self._n_lines = lines.partition(b"\n")[0] + b"\n", 1
        found = self._first
        said = f"Label column: {found.label}. Probability columns: {shortened(found.prob)}. {columns_of(found)}"
        print(said, file=sys.stderr, flush=True)
        rest = lines[len(self._head) :]
        times = self._times(self._table(rest)) if self._names_of_times else {}
        return _Problem(found.y_true, found.y_prob, self._lines(rest, len(found.y_true)), times)

    def _lines(self, lines: bytes, n: int) -> NDArray[Any]:
        """Return the numbers of the lines with observations, of some that follow those that were read."""
        import numpy as np

        filled = np.flatnonzero([bool(line.strip()) for line in lines.split(b"\n")])
        return self._n_lines + 1 + (filled if len(filled) == n else np.arange(n))

    @property
    def _names_of_times(self) -> dict[str, str]:
        names, options = ("time", "batch", "known_at"), vars(self._options)
        return {name: options[name] for name in names if options[name] is not None}

    def _times(self, table: Table) -> dict[str, NDArray[Any]]:
        """Return the columns that say when predictions were made, or of which batch they are."""
        import numpy as np

        found = {}
        for name, column in self._names_of_times.items():
            refuse_if(column not in table.frame.columns, f"{self.name}: there is no column {column!r}")
            values = table.frame[column]
            for row in np.flatnonzero(values.isna().to_numpy())[:1]:
                refuse(f"{self.name}: the value {table.place(row)}, column {column!r}, is missing")
            # Numbers of batches are texts, because other batches may have names.
            found[name] = values.astype(str).to_numpy() if name == "batch" else values.to_numpy()
        return found

    def _table(self, lines: bytes) -> Table:
        """Read lines with the names of columns of the first ones."""
        from caltest.predictions.files._formats import read_table
        from caltest.predictions.files._source import Source
        from caltest.predictions.files._text import read_text

        options = self._options
        header = 0 if self._head else None
        source = Source(f"{self.name}, from line {self._n_lines + 1} on", options.file_format, self._head + lines, {})
        if options.file_format == "jsonl":
            table = read_table(source, "infer")
        else:
            table = read_text(source, options.sep, options.decimal, header, None)
        numbers = self._lines(lines, len(table.frame))
        return replace(table, name=self.name, place=lambda row: f"in line {numbers[row]}")

    def _read_further(self, lines: bytes) -> _Problem:
        """Read lines with the columns of the first ones."""
        from caltest.predictions.files._layouts import arranged
        from caltest.predictions.files._values import labels, probabilities

        first, table = self._first, self._table(lines)
        assert first is not None
        table = arranged(table) if "layout" in first.reading else table
        absent = next((name for name in (first.label, *first.prob) if name not in table.frame.columns), None)
        refuse_if(
            absent is not None, f"{self.name}, from line {self._n_lines + 1} on: there is no column {absent!r} any more"
        )
        y_prob = probabilities(table, first.prob, self._options.input, self._options.verbal)
        y_prob = y_prob[:, 0] if first.y_prob.ndim == 1 else y_prob
        return _Problem(labels(table, first.label), y_prob, self._lines(lines, len(y_prob)), self._times(table))

    def _update(self, new: _Problem) -> CalibrationMonitor:
        from caltest.streaming import CalibrationMonitor

        if self.monitor is None:
            assert self._first is not None
            lens = lens_for(self._options.lens, self._first)
            options = self._options
            self.monitor = CalibrationMonitor(options.alpha, lens, lead=options.lead, classes=self._first.classes)
        try:
            return self.monitor.update(new.y_true, new.y_prob, **new.times)
        except ValueError as error:
            found = re.sub(r"\bin row (\d+)", lambda row: f"in line {new.line[int(row[1])]}", str(error))
            refuse(f"{self.name}, from line {new.line[0]} on: {found}")


class _Problem(NamedTuple):
    """Labels, predictions, the numbers of their lines, and the times or batches of some observations."""

    y_true: NDArray[Any]
    y_prob: NDArray[Any]
    line: NDArray[Any]
    times: dict[str, Any]

    def part(self, rows: slice) -> _Problem:
        """Return some of the observations."""
        times = {name: one[rows] for name, one in self.times.items()}
        return _Problem(self.y_true[rows], self.y_prob[rows], self.line[rows], times)

    def with_more(self, new: _Problem) -> _Problem:
        """Return these observations and further ones."""
        import numpy as np

        times = {name: np.append(one, new.times[name]) for name, one in self.times.items()}
        y_true, line = np.append(self.y_true, new.y_true), np.append(self.line, new.line)
        return _Problem(y_true, np.append(self.y_prob, new.y_prob, axis=0), line, times)


class _Named(io.BytesIO):
    """Bytes that are read as a stream with a name."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def _format_of(path: Path, lines: bytes) -> str:
    """Return the format that the name of a file says, or its first lines."""
    by_name = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".tsv": "tsv", ".tab": "tsv"}
    return by_name.get(path.suffix.lower(), "jsonl" if lines.lstrip().startswith(b"{") else "csv")
