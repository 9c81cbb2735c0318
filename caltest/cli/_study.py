"""``caltest study bias | size | power --config FILE --out DIR``, and ``caltest study run FILE --out DIR``."""

from __future__ import annotations

import argparse
import inspect
import re
import tomllib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caltest import estimation, hypothesis_tests, predictions, recalibration, resampling, simulation, statistics
from caltest.cli._messages import refuse_if
from caltest.cli._options import add_command, add_draws, computing
from caltest.predictions.inputs._refusals import refuse
from caltest.results._atomic_file import atomic_file
from caltest.results._expressions import PublicNames, read_object

_AMOUNT = "amount"
_BUNDLED = "cifar10_vgg16"
_ROOMS = (predictions, resampling, statistics, estimation, hypothesis_tests, recalibration, simulation)
_OBJECTS = {
    "bias": ("models", "statistics", "lenses", "intervals"),
    "size": ("models", "tests", "lenses", "resampling"),
    "power": ("family", "tests", "lenses", "resampling"),
}
"""Studies, and which of their arguments are expressions."""
_DEFAULTS = {
    "bias": {"n_samples": [100, 1000, 10_000], "statistics": ["ECE(EqualWidth(15))", "ECE(EqualMass(15))", "SquaredL2"]}
}
"""What a study of the models of ``--model`` has where no file says otherwise."""
_OWN = {"out", "workers", "progress", "rng", "truth"}
"""Arguments that the command line has, or that no text can name."""

_EXAMPLES = f"""
example of FILE, for size:
  n_samples = [100, 1000]
  n_replicates = 1000
  lenses = ["Canonical()", "Confidence()"]
  tests = ["Omnibus()", "spiegelhalter_test(method='asymptotic')"]
  [models]
  calibrated = "DirichletModel(3, 0.5)"

With "run", FILE also holds the line study = "size" (or "bias", "power").
For bias, "statistics" stands instead of "tests", and there may be
  [intervals]
  l2 = "l2_interval"
For power, add
amounts = [0.8, 1.0, 1.25], and instead of "models" give
  [family]
  temperature = "DirichletModel(3, 0.5, Temperature(amount))"

Models, lenses, statistics and tests are written as in Python; {_BUNDLED}
stands for the bundled predictions. A list is labelled by its expressions, a
table by its keys. Finished parts are kept in DIR: after an interruption the
same command continues.
"""


