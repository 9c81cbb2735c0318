"""The command ``caltest study bias | size | power --config FILE --out DIR``."""

from __future__ import annotations

import argparse
import inspect
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import caltest
from caltest import plotting, simulation
from caltest.cli._expressions import read_object

_AMOUNT = "amount"
_BUNDLED = "cifar10_vgg16"


@dataclass(frozen=True)
class _Study:
    """A kind of study: its function, its pictures, and which of its arguments are texts that name objects."""

    run: Callable[..., Any]
    plot: Callable[..., list[Any]]
    objects: tuple[str, ...]


def _plot_bias(found: simulation.BiasStudy) -> list[Any]:
    """Return one picture for each model and lens."""
    pairs = found.truth[["model", "lens"]].drop_duplicates()
    return [plotting.plot_bias_study(found, model=pair.model, lens=pair.lens) for pair in pairs.itertuples()]


_STUDIES = {
    "bias": _Study(simulation.bias_study, _plot_bias, ("models", "statistics", "lenses", "intervals")),
    "size": _Study(
        simulation.size_study,
        lambda found: [plotting.plot_size_study(found)],
        ("models", "tests", "lenses", "resampling"),
    ),
    "power": _Study(
        simulation.power_study,
        lambda found: [plotting.plot_power_study(found)],
        ("family", "tests", "lenses", "resampling"),
    ),
}
_OWN = {"out", "workers", "progress", "rng", "truth"}
"""Arguments that the command line has, or that no text can name."""

EXAMPLE = """example of FILE:
  n_samples = [100, 1000]
  n_replicates = 1000
  lenses = ["Canonical()", "Confidence()"]
  tests = ["Omnibus()", "spiegelhalter_test(method='asymptotic')"]
  [models]
  calibrated = "DirichletModel(3, 0.5)"

For bias, "statistics" instead of tests; for power, amounts = [0.8, 1.0, 1.25] and instead of models
  [family]
  temperature = "DirichletModel(3, 0.5, Temperature(amount))"
"""


def add_command(commands: Any) -> None:
    """Add ``study`` to the commands of the command line."""
    parser = commands.add_parser(
        "study",
        help="bias, size and power by simulation from models with known truth",
        description="Run a study of caltest.simulation that FILE describes, in TOML: the arguments of bias_study, "
        "size_study or power_study by name, with objects as texts such as 'ECE(EqualWidth(15))'. A list is named by "
        f"its texts, a table names them itself; {_BUNDLED} is the bundled predictions. What is finished is kept in "
        "DIR: after an interruption the same command goes on.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("study", choices=_STUDIES, help="kind of study")
    add("--config", type=Path, required=True, metavar="FILE", help="TOML file that describes the study")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the results: STUDY.csv, STUDY.png, parts")
    add("--workers", type=int, default=-1, help="threads; the answer does not depend on it (default: all processors)")
    add("--seed", type=int, default=0, help="seed of the data and of all tests (default: %(default)s)")
    add(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=sys.stderr.isatty(),
        help="show a bar with the time left (default: on a terminal)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    """Run a study, print it, and write its frame and its picture."""
    study = _STUDIES[options.study]
    arguments = _arguments(study, options.config)
    options.out.mkdir(parents=True, exist_ok=True)
    common = {"workers": options.workers, "progress": options.progress, "rng": options.seed}
    try:
        found = study.run(**arguments, out=options.out / "parts", **common)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with what is in {options.out}", file=sys.stderr)
        raise SystemExit(130) from None
    table = options.out / f"{options.study}.csv"
    found.to_frame().to_csv(table, index=False)
    figures = study.plot(found)
    numbers = [""] if len(figures) == 1 else [f"-{number}" for number in range(1, len(figures) + 1)]
    pictures = [options.out / f"{options.study}{number}.png" for number in numbers]
    for figure, picture in zip(figures, pictures, strict=True):
        figure.savefig(picture, dpi=150)
    print(f"{found}\n\nwritten: {', '.join(map(str, [table, *pictures]))}", flush=True)


def _arguments(study: _Study, config: Path) -> dict[str, Any]:
    """Return the arguments of a study as a file states them."""
    try:
        stated = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{config} is no TOML file: {error}"
        raise ValueError(msg) from None
    parameters = inspect.signature(study.run).parameters
    allowed = [name for name in parameters if name not in _OWN]
    for name in stated:
        if name not in allowed:
            msg = f"{config}: there is no `{name}`; known are {', '.join(allowed)}."
            raise ValueError(msg)
    missing = [name for name in allowed if parameters[name].default is inspect.Parameter.empty and name not in stated]
    if missing:
        msg = f"{config}: `{missing[0]}` is missing."
        raise ValueError(msg)
    known = _known_names()
    return {name: _objects(name, value, known) if name in study.objects else value for name, value in stated.items()}


def _known_names() -> dict[str, Any]:
    """Return what a text may name: the public classes and functions, and the bundled predictions."""
    modules = (caltest, simulation)
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    known = {name: thing for name, thing in public.items() if isinstance(thing, type) or inspect.isfunction(thing)}
    return {**known, _BUNDLED: caltest.datasets.load_cifar10_vgg16()[1]}


def _objects(name: str, value: Any, known: Mapping[str, Any]) -> Any:
    """Return the objects that a text, a list or a table of texts names."""
    if name == "family":
        return {key: Family(text, known) for key, text in _texts(name, value).items()}
    if name == "resampling":
        return read_object(str(value), known)
    return {key: read_object(text, known) for key, text in _texts(name, value).items()}


def _texts(name: str, value: Any) -> dict[str, str]:
    """Return texts by name: of a table its keys, else the texts themselves."""
    texts = (
        value if isinstance(value, dict) else {text: text for text in (value if isinstance(value, list) else [value])}
    )
    if not texts or not all(isinstance(text, str) for text in texts.values()):
        msg = f"`{name}` must be a text, a list or a table of texts that name objects, got {value!r}."
        raise ValueError(msg)
    return texts


@dataclass(frozen=True)
class Family:
    """The models that a text with the name ``amount`` in it makes."""

    text: str
    known: Mapping[str, Any]

    def __call__(self, amount: float) -> Any:
        """Return the model of an amount."""
        return read_object(self.text, {**self.known, _AMOUNT: amount})
