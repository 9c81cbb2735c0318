"""A leaderboard of predictions that do not fit into memory: sums of the losses of all models, and their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.comparison._model_comparison import few_draws_of_models
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import named_models, validate_models, validate_names
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import SeedLike, validate_count, validate_level, validate_rng
from caltest.ranking._leaderboard import measures_of, notes_on, ranked
from caltest.ranking._measures import KINDS, Asked, MeanScore
from caltest.ranking._ranking import Leaderboard
from caltest.ranking._summed_losses import SummedLosses
from caltest.ranking._unranked import Unranked
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results._decision import level_of
from caltest.results._description import counted, join
from caltest.statistics import Statistic
from caltest.streaming import CalibrationState
from caltest.streaming.states._state_file import Declared, Packed, pack

_SUMMED = {name: kind for name, kind in KINDS.items() if isinstance(kind, MeanScore)}


class LeaderboardState:
    r"""Sums over batches of observations, from which many models are ranked without their predictions.

    Ranks need to know how the losses of models vary together, which separate states of single models do not hold. So
    every batch has the predictions of all models. For each measure the state adds up the losses :math:`\ell_k` of the
    models, and for each pair of them :math:`\sum (\ell_k - \ell_j)^2` and :math:`\sum (\ell_k - \ell_j)^3`: its size
    does not depend on the number of observations. Estimates, intervals and standard errors are those of
    `caltest.leaderboard`, up to rounding, whatever the batches are and in whichever order they are merged. For each
    model there is a `caltest.streaming.CalibrationState` too, of its confidence (of two classes, of the whole
    prediction), which has the p-values of calibration and the errors that rank no models.

    Ranks are told apart as in `caltest.leaderboard`, with random directions in n dimensions for n observations in the
    place of random signs, because the distribution of sums with random directions follows from the sums of squares.
    Both have the same normal limit. For normal losses all sets of ranks are exact at every n.

    Parameters
    ----------
    n_classes : int
        Number of classes of the predictions.
    by : str or sequence of str
        What models are ranked by: "log_score", "brier" and "accuracy". The l2 error has cells that depend on all
        predictions, so that a state cannot rank by it.

    Raises
    ------
    TypeError
        If ``n_classes`` is no integer, or a measure neither a string nor a statistic.
    ValueError
        If ``n_classes`` < 2, or ``by`` holds something else or a measure twice.

    See Also
    --------
    caltest.leaderboard : The same of predictions in memory.
    caltest.streaming.CalibrationState : The state of a single model.

    Examples
    --------
    >>> import caltest
    >>> from caltest.ranking import LeaderboardState
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> state = LeaderboardState(n_classes=10)
    >>> for start in range(0, len(y_true), 500):
    ...     rows = slice(start, start + 500)
    ...     _ = state.update(y_true[rows], {name: prob[rows] for name, prob in models.items()})
    >>> print(state.leaderboard(by="brier", rng=0).conclusion)
    By Brier score neural_network is shown to be the best of 4 models (95 % confidence).
    """

    def __init__(self, n_classes: int = 2, by: str | Sequence[str] = ("log_score", "brier")) -> None:
        self.n_classes = validate_count(n_classes, "n_classes", minimum=2)
        kinds, errors = measures_of(by)
        self.by = tuple(kind.name for kind in kinds)
        is_summed = not errors and set(self.by) <= set(_SUMMED)
        require(is_summed, f"`by` of a state must be of {join(_SUMMED)}; `leaderboard` of a state takes errors", by)
        self._states: dict[str, CalibrationState] = {}
        self._sums = np.zeros((len(kinds), 5, 1))  # of no models

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return next(iter(self._states.values())).n_samples if self._states else 0

    @property
    def states(self) -> dict[str, CalibrationState]:
        """The state of each model by its name; updating one of them makes it useless for a leaderboard."""
        return dict(self._states)

    @reads_arguments
    def update(
        self,
        y_true: ArrayLike,
        models: Mapping[str, Any] | Sequence[tuple[str, Any]],
        *,
        classes: Sequence[Any] | None = None,
        **_: Unpack[InputOption],
    ) -> Self:
        """Add observations with the predictions of all models; nothing is added if something is refused.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
        models : mapping of str to array-like, or sequence of pairs (str, array-like)
            Predicted probabilities of each model, ``(n_samples, n_classes)`` or ``(n_samples,)``, of the same models in
            every batch.
        classes : sequence, optional
            The label of each column. Without it, columns with names are matched to the labels of each batch.

        Returns
        -------
        LeaderboardState
            The state itself.

        Raises
        ------
        TypeError
            If ``models`` is neither a mapping nor a list of pairs, or a name is no string.
        ValueError
            If there are fewer than two models, or other ones than before; if they differ in observations or classes,
            the number of these is not ``n_classes``, a prediction is missing, outside [0, 1] or does not sum to 1, or a
            label is unknown.
        """
        named = named_models(models, fewest=2)
        others = sorted(set(named) ^ set(self._states)) if self._states else []
        require(not others, "`models` must be the same in every batch, but these are not in all", others)
        outcome, probs = validate_models(y_true, named, classes)
        if probs[0].shape[1] != self.n_classes:
            refuse(f"`models` must predict {self.n_classes} classes as the state has, got {probs[0].shape[1]}.")
        new, given = LeaderboardState(self.n_classes, self.by), dict(zip(named, probs, strict=True))
        given = {name: given[name] for name in self._states or named}
        new._states = {name: CalibrationState(self.n_classes).update(outcome, prob) for name, prob in given.items()}
        new._sums = np.stack([_SUMMED[name].sums_of([*given.values()], outcome) for name in self.by])
        return self.merge(new)

    def merge(self, other: LeaderboardState) -> Self:
        """Add the observations of another state, which is not changed.

        Parameters
        ----------
        other : LeaderboardState
            A state of the same models and measures.

        Returns
        -------
        LeaderboardState
            The state itself.

        Raises
        ------
        TypeError, ValueError
            If ``other`` is no such state; if its models, their order, its measures or classes differ.
        """
        if not isinstance(other, LeaderboardState):
            refuse(f"`other` must be a LeaderboardState, got {type(other).__name__}.", TypeError)
        differ = self._states and other._states and [*self._states] != [*other._states]
        if differ or (self.n_classes, self.by) != (other.n_classes, other.by):
            refuse(f"`other` must have the same models, measures and classes: {self} and {other} cannot be merged.")
        if other._states:
            self._sums = self._sums + other._sums if self._states else other._sums
        for name, state in other._states.items():
            self._states.setdefault(name, CalibrationState(self.n_classes)).merge(state)
        return self

    def __add__(self, other: LeaderboardState) -> LeaderboardState:
        """Return a new state with the observations of both."""
        if not isinstance(other, LeaderboardState):
            return NotImplemented
        return LeaderboardState(self.n_classes, self.by).merge(self).merge(other)

    def __repr__(self) -> str:
        models = counted(len(self._states), "model")
        return f"LeaderboardState(n_classes={self.n_classes}, by={self.by}), {models}, {counted(self.n_samples)}"

    def leaderboard(
        self,
        *,
        by: str | Statistic | Sequence[str | Statistic] | None = None,
        confidence_level: float = 0.95,
        n_resamples: int | None = None,
        rng: SeedLike = None,
    ) -> Leaderboard:
        """Rank the models, with simultaneous confidence sets of their ranks.

        Parameters
        ----------
        by : str, Statistic or sequence of these, optional
            Measures of the state, all by default; and errors that rank no models, such as "KS" or
            ``ECE(EqualWidth(15))``, as `CalibrationState.test` knows them.
        confidence_level : float
            Probability with which the confidence sets of all ranks contain them together, at least.
        n_resamples : int, optional
            Number of random directions, and of draws of tests; 999 by default.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness.

        Returns
        -------
        Leaderboard
            As `caltest.leaderboard` returns it. The p-values of calibration are those of the ECE in 15 cells (bins) of
            equal width, exact as in `CalibrationState.test`.

        Raises
        ------
        TypeError, ValueError
            If the state is empty or does not know a measure; if ``confidence_level`` is not strictly between 0 and 1,
            or ``n_resamples`` < 1.
        """
        refuse_if(not self.n_samples, "the state is empty; call `update` first.")
        level, number = validate_level(confidence_level, "confidence_level"), number_of_draws(n_resamples)
        kinds, errors = measures_of(self.by if by is None else by)
        is_known = {kind.name for kind in kinds} <= set(self.by)
        require(is_known, f"`by` must be of {join(self.by)}, or errors that a CalibrationState knows", by)
        about: dict[str, Any] = {"confidence_level": level, "n_samples": self.n_samples, "n_groups": None}
        seeds, names = validate_rng(rng).integers(2**63, size=2), list(self._states)
        asked = [Asked(level, state.test().pvalue) for state in self._states.values()]
        rankings, unranked = [], []
        for kind in kinds:
            sums = SummedLosses(self.n_samples, self._sums[self.by.index(kind.name)])
            found = [_SUMMED[kind.name].of_sums(sums, k, one) for k, one in enumerate(asked)]
            rankings.append(ranked(names, found, sums, number, seeds[1], **about))
        for error in errors:
            drawn = {"n_resamples": number, "rng": int(seeds[0])}
            tests = {name: state.test(error.statistic, **drawn) for name, state in self._states.items()}
            unranked.append(Unranked.of(error, tests, **about))
        few = few_draws_of_models(len(names), number, "holm", level_of(level)) if errors else ()
        notes = (*notes_on(rankings, self.n_samples), *few)
        about |= {"n_resamples": number, "notes": notes}
        return Leaderboard(rankings=tuple(rankings), unranked=tuple(unranked), **about)

    def to_bytes(self) -> bytes:
        """Return the state as an NPZ archive without pickled objects.

        Returns
        -------
        bytes
            For each measure two numbers for each pair of models, and the states of the models, about 2 MB each at most.
        """
        states = {f"state{k}": state.to_bytes() for k, state in enumerate(self._states.values())}
        arrays = {name: np.frombuffer(state, dtype=np.uint8) for name, state in states.items()}
        settings = {"n_classes": int(self.n_classes), "by": self.by, "models": list(self._states)}
        return pack(settings, arrays | {"sums": self._sums}, {})

    @classmethod
    def from_bytes(cls, data: bytes) -> LeaderboardState:
        """Return the state of an archive.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        LeaderboardState
            An equal state.

        Raises
        ------
        TypeError, ValueError
            If ``data`` is no bytes; if it is truncated or changed, or is no state of several models.
        """
        packed = Packed.of(data)
        names = packed.settings.get("models")
        if not isinstance(names, list):
            refuse("`data` must be the bytes of a LeaderboardState, got those of a state of one model.")
        validate_names(names, "data")
        found, n = cls(packed.settings["n_classes"], packed.settings["by"]), len(names)
        declared = {f"state{k}": Declared((None,), np.uint8) for k in range(n)}
        arrays = packed.arrays(declared | {"sums": Declared((len(found.by), 2 * n + 5, n + 1), np.float64)})
        found._sums, states = arrays["sums"], [CalibrationState.from_bytes(bytes(arrays[name])) for name in declared]
        found._states = dict(zip(names, states, strict=True))
        refuse_if(
            len({one.n_samples for one in states}) > 1, "`data` must hold states of equal numbers of observations."
        )
        return found
