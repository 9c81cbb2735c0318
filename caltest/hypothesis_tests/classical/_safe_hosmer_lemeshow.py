"""The safe Hosmer-Lemeshow test: an e-value against calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import TestedEventOptions, event_of
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._validation import validate_count, validate_rng
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.results import Result
from caltest.results._decision import NO_PROOF, Decision, equate_pvalue
from caltest.results._description import Description, counted
from caltest.results._note import PAGE
from caltest.results._progress import reporting
from caltest.results._verdict import Judged

_FEWEST = 4  # observations, two in each half


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SafeTestResult(Judged, Decision, Result):
    """Result of `safe_hosmer_lemeshow_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic : float
        Natural logarithm of the e-value.
    pvalue, smallest_possible_pvalue, alpha : float
        The smaller one of 1 and 1 / e-value, the smallest possible one, and the level.
    n_splits : int
        Number of random halves over which the e-value is a mean.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples, n_events : int
        Numbers of observations and of events.

    See Also
    --------
    safe_hosmer_lemeshow_test : The test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.hypothesis_tests.safe_hosmer_lemeshow_test(y_true, y_prob[:, 1], rng=0)
    >>> result.n_splits, result.rejected
    (50, False)
    """

    statistic: float
    pvalue: float
    smallest_possible_pvalue: float
    alpha: float
    n_splits: int
    lens: LensLike
    lens_name: str
    n_samples: int
    n_events: int

    _derived: ClassVar[tuple[str, ...]] = ("evalue", "rejected", "decision", "conclusion")

    @property
    def evalue(self) -> float:
        """The e-value; its expected value is at most 1 if the model is calibrated. It may be infinite."""
        return math.exp(self.statistic) if self.statistic < 700 else math.inf

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        size = f"e-value {self.evalue:.3g}, {equate_pvalue(self.pvalue)}"
        return (
            f"Calibration is rejected ({size})."
            if self.rejected
            else f"Calibration is not rejected ({size}). {NO_PROOF}"
        )

    def _describe(self) -> Description:
        size = f"{self.lens_name}, {counted(self.n_samples)}, {counted(self.n_events, 'event')}"
        return Description(
            f"Safe Hosmer-Lemeshow test ({size})",
            [self.conclusion],
            remarks=[
                f"Likelihood ratio of an isotonic fit to one half and the predictions, on the other half: mean of "
                f"{counted(self.n_splits, 'random split')}.",
                "E-values of independent data multiply. The p-value is their inverse, valid at every sample size.",
                f"Valid if observations are independent and no label was used to make the predictions. [C101: {PAGE}]",
            ],
        )


@reads_arguments
def safe_hosmer_lemeshow_test(
    y_true: ArrayLike, y_prob: ArrayLike, *, n_splits: int = 50, **options: Unpack[TestedEventOptions]
) -> SafeTestResult:
    r"""Test calibration by an e-value, as the safe Hosmer-Lemeshow test does (Henzi et al. 2023).

    One half of the observations, drawn at random, gives an isotonic regression q of the labels on the predictions. The
    other half gives the likelihood ratio

    .. math:: E = \prod_i \frac{q(p_i)^{y_i} (1 - q(p_i))^{1 - y_i}}{p_i^{y_i} (1 - p_i)^{1 - y_i}},

    whose expected value is 1 if the predictions are calibrated. So is that of its mean over splits, and
    :math:`P(E \ge 1 / \alpha) \le \alpha` at every sample size. E-values of new, independent data may be multiplied,
    and testing may stop at any time. This costs power: `calibration_test` rejects earlier on data that are all there.

    Parameters
    ----------
    n_splits : int
        Number of random splits. They do not change the level; more of them make the e-value less random.

    Returns
    -------
    SafeTestResult
        Prints as a report; unpacks as ``statistic, pvalue``, where the statistic is the logarithm of ``evalue``.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``n_splits`` not an integer.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds fewer than 4 observations; if the lens has more than two outcomes; if ``n_splits``
        < 1, or ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    hosmer_lemeshow_test : Groups of predictions; more power on data that are all there.
    caltest.streaming.CalibrationMonitor : E-values of predictions that keep coming.

    Notes
    -----
    Nothing is simulated: the p-value is 1 / E, not the rank of E among simulated labels. The fit is linear between the
    predictions of its half, and is mixed with the prediction itself, whose weight is that of one observation, so that
    it is never 0 or 1 unless the prediction is. The authors' program takes the steps of the fit, and the prediction
    where these are 0 or 1, so that its numbers differ. Every such choice leaves the e-value valid.

    References
    ----------
    A. Henzi, M. Puke, T. Dimitriadis and J. Ziegel (2023), A safe Hosmer-Lemeshow test, The New England Journal of
    Statistics in Data Science 2, 175-189.

    Examples
    --------
    Risks whose squares are right:

    >>> import numpy as np
    >>> from caltest.hypothesis_tests import safe_hosmer_lemeshow_test
    >>> y_prob = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 100)
    >>> y_true = (np.tile(np.arange(100), 5) < 100 * y_prob**2).astype(int)
    >>> result = safe_hosmer_lemeshow_test(y_true, y_prob, rng=0)
    >>> result.evalue > 1e5, result.rejected
    (True, True)
    """
    splits = validate_count(n_splits, "n_splits", minimum=1)
    sample, about = event_of(y_true, y_prob, options)
    order = np.lexsort((sample.outcome, sample.event))  # so that the order of the rows does not matter
    p, y, n = sample.event[order], sample.outcome[order].astype(np.float64), sample.n_samples
    refuse_if(n < _FEWEST, f"`y_true` must hold at least {_FEWEST} observations, two for each half, got {n}.")
    rng = validate_rng(options["rng"])
    found = np.empty(splits)
    with reporting(options["progress"], "splitting") as report:
        for k in range(splits):
            order = rng.permutation(n)
            found[k] = _log_evalue(p, y, np.sort(order[: n // 2]), np.sort(order[n // 2 :]))
            report(k + 1, splits)
    largest = found.max()
    log_evalue = float(largest + np.log(np.exp(found - largest).mean())) if np.isfinite(largest) else float(largest)
    return SafeTestResult(
        statistic=log_evalue,
        pvalue=max(min(1.0, math.exp(-log_evalue)), SMALLEST_PVALUE),
        smallest_possible_pvalue=0.0,
        alpha=options["alpha"],
        n_splits=splits,
        n_samples=n,
        n_events=int(sample.outcome.sum()),
        **about,
    )


def _log_evalue(p: Floats, y: Floats, first: np.ndarray, second: np.ndarray) -> float:
    """Return the logarithm of the likelihood ratio on the second half of an isotonic fit to the first one."""
    from scipy.optimize import isotonic_regression

    value, place = np.unique(p[first], return_inverse=True)
    count = np.bincount(place)
    fit = isotonic_regression(np.bincount(place, weights=y[first]) / count, weights=count).x
    own, happened = p[second], y[second] > 0
    mixed = (len(first) * np.interp(own, value, fit) + own) / (len(first) + 1)
    given = np.where(happened, own, 1 - own)
    if (given <= 0).any():
        return math.inf
    return float((np.log(np.where(happened, mixed, 1 - mixed)) - np.log(given)).sum())
