"""Predictions of several models by their names, and of several passes of one model as a stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._frames import from_tensor
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._scale import PROBABILITIES, as_probabilities, validate_input
from caltest.predictions.inputs._validation import validate_choice, validate_given_prob, validate_outcome, validate_prob
from caltest.results._description import counted


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


class PredictionStack:
    r"""Predictions of several passes of the same observations, which count as their average.

    .. math:: p_i = \frac1T \sum_{t=1}^T p_{ti}

    Bayesian networks predict by averaging T random passes, such as those of Monte Carlo dropout, and ensembles by
    averaging their members (Laves et al. 2020, equation 28). Pass the stack wherever predictions are asked for,
    ``calibration_test(y_true, stack)``: it is an array-like of shape ``(n_samples, n_classes)``, the average. A plain
    array of three dimensions is refused, because its first axis could be anything. `rejection_curve` and `shift_curve`
    also take the disagreement of its passes as an uncertainty.

    Parameters
    ----------
    y_prob : array-like of shape (n_passes, n_samples, n_classes)
        Predicted probabilities of every pass.
    average : {"passes"}
        What the first axis holds, over which is averaged.
    input : {"probabilities", "logits"}
        What predictions are. Of logits the softmax is taken in every pass, before the average.

    Attributes
    ----------
    passes : array of shape (n_passes, n_samples, n_classes)
        The predictions of every pass.
    mean : array of shape (n_samples, n_classes)
        Their average.

    Raises
    ------
    TypeError
        If ``average`` is no text.
    ValueError
        If ``y_prob`` does not have three dimensions, or a pass has values outside [0, 1] or does not sum to 1; if
        ``average`` is unknown.

    See Also
    --------
    caltest.rejection_curve : Errors of what is kept if the predictions with the largest disagreement are rejected.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, appendix A.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.predictions import PredictionStack
    >>> passes = [[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]]
    >>> stack = PredictionStack(passes, average="passes")
    >>> stack
    PredictionStack(2 passes, 2 observations, 2 classes)
    >>> stack.mean
    array([[0.8, 0.2],
           [0.4, 0.6]])
    >>> round(caltest.estimation.brier_score([0, 1], stack), 3)
    0.1
    """

    def __init__(self, y_prob: ArrayLike, *, average: str, input: str = PROBABILITIES) -> None:  # noqa: A002
        validate_choice(average, "average", ("passes",))
        kind = validate_input(input, "input")
        array = np.asarray(from_tensor(y_prob))
        require(array.ndim == 3, "`y_prob` must have shape (n_passes, n_samples, n_classes)", array.shape)
        require(len(array), "`y_prob` must hold at least one pass", array.shape)
        passes = []
        for number, prob in enumerate(array):
            with naming(f"pass {number}"):
                passes.append(validate_prob(as_probabilities(prob, "y_prob", kind)[0]))
        self.passes: Floats = np.stack(passes)
        self.mean: Floats = self.passes.mean(axis=0)
        for values in (self.passes, self.mean):
            values.flags.writeable = False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the average, ``(n_samples, n_classes)``."""
        return self.mean.copy() if dtype is None else self.mean.astype(dtype)

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self.mean)

    def __repr__(self) -> str:
        return f"PredictionStack({len(self.passes)} passes, {counted(len(self))}, {self.mean.shape[1]} classes)"
