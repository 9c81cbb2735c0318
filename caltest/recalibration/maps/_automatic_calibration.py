"""The choice of a recalibration method by cross-validated log score, among those that keep the accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.scores._score_decomposition import accuracy_of, log_of, mean_of
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.recalibration.maps._base import Recalibrator, fit_quietly, names_of_methods, on_indices, validate_methods
from caltest.recalibration.maps._linear_scaling import VectorScaling, stratified_folds
from caltest.recalibration.maps._logistic_maps import BetaCalibration, PlattScaling
from caltest.recalibration.maps._logits import on_scale
from caltest.recalibration.maps._spline_calibration import SplineCalibration
from caltest.recalibration.maps._step_functions import IsotonicCalibration
from caltest.recalibration.maps._temperature import TemperatureScaling
from caltest.results._other_names import AnswersOtherNames

_KEPT = 1e-9  # accuracies that differ by rounding


@dataclass(eq=False, repr=False)
class AutomaticCalibration(AnswersOtherNames, Recalibrator):
    r"""Choice of a recalibration method by cross-validation: the smallest log score among those that keep the accuracy.

    Every candidate m is fitted to four of five folds of the observations that `fit` gets, and predicts the fifth. The
    folds are random, have equal shares of each class, and do not depend on the order of the observations:

    .. math:: S_m = -\frac{\sum_i w_i \log \hat c^{(m)}_{y_i}(p_i)}{\sum_i w_i}.

    A candidate qualifies if it keeps the order of the classes by its construction (``keeps_ranking``), or if its
    accuracy on the held-out observations is not lower than that of the predictions themselves; of classes with equal
    probability each counts with its share. The candidate of the smallest :math:`S_m` among these is fitted to all
    observations, the first one of equal ones. Candidates whose score is infinite, because a held-out label got
    probability 0, or that refuse the data, are never chosen. If the predictions themselves have the smallest score of
    all, they stay as they are: ``unchanged_`` is True, and the method is temperature scaling with T = 1.

    The scores of the choice are too good for the method that was chosen: judge it by observations that `fit` has not
    seen, as `caltest.recalibration_study` does, in which the choice is made within the calibration part of each fold.

    Parameters
    ----------
    candidates : sequence of Recalibrator, optional
        Methods to choose from; by default `TemperatureScaling`, `VectorScaling`, `PlattScaling`, `BetaCalibration`,
        `SplineCalibration` with constraints and `IsotonicCalibration`.
    input : {"probabilities", "logits"}
        What X holds; candidates get probabilities.
    classes : sequence, optional
        The label of each column of X.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the folds; 0 by default, so that a fit can be repeated. Candidates have their own.

    Attributes
    ----------
    recalibrator_ : Recalibrator
        The method that was chosen, fitted to class indices.
    unchanged_ : bool
        Whether the predictions stay as they are.
    scores_ : dict of str to float
        The log score S of each candidate, infinite where it refused the data.
    score_before_ : float
        The log score of the predictions themselves, on the same observations.
    accuracies_ : dict of str to float
        The accuracy of each candidate on held-out observations; NaN where it refused the data.
    accuracy_before_ : float
        That of the predictions themselves.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    TypeError
        When fitted, if a candidate is no `Recalibrator`.
    ValueError
        When fitted, if there is no candidate, or none qualifies; if no class has two labels; and as in
        `Recalibrator.fit`.

    See Also
    --------
    caltest.recalibration_study : Judges methods on held-out observations.
    TemperatureScaling : The candidate that always qualifies.

    Notes
    -----
    The folds depend on the observations and not on their order: those of each class are sorted and dealt out in turn.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import AutomaticCalibration
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> chosen = AutomaticCalibration().fit(y_prob[:5000], y_true[:5000])
    >>> chosen.recalibrator_
    TemperatureScaling(classes=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> round(chosen.scores_["TemperatureScaling()"], 3), round(chosen.scores_["VectorScaling()"], 3)
    (0.219, 0.216)
    """

    _fitted: ClassVar[tuple[str, ...]] = (
        "accuracies_",
        "accuracy_before_",
        "recalibrator_",
        "score_before_",
        "scores_",
    )

    candidates: Sequence[Recalibrator] | None = None
    _: KW_ONLY
    rng: SeedLike = 0

    def _validate(self) -> None:
        validate_rng(self.rng)
        if self.candidates is None:
            return
        if isinstance(self.candidates, str) or not isinstance(self.candidates, Sequence):
            refuse(f"`candidates` must be a sequence of recalibration methods, got {self.candidates!r}.", TypeError)
        if not self.candidates:
            refuse("`candidates` must hold at least one method, such as TemperatureScaling(), got none.")
        validate_methods(self.candidates, "candidates")

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> None:
        candidates = default_candidates() if self.candidates is None else list(self.candidates)
        names = names_of_methods(candidates)
        share = np.ones(len(outcome)) if weight is None else weight
        fold = stratified_folds(on_scale(values, "probabilities", "logits"), outcome, weight, self.rng)
        if len(np.unique(fold[fold >= 0])) < 2:
            refuse(
                "`y` must hold several labels of some class, so that a method can be chosen by held-out observations, "
                f"got {len(outcome):,} observations. Use TemperatureScaling."
            )
        tried = {
            name: _held_out(method, values, outcome, weight, fold)
            for name, method in zip(names, candidates, strict=True)
        }
        held = fold >= 0
        self.accuracy_before_ = mean_of(accuracy_of(values[held], outcome[held]), share[held])
        self.score_before_ = mean_of(log_of(values[held], outcome[held]), share[held])
        self.scores_, self.accuracies_ = {}, {}
        for name, found in tried.items():
            self.scores_[name], self.accuracies_[name] = (
                (np.inf, np.nan) if found is None else (mean_of(part, share[held]) for part in found)
            )
        allowed = [
            name
            for name, method in zip(names, candidates, strict=True)
            if np.isfinite(self.scores_[name])
            and (method.keeps_ranking or self.accuracies_[name] >= self.accuracy_before_ - _KEPT)
        ]
        best = min(allowed, key=self.scores_.__getitem__, default="")
        if self.score_before_ <= self.scores_.get(best, np.inf) and np.isfinite(self.score_before_):
            self.unchanged_ = True
            self.recalibrator_ = fit_quietly(TemperatureScaling(), values, outcome, weight)[0]
            self.recalibrator_.temperature_, self.recalibrator_.unchanged_ = 1.0, True
            return
        if not allowed:
            refuse(
                "`candidates` must hold a method that keeps the accuracy and has a finite cross-validated log score, "
                f"got log scores {self.scores_} and accuracies {self.accuracies_}, before {self.accuracy_before_:.4g}: "
                "add TemperatureScaling()."
            )
        self.recalibrator_ = on_indices(candidates[names.index(best)], values.shape[1]).fit(values, outcome, weight)

    @property
    def chosen(self) -> Recalibrator:
        """The method that was chosen."""
        return self.recalibrator_

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.copy() if self.unchanged_ else self.recalibrator_.predict_proba(values)


def default_candidates() -> list[Recalibrator]:
    """Return the methods that are chosen from unless others are given: those that are fitted in seconds."""
    return [
        TemperatureScaling(),
        VectorScaling(),
        PlattScaling(),
        BetaCalibration(),
        SplineCalibration(constrained=True),
        IsotonicCalibration(),
    ]


def _held_out(
    method: Recalibrator, values: NDArray[Any], outcome: Integers, weight: Floats | None, fold: Integers
) -> tuple[Floats, Floats] | None:
    """Return log score and right label of each held-out observation; None if the method refuses the data."""
    lost, right = np.zeros((2, len(outcome)))
    held = fold >= 0
    for number in np.unique(fold[held]):
        inside, rows = fold != number, fold == number
        try:
            fitted, _ = fit_quietly(method, values[inside], outcome[inside], None if weight is None else weight[inside])
        except ValueError:
            return None
        prob = fitted.predict_proba(values[rows])
        lost[rows], right[rows] = log_of(prob, outcome[rows]), accuracy_of(prob, outcome[rows])
    return lost[held], right[held]
