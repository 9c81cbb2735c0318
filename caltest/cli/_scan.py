"""``caltest scan`` and ``caltest merge``: the states of files that do not fit into memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import WORDS, code_of, refuse_if, say, say_written, show
from caltest.cli._options import (
    LENS,
    add_command,
    add_option,
    chosen,
    columns_of,
    given_option,
    lens_for,
    parse_micro_cells,
)
from caltest.predictions.inputs._refusals import refuse
from caltest.results._atomic_file import write_atomically
from caltest.results._description import counted

if TYPE_CHECKING:
    from caltest.streaming import CalibrationState

_EXAMPLES = """
examples:
  caltest scan 'data/*.parquet' -o state.npz
  caltest scan data --label y --prob p -o state.npz
  caltest scan data -o state.npz --scheduler tcp://10.0.0.1:8786
  caltest scan data -o state.npz --lens "Canonical()"
  caltest merge monday.npz tuesday.npz -o week.npz
  caltest test week.npz --statistic "HosmerLemeshow(EqualWidth(10))"

After an interruption the same command continues: files and row groups that are finished are
not read again.
"""
_EXAMPLES_OF_MERGE = """
examples:
  caltest merge monday.npz tuesday.npz -o week.npz
  caltest test week.npz --statistic "HosmerLemeshow(EqualWidth(10))"