def add_to(commands: Any) -> None:
    """Add ``study`` to the commands of the command line."""
    parser = add_command(
        commands,
        "study",
        _run,
        help="simulate bias, size and power with models of known truth",
        description="Run bias_study, size_study or power_study of caltest.simulation with the arguments in FILE.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("study", choices=[*_OBJECTS, "run"], help="kind of study, or run: the kind is in FILE")
    add("file", type=Path, nargs="?", metavar="FILE", help="TOML file with the arguments of the study")
    add("--config", type=Path, metavar="FILE", help="the same")
    add("--model", action="append", metavar="MODEL", help="model such as 'GaussianMixture1D(1, 1)', instead of those "
        "in FILE; may be repeated. A study of bias then needs no FILE")  # fmt: skip
    add("-o", "--out", type=Path, required=True, metavar="DIR", help="folder of the results: STUDY.csv, *.png, parts")
    words = "what the workers are: threads, processes or those of Dask (default: what the study prefers)"
    add("--backend", choices=("threading", "loky", "dask"), help=words)
    words = "show the time left: a bar on a terminal, otherwise lines every 10 seconds (default: yes)"
    add("--progress", action=argparse.BooleanOptionalAction, default=True, help=words)
    add_draws(parser, "the data and of all tests")
    parser.set_defaults(words={})


def _run(options: argparse.Namespace) -> int:
    """Run a study, print it, and write its frame and its pictures."""
    from caltest import simulation
    from caltest.plotting._axes import save_figure

    study, given = _read(options)
    arguments = _arguments(getattr(simulation, f"{study}_study"), _OBJECTS[study], given, options.config)
    options.out.mkdir(parents=True, exist_ok=True)
    options.hint = f"the same command continues with what is finished in {options.out}"
    with _backend(options.backend):
        found = getattr(simulation, f"{study}_study")(**arguments, out=options.out / "parts", **computing(options))
    options.hint = ""
    table = options.out / f"{study}.csv"
    with atomic_file(table) as stream:
        found.to_frame().to_csv(stream, index=False)
    pictures = []
    for name, figure in _draw(study, found).items():
        pictures.append(options.out / f"{name}.png")
        save_figure(figure, pictures[-1])
    print(f"{found}\n")
    for path in (table, *pictures):
        print(f"written: {path}", flush=True)
    return 0


def _draw(study: str, found: Any) -> dict[str, Any]:
    """Return the pictures of a study by their names; one for each model and lens of a study of bias."""
    import numpy as np

    pairs = found.truth[["model", "lens"]].drop_duplicates().to_dict("records") if study == "bias" else [{}]
    figures: dict[str, Any] = {}
    for pair in pairs:
        base = "-".join([study, *(_file_part(part) for part in pair.values())])
        name = next(name for name in (base, *(f"{base}-{k}" for k in range(2, len(pairs) + 1))) if name not in figures)
        figures[name] = np.ravel(found.plot(**pair))[0].figure
    return figures


def _file_part(name: str) -> str:
    """Return a name of letters, digits, dots, hyphens and underscores, at most 80 characters."""
    return re.sub(r"[^\w.-]+", "_", name).strip("_.")[:80]


def _read(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return the kind of a study, and what its file and ``--model`` say."""
    refuse_if(options.file is not None and options.config is not None, "give FILE or --config FILE, not both.")
    options.config = options.config or options.file
    if options.config is None:
        needed = "FILE, or --model" if options.study in _DEFAULTS else "FILE"
        lacking = options.model is None or options.study not in _DEFAULTS
        refuse_if(lacking, f"caltest study {options.study} needs {needed}; see caltest study --help.")
        given: dict[str, Any] = dict(_DEFAULTS[options.study])
    else:
        try:
            given = tomllib.loads(options.config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            refuse(f"{options.config} is not a TOML file: {error}")
    study = str(given.pop("study", options.study))
    refuse_if(
        study == "run",
        f'{options.config}: "run" needs a line study = "size" (or "bias", "power"), above the first [table]',
    )
    refuse_if(
        study not in _OBJECTS,
        f'{options.config}: with "run", study must be one of {", ".join(_OBJECTS)}, got {study!r}.',
    )
    refuse_if(
        options.study not in {study, "run"}, f"{options.config} holds a study of {study}, not of {options.study}."
    )
    refuse_if(
        options.model is not None and "models" not in _OBJECTS.get(study, ()),
        f"--model is for studies of bias and size; a study of {study} takes a family of models in FILE.",
    )
    return study, given if options.model is None else given | {"models": options.model}


def _backend(name: str | None) -> AbstractContextManager[Any]:
    if name is None:
        return nullcontext()
    from joblib import parallel_config

    return parallel_config(backend=name)


def _arguments(run: Any, objects: tuple[str, ...], given: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """Return the arguments of a study that a file holds."""
    parameters = inspect.signature(run).parameters
    allowed = [name for name in parameters if name not in _OWN]
    for name in given:
        refuse_if(name not in allowed, f"{config}: there is no {name!r}; known are {', '.join(allowed)}.")
    missing = [name for name in allowed if parameters[name].default is inspect.Parameter.empty and name not in given]
    refuse_if(missing, f"{config}: {next(iter(missing), None)!r} is missing.")
    return {name: _objects(name, value) if name in objects else value for name, value in given.items()}


def _known_names(**more: Any) -> PublicNames:
    """Return what an expression may name: public classes and functions, and the bundled predictions."""
    from caltest.datasets import load_cifar10_vgg16

    return PublicNames(*_ROOMS, **{_BUNDLED: load_cifar10_vgg16()[1]}, **more)


def _objects(name: str, value: Any) -> Any:
    """Return the objects that an expression, a list or a table of expressions names."""
    if name == "family":
        return {key: Family(text) for key, text in _texts(name, value).items()}
    known = _known_names()
    if name == "resampling":
        return read_object(str(value), known)
    return {key: read_object(text, known) for key, text in _texts(name, value).items()}


def _texts(name: str, value: Any) -> dict[str, str]:
    """Return texts by name: of a table its keys, else the texts themselves."""
    several = value if isinstance(value, list | dict) else [value]
    texts = several if isinstance(several, dict) else {str(text): text for text in several}
    wrong = not texts or not all(isinstance(text, str) for text in texts.values())
    refuse_if(wrong, f"{name!r} must be an expression in quotes, or a list or a table of them, got {value!r}.")
    return texts


@dataclass(frozen=True)
class Family:
    """The models that an expression with the name ``amount`` in it makes."""

    text: str

    def __call__(self, amount: float) -> Any:
        """Return the model of an amount."""
        return read_object(self.text, _known_names(**{_AMOUNT: amount}))
