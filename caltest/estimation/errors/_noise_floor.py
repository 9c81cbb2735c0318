"""The noise floor: the distribution of a calibration error if the model is calibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import FloorOptions
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._sample import induce
from caltest.predictions._user_functions import Region
from caltest.predictions._view import LensView
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_choice, validate_level, validate_prob
from caltest.resampling.distributions._base import Distribution, MonteCarloDistribution
from caltest.resampling.engine._evaluation import Question, draw_nulls
from caltest.resampling.engine._run import VALID_METHODS, computed_distribution, settle
from caltest.resampling.engine._sparsity import sparsity_notes
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import Note, Result
from caltest.results._description import Description, Table, counted, percent
from caltest.results._naming import describe
from caltest.results._progress import reporting
from caltest.statistics import ECE, Statistic
from caltest.statistics._base import default_lens, validate_estimate


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NoiseFloor(Result):
    """Result of `noise_floor`.

    Attributes
    ----------
    test_statistic : Statistic
        The statistic, as an object.
    null : Distribution
        Its distribution if the model is calibrated; ``null.sf(x)`` is the probability of x or more.
    quantiles : dict of float to float
        Quantiles of this distribution, by probability.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples, n_outcomes : int
        Number of observations, and of outcomes behind the lens.
    method : {"exact", "monte-carlo"}
        How the distribution was found.
    hypothesis, origin : str
        The null hypothesis, and where the distribution comes from, in words.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    caltest.noise_floor : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> floor = caltest.noise_floor(y_prob, n_resamples=99, rng=0)
    >>> floor.n_samples, round(floor.mean, 3)
    (300, 0.037)
    """

    test_statistic: Statistic
    null: Distribution = field(repr=False)
    quantiles: dict[float, float]
    lens: LensLike
    lens_name: str
    n_samples: int
    n_outcomes: int
    method: str
    hypothesis: str
    origin: str
    notes: tuple[Note, ...] = ()

    _left_out: ClassVar[frozenset[str]] = frozenset({"null"})
    _derived: ClassVar[tuple[str, ...]] = ("mean", "std", "numerical_error", "n_resamples", "conclusion")

    @property
    def mean(self) -> float:
        """The noise floor itself: the expected value if the model is calibrated."""
        return self.null.mean

    @property
    def std(self) -> float:
        """Standard deviation if the model is calibrated."""
        return self.null.std

    @property
    def n_resamples(self) -> int:
        """Number of draws; 0 if nothing was drawn."""
        return len(self.null.values) if isinstance(self.null, MonteCarloDistribution) else 0

    @property
    def numerical_error(self) -> float:
        """Standard error of the mean due to the number of draws; 0 if nothing was drawn."""
        return self.std / math.sqrt(self.n_resamples) if self.n_resamples else 0.0

    @property
    def conclusion(self) -> str:
        """The noise floor in words."""
        name, top = describe(self.test_statistic), max(self.quantiles, default=None)
        most = "" if top is None else f" and at most {self.quantiles[top]:.4g} in {percent(top)} of data sets"
        return f"For a calibrated model with these predictions {name} is {self.mean:.4g} on average{most}."

    def _describe(self) -> Description:
        rows = [("mean", f"{self.mean:.4g}"), ("standard deviation", f"{self.std:.4g}")]
        rows += [(f"{percent(q)} quantile", f"{value:.4g}") for q, value in self.quantiles.items()]
        error = f"; standard error of the mean {self.numerical_error:.1g}" if self.n_resamples else ""
        return Description(
            f"Noise floor ({type(self.test_statistic).__name__}, {self.lens_name}, {counted(self.n_samples)})",
            [
                self.conclusion,
                "A value of this size is no sign of miscalibration. A larger value is a reason to test; the excess "
                "over the noise floor does not estimate the miscalibration.",
            ],
            [Table(("if the model is calibrated", "value"), rows)],
            [f"Hypothesis: {self.hypothesis}.", f"Distribution: {self.origin}{error}."],
            self.notes,
        )


@reads_arguments
def noise_floor(
    y_prob: ArrayLike,
    *,
    statistic: Statistic | str | None = None,
    region: Region | None = None,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    n_resamples: int | None = None,
    method: str = "auto",
    **options: Unpack[FloorOptions],
) -> NoiseFloor:
    r"""Compute the distribution of a calibration error if the model were calibrated (no labels needed).

    The noise floor is the mean of this distribution, of the statistic T(g, Y) if every label follows its prediction,
    :math:`Y_i \sim g_i`:

    .. math:: E\,T(g, Y) = \sum_y T(g, y) \prod_i g_{i, y_i}

    Estimates of miscalibration are biased, and the bias depends on the predictions and on their number. Two models, or
    two sample sizes, have different noise floors, so that their plain estimates cannot be compared (section 4.3 of
    Vaicenavicius et al. 2019).

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    lens : lens, optional
        What to look at; by default the whole prediction, or the confidence if the statistic needs two outcomes.
    statistic : Statistic or str, optional
        ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; others are left out.
    quantiles : sequence of float
        Probabilities of the quantiles to report, each strictly between 0 and 1.
    resampling : Consistency, optional
        The null hypothesis; ``Consistency()`` by default: predictions fixed, labels simulated from them.
    n_resamples : int, optional
        Number of draws; not used where nothing is drawn. By default 9,999, and 999 for more than 5,000,000 predicted
        probabilities.
    method : {"auto", "exact", "monte-carlo"}
        How the distribution is found. "exact" computes it, for `ECE`, `MCE` and `HosmerLemeshow` behind two-outcome
        lenses with predictions fixed; quantiles of a computed sum are exact up to the step of a grid of 2**14 points.
        "auto" computes it where it can and simulates labels otherwise.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.

    Returns
    -------
    NoiseFloor
        Prints as a report; holds the distribution as ``null``.

    Raises
    ------
    TypeError
        If ``statistic`` is no statistic, ``resampling`` no `Consistency`, ``quantiles`` no sequence, or ``lens``,
        ``region``, ``n_resamples``, ``workers``, ``rng`` or ``progress`` has another wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1; if the statistic is a combination of tests
        (`Omnibus`), or needs two outcomes and the lens returns more; if a quantile is not strictly between 0 and 1; if
        ``method`` is unknown, or "exact" where the exact distribution is not known; if ``n_resamples`` < 1; if no
        observation lies in the region.

    Warns
    -----
    CalibrationWarning
        If predictions are resampled and cells hold few observations: the noise floor is then too low or too high.

    See Also
    --------
    caltest.calibration_error : The error that is compared with it.
    caltest.calibration_test : Its p-value.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3.

    Examples
    --------
    The ECE of one model is twice that of another, but calibrated models would have about the same values:

    >>> import caltest
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> for name in ("logistic_regression", "neural_network"):
    ...     floor = caltest.noise_floor(models[name], rng=0)
    ...     error = caltest.calibration_error(y_true, models[name])
    ...     print(f"{name}: ECE {error:.3f}, floor {floor.mean:.3f}, 95 % below {floor.quantiles[0.95]:.3f}")
    logistic_regression: ECE 0.048, floor 0.046, 95 % below 0.054
    neural_network: ECE 0.023, floor 0.021, 95 % below 0.025
    >>> round(floor.null.sf(error), 2)
    0.22
    """
    chosen = validate_estimate(ECE() if statistic is None else statistic)
    null = options["resampling"]
    validate_choice(method, "method", VALID_METHODS)
    levels = _validate_quantiles(quantiles)
    prob = validate_prob(y_prob)
    draws = null.draws(number_of_draws(n_resamples, USUAL_DRAWS, prob.size), options["rng"])
    look = default_lens(chosen, prob.shape[1]) if options["lens"] is None else options["lens"]
    # A sample needs labels, but none of them changes the null distribution.
    sample = null.under_null(induce(prob, np.zeros(len(prob), dtype=np.int64), lens=look, region=region))
    chosen = settle(chosen, sample)
    found = computed_distribution(chosen, sample, null, method)
    drawn = found is None
    if found is None:
        with reporting(options["progress"], "simulating labels") as report:
            found = MonteCarloDistribution(
                draw_nulls([Question(chosen, LensView(sample))], sample, draws, options["workers"], report)[0][0]
            )
    return NoiseFloor(
        test_statistic=chosen,
        null=found,
        quantiles={q: found.quantile(q) for q in levels},
        lens=look,
        lens_name=lens_name(look),
        n_samples=sample.n_samples,
        n_outcomes=sample.n_outcomes,
        method="monte-carlo" if drawn else "exact",
        hypothesis=null.hypothesis,
        origin=null.origin(draws.n_resamples) if drawn else "computed, predictions fixed (no Monte Carlo error)",
        notes=(*few_cells_notes(sample, chosen.partition), *sparsity_notes([chosen], sample, draws)),
    )


def _validate_quantiles(quantiles: Any) -> list[float]:
    if isinstance(quantiles, Sequence | np.ndarray) and not isinstance(quantiles, str):
        return [validate_level(q, "quantiles") for q in quantiles]
    msg = f"`quantiles` must be a sequence of probabilities strictly between 0 and 1, got {quantiles!r}."
    raise TypeError(msg)
