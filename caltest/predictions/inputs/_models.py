"""Predictions of several models for the same observations, by the names of the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import validate_given_prob, validate_outcome


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Begin the message of a refusal with the name of the model, if it has one."""
    try:
        yield
    except ValueError as error:
        if not model:
            raise
        refuse(f"{model}: {error}")


def validate_names(names: Sequence[Any], argument: str) -> None:
    """Refuse names of models that are no texts, empty or equal."""
    for name in names:
        require(isinstance(name, str), f"names of `{argument}` must be strings", name, right_type=False)
        require(name, f"names of `{argument}` must not be empty", name)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        refuse(f"names of `{argument}` must differ, got {twice[0]!r} twice.")


def named_models(models: Any, *, fewest: int = 1) -> dict[str, Any]:
    """Return what was passed for each of several models by its name, from a mapping or a list of pairs."""
    pairs = list(models.items()) if isinstance(models, Mapping) else models
    if not isinstance(pairs, list | tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        refuse(
            f"`models` must map names to predictions, or list pairs (name, predictions), got {type(models).__name__}.",
            TypeError,
        )
    validate_names([name for name, _ in pairs], "models")
    if len(pairs) < fewest:
        number, found = ("one model", "none") if fewest == 1 else ("two models", str(len(pairs)))
        refuse(f"`models` must hold at least {number}, got {found}.")
    return dict(pairs)


def by_name(predictions: Any, argument: str = "y_prob") -> dict[str, Any]:
    """Return what was passed for every model by its name; a single model without a name has the name ""."""
    if not isinstance(predictions, Mapping):
        return {"": predictions}
    validate_names(list(predictions), argument)
    refuse_if(not predictions, f"`{argument}` must hold at least one model, got none.")
    return dict(predictions)


def validate_probs(models: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    """Return the predictions of every model; errors name the model."""
    probs = {}
    for name, y_prob in models.items():
        with naming(name):
            probs[name] = validate_given_prob(y_prob)
    return probs


def validate_models(
    y_true: ArrayLike, models: Mapping[str, ArrayLike], classes: Sequence[Any] | None
) -> tuple[Integers, list[NDArray[Any]]]:
    """Return outcomes and the predictions of every model for the same observations; errors name the model."""
    probs = validate_probs(models)
    shapes = {name: prob.shape for name, prob in probs.items()}
    if len(set(shapes.values())) > 1:
        shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        refuse(f"all models must predict the same observations and classes, got (n_samples, n_classes): {shown}.")
    n_samples, n_classes = next(iter(shapes.values()))
    outcome = validate_outcome(y_true, n_classes, classes)
    if len(outcome) != n_samples:
        refuse(f"`y_true` and the predictions must have the same length, got {len(outcome)} and {n_samples}.")
    return outcome, list(probs.values())
