"""Options that many functions share: each is declared, documented and validated here, or in the room that knows it.

A public function names a group of options in its signature, ``**options: Unpack[DrawOptions]``, and documents what is
special to it. `reads_arguments` shows the whole signature in ``help()``, documents the options that the docstring does
not document itself, refuses other names, and validates values. Inside the function ``options`` holds all of them, so
that a call which only passes them on is ``other(y_true, y_prob, **options)``.

A group is a TypedDict whose values are annotated by an `Option`; groups inherit from each other.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TypedDict, get_args

from numpy.typing import ArrayLike

from caltest.predictions._lens import LensLike
from caltest.predictions._user_functions import Region
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_level, validate_workers
from caltest.results._progress import Progress


@dataclass(frozen=True)
class Option:
    """What is known of an option wherever it occurs.

    Attributes
    ----------
    kind, text : str
        What its documentation says: the type, and what it means.
    default : object
        The value where none is given.
    validate : callable, optional
        From a value and the name to the value that the function gets; it raises TypeError or ValueError. Without it the
        function validates the value where it is used.
    at_door : bool
        Whether it says how an argument is read: `reads_arguments` does so, and the function does not get it.
    """

    kind: str
    text: str
    default: Any = None
    validate: Callable[[Any, str], Any] | None = None
    at_door: bool = False


ARGUMENTS = {
    "y_true": (
        "array-like of shape (n_samples,)",
        "Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their "
        "names.",
    ),
    "y_prob": (
        "array-like of shape (n_samples, n_classes) or (n_samples,)",
        "Predicted probabilities; one dimension is the probability of the positive class.",
    ),
}
"""What is passed first, documented where a docstring does not say more."""


class ClassesOption(TypedDict, total=False):
    """Which classes there are."""

    classes: Annotated[
        Sequence[Any] | None, Option("sequence, optional", "The label of each column of the predictions.")
    ]


class InputOption(TypedDict, total=False):
    """What predictions are."""

    input: Annotated[
        str,
        Option(
            '{"probabilities", "logits"}',
            "What predictions are. Of logits the softmax over the classes is taken, of one dimension the logistic "
            "function.",
            "probabilities",
            at_door=True,
        ),
    ]


class ReadOptions(ClassesOption, InputOption, total=False):
    """What predictions are, and of which classes."""


class RegionOption(TypedDict, total=False):
    """Which observations are looked at."""

    region: Annotated[
        Region | None,
        Option(
            "callable, optional",
            "From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; observations outside "
            "are left out.",
        ),
    ]


class DataOptions(ReadOptions, RegionOption, total=False):
    """What predictions are, of which classes, and which observations are looked at."""


class LensOption(TypedDict, total=False):
    """What is looked at."""

    lens: Annotated[LensLike | None, Option("lens, optional", "What to look at; the whole prediction by default.")]


class WeightOption(TypedDict, total=False):
    """How much observations count."""

    sample_weight: Annotated[
        ArrayLike | None,
        Option(
            "array-like of shape (n_samples,), optional",
            "Weight of each observation: how much it counts. Labels are not repeated.",
        ),
    ]


class DesignOptions(WeightOption, total=False):
    """How much observations count, and which of them may depend on each other."""

    groups: Annotated[
        ArrayLike | None,
        Option(
            "array-like of shape (n_samples,), optional",
            "The group of each observation, such as its patient, if observations of a group may depend on each other.",
        ),
    ]


class TimeOptions(TypedDict, total=False):
    """When predictions were made, and when their labels are known."""

    time: Annotated[
        Any,
        Option(
            "array-like of shape (n_samples,), optional",
            "When each prediction was made: numbers, dates, datetimes or texts of dates, in any order. Equal times are "
            "a batch. If only ``lead`` is given, an index of pandas that holds dates is taken.",
        ),
    ]
    lead: Annotated[
        Any,
        Option(
            "int, timedelta, str or array-like of these, optional",
            "How long after its prediction a label is known: a duration such as ``'7D'``, or a number in the unit of "
            "``time``; of dates it counts their smallest differences (of weekdays, calendar days) or months. Closer "
            "labels may depend on each other in any way. Of a lead for each prediction the longest one counts. By "
            "default labels are known before the next prediction.",
        ),
    ]


class AlphaOption(TypedDict, total=False):
    """At which level something is decided."""

    alpha: Annotated[float, Option("float", "Level of the conclusion.", 0.05, validate_level)]


class WorkOptions(TypedDict, total=False):
    """How work is done."""

    workers: Annotated[
        int,
        Option(
            "int, optional",
            "Threads; -1 for all processors. By default 1, or as in `caltest.config_context`. The answer does not "
            "depend on it.",
            None,
            lambda value, name: validate_workers(value),
        ),
    ]
    rng: Annotated[
        SeedLike, Option("None, int, numpy.random.Generator or numpy.random.RandomState", "Source of randomness.")
    ]
    progress: Annotated[
        bool | Progress | None,
        Option(
            "bool or callable, optional",
            "True shows a bar with the time left, False nothing; a function is called with ``(done, total)``. By "
            "default a bar on a terminal, or as in `caltest.config_context`.",
        ),
    ]


def shared_options(function: Callable[..., Any]) -> dict[str, Option]:
    """Return the declaration of each option that a function takes as a group, by its name."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given = parameter.annotation  # text where annotations are postponed
            named = re.fullmatch(r"Unpack\[(\w+)\]", given) if isinstance(given, str) else None
            groups = [function.__globals__[named[1]]] if named else [*get_args(given)]
            return {name: hint.__metadata__[0] for group in groups for name, hint in group.__annotations__.items()}
    return {}


