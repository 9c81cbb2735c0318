"""Parameters of models and maps: each is declared together with what it is allowed to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from caltest.predictions.inputs._validation import require, validate_count, validate_number, validate_positive


class Checked:
    """A frozen dataclass that reads each parameter as ``field(metadata=...)`` says, with one of the rules below."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            if "reads" in each.metadata:
                self._keep(**{each.name: each.metadata["reads"](getattr(self, each.name), each.name)})

    def _keep(self, **values: Any) -> None:
        """Set parameters while they are read; afterwards they are frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _one_or_several(value: Any, name: str) -> float | tuple[float, ...]:
    """Return a positive number, or a tuple of them."""
    return tuple(validate_positive(one, name) for one in value) if np.ndim(value) else validate_positive(value, name)


def _map(value: Any, name: str, of: str = "predictions") -> Any:
    must = f"`{name}` must be a map such as Temperature(1.2) or a function of {of}"
    require(callable(value) and not isinstance(value, type), must, value, right_type=False)
    return value


Rule = dict[str, Callable[[Any, str], Any]]

COUNT: Rule = {"reads": validate_count}
CLASSES: Rule = {"reads": partial(validate_count, minimum=2)}
INDEX: Rule = {"reads": partial(validate_count, minimum=0)}
NUMBER: Rule = {"reads": validate_number}
SHARE: Rule = {"reads": partial(validate_number, low=0, high=1)}
POSITIVE: Rule = {"reads": validate_positive}
POSITIVES: Rule = {"reads": _one_or_several}
MAP: Rule = {"reads": _map}
BEND: Rule = {"reads": partial(_map, of="probabilities")}