"""


def add_to(commands: Any) -> None:
    """Add ``scan`` and ``merge`` to the commands of a parser."""
    scan = add_command(
        commands,
        "scan",
        _scan,
        help="sum up files that do not fit into memory, for 'caltest test'",
        description="Read Parquet or CSV files once, in constant memory, and write their state: sums over narrow cells "
        "(bins), from which 'caltest test' computes p-values.",
        epilog=_EXAMPLES,
    )
    scan.add_argument("files", nargs="+", metavar="FILES", help="Parquet or CSV files, folders, or patterns")
    scan.add_argument("-o", "--output", type=Path, required=True, metavar="STATE.npz", help="where the state is kept")
    for name in ("--label", "--prob", "--classes"):
        add_option(scan, name)
    add_option(scan, "--lens", f"{LENS} (default: the whole prediction of two classes, the confidence of more)")
    scan.add_argument(
        "--micro-cells",
        type=parse_micro_cells,
        default=4096,
        metavar="N",
        help="number of narrow cells, a power of 2 (default: %(default)s); for a lens with more than two outcomes its "
        'cells and draws, such as "RedrawnCells(EqualWidth(4), n_resamples=999)"',
    )
    add_option(scan, "--sep")
    add_option(scan, "--decimal", default=".")
    add_option(scan, "--workers", "threads, one file or some row groups each (default: all)")
    words = "a Dask cluster whose workers read, such as tcp://HOST:8786"
    scan.add_argument("--scheduler", metavar="ADDRESS", help=words)
    scan.set_defaults(
        words=WORDS | _WORDS, hint="the same command continues with the files that are left", progress=True
    )
    merge = add_command(
        commands,
        "merge",
        _merge,
        help="merge states that 'caltest scan' wrote",
        description="Merge states with the same settings. The order does not matter.",
        epilog=_EXAMPLES_OF_MERGE,
    )
    merge.add_argument("states", nargs="+", type=Path, metavar="STATE.npz", help="states")
    merge.add_argument("-o", "--output", type=Path, required=True, metavar="STATE.npz", help="where the sum is written")


def read_state(path: Path) -> CalibrationState:
    """Return the state in a file."""
    from caltest.streaming import CalibrationState

    try:
        return CalibrationState.from_bytes(path.read_bytes())
    except ValueError as error:
        refuse(f"{path}: {error}")


def is_state(path: Path | None) -> bool:
    """Return whether a file is an NPZ archive that was written as a state."""
    import zipfile

    if path is None or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return {"header.npy", "sums.npy", "logs.npy"} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


_WORDS = {
    "event": "--classes",
    'input="percent"': "divide them by 100 in the files",
    'input="logits"': "apply softmax to them in the files",
    "drop_missing=True": "delete them from the files",
}
"""What files must be before they are scanned, where other commands have options."""


def _scan(options: argparse.Namespace) -> int:
    from caltest.streaming import scan
    from caltest.streaming.scans._fragments import CsvFormat, find_files, first_batch, understand

    named = chosen(options, "label", "prob", "classes")
    first, batch = first_batch(find_files(options.files), CsvFormat(options.sep, options.decimal))
    found = understand(first, batch, named)
    n_labels = found.n_classes if found.classes is None else len(found.classes)
    words = f"`classes` must name {found.n_classes} classes, one per column of `y_prob`, got {n_labels}."
    refuse_if(n_labels != found.n_classes, words)
    print(f"Label column: {found.label}. {columns_of(found)}", flush=True)
    state = scan(
        options.files,
        **named,
        lens=lens_for(options.lens, found),
        **chosen(options, "micro_cells", "sep", "decimal", "workers", "scheduler", "output", "progress"),
    )
    print(f"{counted(state.n_samples)} in {options.output}; test with: caltest test {options.output}")
    return 0


def _merge(options: argparse.Namespace) -> int:
    from caltest.streaming.scans._output_lock import locked

    first, *others = states = [read_state(path) for path in options.states]
    _refuse_common_files(options.states)
    for k, state in enumerate(states):
        same = next((path for path, other in zip(options.states[:k], states[:k], strict=True) if other == state), None)
        if same is not None and state.n_samples:
            words = "observations that are counted twice make p-values too small"
            say("note", f"{same} and {options.states[k]} hold the same sums; {words}.")
    for other in others:
        first.merge(other)
    with locked(options.output):
        write_atomically(options.output, first.to_bytes())
    print(f"{counted(first.n_samples)} in {options.output}")
    return 0


def _refuse_common_files(states: Iterable[Path]) -> None:
    """Raise ValueError if two states hold the same file, as far as they know their files."""
    from caltest.streaming.states._state_file import Packed

    holder: dict[tuple[int | str, ...], Path] = {}
    for path in states:
        for stamp in map(tuple, Packed.of(path.read_bytes()).more.get("files", {}).values()):
            known = holder.setdefault(stamp, path)
            words = "its observations would be counted twice; merge one of them"
            refuse_if(known is not path, f"{known} and {path} both hold the file {stamp[0]}: {words}")


def refuse_options_of_files(options: argparse.Namespace, names: Iterable[str]) -> None:
    """Raise ValueError if one of these options was given, which a state cannot serve any more."""
    given = given_option(options, names)
    option = options.words.get(given)
    refuse_if(
        given is not None,
        f"{option} is for files of observations, and {options.file} is a state: its columns and its lens were chosen "
        f"by 'caltest scan'; leave out {option}",
    )


def run_test_of_state(options: argparse.Namespace) -> int:
    """Test the state that is named as the file, print the result, and return the exit code."""
    state = read_state(options.file)
    curve = None if options.plot is None else state.curve()  # refused before anything is printed
    draws = {} if options.n_resamples is None else {"n_resamples": options.n_resamples}
    if options.rng or isinstance(state.micro_cells, int):  # a state of more outcomes has its draws and refuses a seed
        draws["rng"] = options.rng
    result = state.test(options.statistic, alpha=options.alpha, **draws)
    facts = {"source": str(options.file), "n_samples": state.n_samples, "lens": repr(state.lens)}
    verdict = result.verdict
    if verdict.subject is not None:
        verdict = replace(verdict, subject=replace(verdict.subject, source=str(options.file)))
    show(options, str(result if options.details else verdict), facts, verdict=verdict.to_dict(), **result.to_dict())
    if curve is not None:
        from caltest.plotting._reliability import save_reliability

        save_reliability(curve, options.plot)
        say_written("reliability diagram", options.plot)
    return code_of(result.decision) if options.exit_code else 0