def whole_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function with each of its shared options in the place of their group."""
    signature, shared = inspect.signature(function), shared_options(function)
    if not shared:
        return signature
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default)
        for name, option in shared.items()
        if name not in signature.parameters
    ]
    return signature.replace(parameters=[*own, *options])


def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the shared options by their names, and gets all of them, validated.

    Unlike the public function it reads no frames: it is for arguments that were read before.
    """
    shared, known = shared_options(function), set(inspect.signature(function).parameters)
    options = {name: option for name, option in shared.items() if name not in known and not option.at_door}
    if not shared:
        return function

    def complete(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known and name not in options:
                refuse(f"{function.__name__}() got an unexpected keyword argument {name!r}", TypeError)
        for name, option in options.items():
            value = kwargs.get(name, option.default)
            kwargs[name] = value if option.validate is None else option.validate(value, name)
        return function(*args, **kwargs)

    complete.__name__ = function.__name__
    return complete


def whole_docstring(function: Callable[..., Any]) -> str | None:
    """Return the docstring of a function with the documentation of what it does not document itself.

    Parameters are documented in the order of the signature.
    """
    text, shared = function.__doc__, shared_options(function)
    found = None if text is None else re.search(_PARAMETERS, inspect.cleandoc(text), re.DOTALL | re.MULTILINE)
    if text is None or found is None or not shared:
        return text
    own: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", found["entries"].strip("\n")):
        own |= {name.strip(): entry for name in entry.split(" :", 1)[0].split(",")}
    said = {name: (option.kind, option.text) for name, option in shared.items()} | ARGUMENTS
    names = [name for name in whole_signature(function).parameters if name in own or name in said]  # no `cls`
    entries = dict.fromkeys(own.get(name) or _entry(name, *said[name]) for name in names)
    whole = inspect.cleandoc(text)
    return f"{whole[: found.start('entries')]}{chr(10).join(entries)}{whole[found.end('entries') :]}"


_PARAMETERS = r"^Parameters\n-{10}\n(?P<entries>.*?)(?=\n\n\w[\w ]*\n-{3,}\n|\Z)"
_WIDTH = 112


def _entry(name: str, kind: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{name} : {kind}", *(f"    {line}" for line in lines)])


def as_declared(function: Callable[..., Any], read: Callable[..., Any]) -> None:
    """Show a public function with its whole signature and documentation."""
    wraps(function)(read)
    read.__signature__ = whole_signature(function)  # type: ignore[attr-defined]
    read.__doc__ = whole_docstring(function)
