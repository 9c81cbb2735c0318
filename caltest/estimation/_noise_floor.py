"""The noise floor: what a perfectly calibrated model shows on given predictions, whatever the labels are."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import COMPUTED_LAWS, validate_estimate, validate_resampling
from caltest.hypothesis_tests._diagnostics import hypothesis_text, lens_text, null_law_text, sparsity_notes
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import Region, induce
from caltest.predictions._validation import SeedLike, validate_choice, validate_level, validate_prob
from caltest.resampling._distributions import Law, ResampledLaw
from caltest.resampling._pvalues import refuse_exact
from caltest.resampling._schemes import Consistency
from caltest.results._test_result import finite
from caltest.statistics import ECE, Statistic


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Result of `noise_floor`.

    Attributes
    ----------
    name : str
        The statistic.
    null : Law
        Its law under perfect calibration; ``null.sf(x)`` is the probability that a perfect model shows x or more.
    quantiles : dict of float to float
        Quantiles of this law, by probability.
    lens : str
        What is looked at.
    n_samples, n_outcomes : int
        Size of the induced problem.
    method : str
        "exact" or "monte-carlo".
    hypothesis, null_law : str
        What perfect calibration means here, and where the law comes from.
    notes : tuple of str
        What the reader should know beyond the numbers.
    """

    name: str
    null: Law = field(repr=False)
    quantiles: dict[float, float]
    lens: str
    n_samples: int
    n_outcomes: int
    method: str
    hypothesis: str
    null_law: str
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """The noise floor itself: the expected value under perfect calibration."""
        return self.null.mean

    @property
    def std(self) -> float:
        """Standard deviation under perfect calibration."""
        return self.null.std

    @property
    def n_resamples(self) -> int:
        """Number of draws; 0 if nothing was drawn."""
        return len(self.null.values) if isinstance(self.null, ResampledLaw) else 0

    @property
    def monte_carlo_error(self) -> float:
        """Standard error of the mean due to the finite number of draws; 0 if nothing was drawn."""
        return self.std / math.sqrt(self.n_resamples) if self.n_resamples else 0.0

    @property
    def reading(self) -> str:
        """What the numbers mean, in words."""
        top = max(self.quantiles, default=None)
        most = "" if top is None else f", and at most {self.quantiles[top]:.4g} in {100 * top:.4g} % of all data sets"
        return (
            f"If the hypothesis holds, {self.name} is {self.mean:.4g} on average on these predictions{most}: a value "
            "of this size is no sign of miscalibration. What exceeds the floor is a reason to test, not an estimate of "
            "the miscalibration."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the law as plain Python objects, ready for JSON; infinity becomes None."""
        return {
            "name": self.name,
            "lens": self.lens,
            "mean": finite(self.mean),
            "std": finite(self.std),
            "quantiles": {f"{q:.12g}": finite(value) for q, value in self.quantiles.items()},
            "monte_carlo_error": finite(self.monte_carlo_error),
            "n_resamples": self.n_resamples,
            "n_samples": self.n_samples,
            "n_outcomes": self.n_outcomes,
            "method": self.method,
            "hypothesis": self.hypothesis,
            "null_law": self.null_law,
            "notes": list(self.notes),
            "reading": self.reading,
        }

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(text)}</td></tr>" for label, text in self._facts())
        return f"<h4>Noise floor</h4><table>{rows}</table>" + "".join(f"<p>{escape(w)}</p>" for w in self._words())

    def __str__(self) -> str:
        lines = ["Noise floor", "", *(f"  {label:<12} {text}" for label, text in self._facts()), ""]
        for words in self._words():
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        error = f" (Monte Carlo standard error {self.monte_carlo_error:.1g})" if self.n_resamples else ""
        return [
            ("statistic", self.name),
            ("hypothesis", self.hypothesis),
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {self.n_outcomes} outcomes"),
            ("null law", self.null_law),
            ("mean", f"{self.mean:.4g}{error}"),
            ("std", f"{self.std:.4g}"),
            *((f"{100 * q:.4g} % below", f"{value:.4g}") for q, value in self.quantiles.items()),
        ]

    def _words(self) -> list[str]:
        return [self.reading, *(f"Note: {note}" for note in self.notes)]


def noise_floor(
    y_prob: ArrayLike,
    *,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    region: Region | None = None,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    resampling: Consistency | None = None,
    n_resamples: int = 9999,
    method: str = "auto",
    workers: int = 1,
    rng: SeedLike = None,
) -> NoiseFloor:
    r"""Return what a perfectly calibrated model would show on these predictions; no labels are needed.

    The law of the statistic T(g, Y) where every outcome follows its prediction, :math:`Y_i \sim g_i`, and above all its
    mean

    .. math:: E\,T(g, Y) = \sum_y T(g, y) \prod_i g_{i, y_i}

    Estimates of miscalibration are biased, and by how much depends on the predictions and on their number: two models,
    or two sample sizes, have different floors, so that their bare estimates cannot be compared (section 4.3 of the
    paper).

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    quantiles : sequence of float
        Probabilities of the quantiles to report, each strictly between 0 and 1.
    resampling : Consistency, optional
        What perfect calibration means; ``Consistency()`` by default: predictions fixed, outcomes redrawn.
    n_resamples : int
        Number of draws. Not used where nothing is drawn.
    method : {"auto", "exact", "monte-carlo"}
        "exact" computes the law without drawing anything, for `ECE`, `MCE` and `HosmerLemeshow` behind two-outcome
        lenses with predictions fixed; "auto" does so where it can. Quantiles of a computed sum lie within the step of
        a grid of 2**14 points.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    NoiseFloor
        Prints in words; carries the law as ``null``.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the statistic has no value of its own (`Omnibus`).

    Warns
    -----
    CalibrationWarning
        If predictions are resampled and cells hold few rows: the floor is then too low or too high.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3.

    Examples
    --------
    One model's ECE is twice that of another, and both are what perfect models would show:

    >>> import caltest
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> for name in ("logistic_regression", "neural_network"):
    ...     floor = caltest.noise_floor(models[name], rng=0)
    ...     error = caltest.calibration_error(y_true, models[name])
    ...     print(f"{name}: ECE {error:.3f}, floor {floor.mean:.3f}, 95 % below {floor.quantiles[0.95]:.3f}")
    logistic_regression: ECE 0.048, floor 0.046, 95 % below 0.055
    neural_network: ECE 0.023, floor 0.021, 95 % below 0.025
    >>> round(floor.null.sf(error), 2)
    0.23
    """
    validate_choice(method, "method", ("auto", "exact", "monte-carlo"))
    chosen = validate_estimate(ECE() if statistic is None else statistic)
    scheme = validate_resampling(Consistency() if resampling is None else resampling)
    levels = _validate_quantiles(quantiles)
    draws = scheme.draws(n_resamples, rng)
    prob = validate_prob(y_prob)
    # No law depends on the outcomes of a sample; it has to hold some.
    sample = scheme.under_null(induce(prob, np.zeros(len(prob), dtype=np.int64), lens=lens, region=region))
    law = None if method == "monte-carlo" or scheme.resample_predictions else chosen.exact_law(sample)
    if law is None and method == "exact":
        refuse_exact(chosen, sample, scheme)
    drawn = law is None
    if law is None:
        law = ResampledLaw(draws.map(lambda part: chosen.null(sample, part), workers))
    return NoiseFloor(
        str(chosen),
        law,
        {q: law.quantile(q) for q in levels},
        lens_text(lens, None),
        sample.n_samples,
        sample.n_outcomes,
        "monte-carlo" if drawn else "exact",
        hypothesis_text(scheme),
        null_law_text(scheme, draws) if drawn else COMPUTED_LAWS["exact"],
        tuple(sparsity_notes([chosen], sample, draws, stacklevel=3)),
    )


def _validate_quantiles(quantiles: Any) -> list[float]:
    if isinstance(quantiles, Sequence | np.ndarray) and not isinstance(quantiles, str):
        return [validate_level(q, "quantiles") for q in quantiles]
    msg = f"`quantiles` must be a sequence of probabilities strictly between 0 and 1, got {quantiles!r}."
    raise ValueError(msg)
