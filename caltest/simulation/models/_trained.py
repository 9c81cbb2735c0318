"""Models that are trained on a sample of a distribution with known posteriors: classifiers and recalibrators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import ClassWise, Confidence
from caltest.predictions._user_functions import apply_calibration_function, apply_lens
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, refuse_if, require, validate_rng
from caltest.results import Result
from caltest.results._description import Description, Table, counted
from caltest.results._naming import describe
from caltest.simulation.models._base import COUNT, INDEX, draw_classes
from caltest.simulation.models._exact import (
    MiscalibrationEstimate,
    cell_estimate,
    in_words,
    level_set_estimate,
    look,
    mean_estimate,
)
from caltest.simulation.models._gaussian_mixture import MIXTURE, FeatureModel, Mixture

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("logistic regression", "naive Bayes", "support vector", "random forest")
"""The classifiers of Posocco and Bonnefoy (2021)."""

_SAMPLES_OF_A_CLASS = 5  # what the folds of the support vector classifier's own calibration need
_PAPER_CELLS = 2000
_FOUND = ("value", "standard_error", "noise_floor", "n_samples", "n_cells")
"""What the frame has of an estimate."""


@dataclass(frozen=True, repr=False)
class TrainedClassifier(FeatureModel):
    r"""Classifier trained on a sample of a Gaussian mixture.

    It is trained once in each process, always with the same result. Its calibration function is not known, but the
    exact posterior of every observation is: `estimate_miscalibration` averages posteriors over observations of equal,
    or nearly equal, predictions, and `truth` compares this with the large-sample estimate of the paper.

    Parameters
    ----------
    distribution : GaussianMixture or RandomMixture
        Where training and test observations come from.
    kind : str or estimator
        "logistic regression", "naive Bayes", "support vector" or "random forest": a classifier of the paper, with
        scikit-learn's defaults. The probabilities of the support vector classifier are those of
        ``CalibratedClassifierCV(SVC(), ensemble=False)``, Platt's method fitted to five folds for each class. Or an
        estimator with ``fit`` and ``predict_proba``, of which a clone is trained, with ``seed`` for every
        ``random_state`` that is None.
    n_train : int
        Number of training observations; 300 in the paper. Every class needs at least five of them.
    seed : int
        Seed of the training sample and of estimators that draw random numbers.

    Raises
    ------
    TypeError
        If ``distribution`` is not a `GaussianMixture` or `RandomMixture`; if ``kind`` is neither a text nor such an
        estimator.
    ValueError
        If ``kind`` is unknown, ``n_train`` < 1 or ``seed`` < 0; when trained, if a class has fewer than five training
        observations.

    See Also
    --------
    caltest.simulation.RandomMixture : Data that it may be trained on.

    References
    ----------
    N. Posocco, A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 5.1.

    Examples
    --------
    >>> from caltest.simulation import RandomMixture, TrainedClassifier
    >>> model = TrainedClassifier(RandomMixture(2, 2, seed=0), "naive Bayes")
    >>> x, y_true, y_prob = model.draw(500, rng=0)
    >>> y_prob.shape
    (500, 2)
    """

    distribution: Mixture = field(metadata=MIXTURE)
    kind: Any = field(compare=False)
    n_train: int = field(default=300, metadata=COUNT)
    seed: int = field(default=0, metadata=INDEX)
    _kind: str = field(init=False, repr=False, default="")  # estimators of equal parameters are not equal themselves

    def __post_init__(self) -> None:
        super().__post_init__()
        a_name = isinstance(self.kind, str)
        must = (
            f"`kind` must be one of {', '.join(map(repr, KINDS))}, or an estimator with `fit` and `predict_proba` "
            "such as LogisticRegression()"
        )
        require(self.kind in KINDS if a_name else _learns(self.kind), must, self.kind, right_type=a_name)
        self._keep(_kind=self.kind if a_name else repr(self.kind))

    def predict(self, x: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""
        return np.asarray(trained(self).predict_proba(x), dtype=np.float64)

    @reads_arguments
    def truth(
        self,
        lenses: Sequence[LensLike] | None = None,
        distance: Distance = total_variation,
        *,
        n_samples: int = 1_000_000,
        rng: SeedLike = None,
    ) -> ClassifierTruth:
        """Estimate the expected miscalibration in two ways, from the same observations.

        The large-sample estimate of the paper is the error of 2,000 equal-width cells (bins) on simulated labels; its
        noise floor is how much of it is noise. The level-set estimate averages exact posteriors instead.

        Parameters
        ----------
        lenses : sequence of lenses of two outcomes, optional
            `Confidence` and every class by default; then the mean over the classes is reported too.
        distance : callable
            A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.
        n_samples : int
            Number of simulated observations; 2,000,000 in the paper.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness.

        Returns
        -------
        ClassifierTruth
            Prints as a table; ``to_frame()`` for pandas.

        Raises
        ------
        ValueError
            If a lens has more than two outcomes, or ``n_samples`` < 20.

        Notes
        -----
        The noise matters: for the logistic regression on ``RandomMixture(5, 5, seed=0)`` through the confidence,
        100,000 observations give 0.0455 by the estimate of the paper and 0.0213 by level sets, 2,000,000 give 0.0230
        and 0.0214, with standard errors of at most 0.002 and 0.0004.
        """
        classes = [ClassWise(k) for k in range(self.n_classes)]
        views: list[LensLike] = [Confidence(), *classes] if lenses is None else list(lenses)
        y_prob, class_prob, y_true = self.draw_many(n_samples, validate_rng(rng))
        pairs = [both_truths(y_prob, class_prob, y_true, lens, distance) for lens in views]
        names = [describe(lens) for lens in views]
        if lenses is None:
            target = "mean over the classes"
            large, level = zip(*pairs[1:], strict=True)
            pairs.append((mean_estimate(large, target), mean_estimate(level, target)))
            names.append("mean over classes")
        large_sample, level_set = zip(*pairs, strict=True)
        return ClassifierTruth(model=self, lens_names=tuple(names), large_sample=large_sample, level_set=level_set)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassifierTruth(Result):
    """Expected miscalibration of a trained classifier, estimated in two ways.

    Attributes
    ----------
    model : TrainedClassifier
        The classifier.
    lens_names : tuple of str
        The lenses in words; the last one is "mean over classes" where no lenses were chosen.
    large_sample : tuple of MiscalibrationEstimate
        The error of 2,000 equal-width cells (bins) on simulated labels, the "ground truth" of Posocco and Bonnefoy
        (2021).
    level_set : tuple of MiscalibrationEstimate
        Exact posteriors averaged over observations of equal, or nearly equal, predictions.

    See Also
    --------
    TrainedClassifier : Its method ``truth`` returns it.

    Examples
    --------
    >>> from caltest.simulation import RandomMixture, TrainedClassifier
    >>> model = TrainedClassifier(RandomMixture(2, 2, seed=0), "naive Bayes", n_train=100)
    >>> truth = model.truth(n_samples=5000, rng=0)
    >>> truth.lens_names, len(truth.level_set)
    (('Confidence()', 'ClassWise(0)', 'ClassWise(1)', 'mean over classes'), 4)
    """

    model: TrainedClassifier
    lens_names: tuple[str, ...]
    large_sample: tuple[MiscalibrationEstimate, ...]
    level_set: tuple[MiscalibrationEstimate, ...]

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    @property
    def conclusion(self) -> str:
        """How far the two estimates differ, in words."""
        differences = [
            abs(large.value - level.value) for large, level in zip(self.large_sample, self.level_set, strict=True)
        ]
        worst = int(np.argmax(differences))
        large, level = self.large_sample[worst], self.level_set[worst]
        return (
            f"The two estimates differ most for {self.lens_names[worst]}: {large.value:.5f} from simulated labels "
            f"(noise floor {large.noise_floor:.5f}) and {level.value:.5f} from exact posteriors (noise floor "
            f"{level.noise_floor:.5f})."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each lens and kind of estimate as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Model, lens, ``estimate`` ("large sample" or "level set"), value, standard error, noise floor, and numbers
            of observations and of cells.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "model": str(self.model),
                "lens": lens,
                "estimate": kind,
                **{name: getattr(found, name) for name in _FOUND},
            }
            for lens, *both in zip(self.lens_names, self.large_sample, self.level_set, strict=True)
            for kind, found in zip(("large sample", "level set"), both, strict=True)
        )

    def _describe(self) -> Description:
        rows = [
            (row.lens, row.estimate, *(f"{number:.5f}" for number in (row.value, row.standard_error, row.noise_floor)))
            for row in self.to_frame().itertuples()
        ]
        return Description(
            f"Expected miscalibration ({self.model}, {counted(self.large_sample[0].n_samples)})",
            [self.conclusion],
            [Table(("lens", "estimate", "value", "standard error", "noise floor"), rows, left=("estimate",))],
            [
                f"The large-sample estimate has frequencies in {_PAPER_CELLS} equal-width cells (bins). The level-set "
                "estimate averages exact posteriors over observations of equal, or nearly equal, predictions."
            ],
        )


def both_truths(
    y_prob: Floats, class_prob: Floats, y_true: Integers, lens: LensLike, distance: Distance
) -> tuple[MiscalibrationEstimate, MiscalibrationEstimate]:
    """Return the large-sample estimate and the level-set estimate."""
    predicted, true = look(lens, y_prob, class_prob)
    msg = f"`lenses` must have two outcomes each, {describe(lens)} has {predicted.shape[1]}."
    refuse_if(predicted.shape[1] != 2, msg)
    outcome = apply_lens(lens, y_prob, y_true)[1]
    label = EqualWidth(_PAPER_CELLS).fit(predicted)(predicted)
    target = f"{in_words(distance)} through {describe(lens)}, the frequencies in {_PAPER_CELLS} equal-width cells"
    return (
        cell_estimate(predicted, np.eye(2)[outcome], label, distance, target),
        level_set_estimate(predicted, true, lens, distance),
    )


@lru_cache(maxsize=64)
def trained(model: TrainedClassifier) -> Any:
    """Return the fitted classifier; fitted once in a process."""
    rng = np.random.default_rng([model.seed, *model.distribution.seed_words])
    x = model.distribution.draw_features(model.n_train, rng)
    y = draw_classes(model.distribution.posterior(x), rng)
    count = np.bincount(y, minlength=model.n_classes)
    found = f"class {count.argmin()} has {count.min()} of {model.n_train}"
    must = f"`n_train` must give every class at least {_SAMPLES_OF_A_CLASS} training observations"
    refuse_if(count.min() < _SAMPLES_OF_A_CLASS, f"{must}, {found}.")
    return _untrained(model.kind, model.seed).fit(x, y)


def _is_seed(name: str) -> bool:
    """Return whether a parameter is the source of randomness of an estimator, or of one within it."""
    return name.rpartition("__")[2] == "random_state"


def _untrained(kind: Any, seed: int) -> Any:
    if _learns(kind):
        from sklearn.base import clone

        made = clone(kind)
        # Every process trains it again, and must find the same classifier.
        free = [name for name, value in made.get_params().items() if value is None and _is_seed(name)]
        return made.set_params(**dict.fromkeys(free, seed)) if free else made
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    return {
        "logistic regression": LogisticRegression(max_iter=1000),
        "naive Bayes": GaussianNB(),
        "support vector": CalibratedClassifierCV(SVC(), ensemble=False),
        "random forest": RandomForestClassifier(random_state=seed),
    }[kind]


@dataclass(frozen=True, repr=False)
class RecalibratedModel(FeatureModel):
    r"""Model whose predictions pass through a recalibrator that was trained on other observations.

    .. math:: g(x) = h(g_{\text{base}}(x)), \qquad h \text{ fitted to } n \text{ pairs } (g_{\text{base}}(x_i), y_i)

    It is trained once in each process, always with the same result. `estimate_miscalibration` shows what
    miscalibration remains.

    Parameters
    ----------
    base : TrainedClassifier, LogisticModel or BentPosterior
        The model to recalibrate.
    recalibrator : object with fit and predict_proba, or callable
        Anything whose ``fit(y_prob, y_true)`` learns from predictions ``(n, n_classes)`` and whose
        ``predict_proba(y_prob)`` returns recalibrated ones; it is copied before it is trained, by
        ``sklearn.base.clone`` where it can. A function of predictions is used as it is.
    n_train : int
        Number of observations that the recalibrator is trained on.
    seed : int
        Seed of these observations.

    Raises
    ------
    TypeError
        If ``base`` is no such model, or ``recalibrator`` neither a function nor such an object.
    ValueError
        If ``n_train`` < 1 or ``seed`` < 0; when predictions are made, if the recalibrator does not return
        probabilities.

    See Also
    --------
    caltest.simulation.BentPosterior : A model that it may recalibrate.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from caltest.simulation import BentPosterior, GaussianMixture, RecalibratedModel, Temperature
    >>> mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    >>> base = BentPosterior(mixture, Temperature(0.25))
    >>> model = RecalibratedModel(base, LogisticRegression(), n_train=5000)
    >>> [round(one.estimate_miscalibration(n_samples=20_000, rng=0).value, 2) for one in (base, model)]
    [0.12, 0.09]
    """

    base: FeatureModel
    recalibrator: Any
    n_train: int = field(default=1000, metadata=COUNT)
    seed: int = field(default=0, metadata=INDEX)

    def __post_init__(self) -> None:
        super().__post_init__()
        mixture = isinstance(self.base, Mixture)
        exact = "; the exact posterior is BentPosterior(mixture, Identity())" if mixture else ""
        msg = f"`base` must be a TrainedClassifier, LogisticModel or BentPosterior, got {self.base!r}{exact}."
        refuse_if(not isinstance(self.base, FeatureModel), msg, right_type=False)
        works = _learns(self.recalibrator) or (callable(self.recalibrator) and not isinstance(self.recalibrator, type))
        must = "`recalibrator` must be an object with `fit` and `predict_proba`, or a function of predictions"
        require(works, must, self.recalibrator, right_type=False)

    @property
    def distribution(self) -> Mixture:  # type: ignore[override]
        """Where observations come from: the distribution of the base."""
        return self.base.distribution

    def predict(self, x: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""
        recalibrator = _fitted(self)
        apply = recalibrator.predict_proba if _learns(recalibrator) else recalibrator
        return apply_calibration_function(apply, self.base.predict(x), "recalibrator")


def _learns(thing: Any) -> bool:
    return not isinstance(thing, type) and hasattr(thing, "fit") and hasattr(thing, "predict_proba")


@lru_cache(maxsize=64)
def _fitted(model: RecalibratedModel) -> Any:
    """Return the trained recalibrator; trained once in a process."""
    if not _learns(model.recalibrator):
        return model.recalibrator
    from copy import deepcopy

    from sklearn.base import clone

    rng = np.random.default_rng([model.seed, 1, *model.distribution.seed_words])
    rows = model.base.draw_unlabelled(model.n_train, rng)
    y_true = draw_classes(rows.class_prob, rng)
    can = hasattr(model.recalibrator, "get_params")
    fresh = clone(model.recalibrator) if can else deepcopy(model.recalibrator)
    return fresh.fit(rows.y_prob, y_true)
