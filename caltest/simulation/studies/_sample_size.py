"""The number of labelled observations that a test needs to detect a given miscalibration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from caltest.hypothesis_tests._power_curve import PowerCurve, validate_power
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count, validate_level, validate_rng
from caltest.results import ConfidenceInterval, Result
from caltest.results._description import Description, percent
from caltest.results._naming import describe
from caltest.results._progress import reporting
from caltest.simulation.models._base import Model
from caltest.simulation.studies._options import SampleSizeOptions
from caltest.simulation.studies._run import increasing_pair
from caltest.simulation.studies._size import Test, size_study
from caltest.simulation.studies._study import frame_table

if TYPE_CHECKING:
    import pandas as pd

_SEARCH_REPLICATES = 100
_ROUNDS, _STEP = 4, 2.0
_AROUND = (0.8, 1.0, 1.25)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SampleSize(Result):
    """Result of `sample_size`; unpacks as ``low, high``.

    Attributes
    ----------
    n_samples : int
        Estimated number of observations at which the test has the power.
    confidence_interval : ConfidenceInterval
        Interval for this number: ``low`` and ``high``, integers; either end may be that of ``n_range``.
    confidence_level : float
        Probability with which the interval contains the number.
    power, alpha : float
        Power and level of the test.
    model : Model
        The miscalibration that is detected.
    test : Statistic or callable
        The test.
    rates : pandas.DataFrame
        Rejections at every size that was tried: ``n_samples``, ``rejections``, ``n_replicates``, ``rate``.

    See Also
    --------
    caltest.simulation.sample_size : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, sample_size
    >>> size = sample_size(
    ...     GaussianMixture1D(0, -4),
    ...     caltest.KS(),
    ...     power=0.5,
    ...     n_range=(100, 1000),
    ...     n_replicates=24,
    ...     n_resamples=19,
    ...     rng=0,
    ... )
    >>> low, high = size
    >>> low <= size.n_samples <= high
    True
    """

    n_samples: int
    confidence_interval: ConfidenceInterval
    confidence_level: float
    power: float
    alpha: float
    model: Model
    test: Test
    rates: pd.DataFrame

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    def __iter__(self) -> Iterator[float]:
        return iter(self.confidence_interval)

    @property
    def conclusion(self) -> str:
        """The number of observations with its interval, in words."""
        low, high = (f"{end:,}" for end in self.confidence_interval)
        most = "At most" if self.n_samples <= self.rates["n_samples"].min() else "About"
        return (
            f"{most} {self.n_samples:,} observations are needed ({percent(self.confidence_level)} confidence interval "
            f"{low} to {high}) for power {self.power:g} at the {percent(self.alpha)} level."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the rejections at every size that was tried.

        Returns
        -------
        pandas.DataFrame
            As ``rates``.
        """
        return self.rates

    def _describe(self) -> Description:
        sets = int(self.rates["n_replicates"].sum())
        heads = ("observations", "rejections", "data sets", "rate")
        return Description(
            f"Sample size ({describe(self.test)}, {describe(self.model)}, {sets:,} data sets)",
            [self.conclusion],
            [frame_table(self.rates, dict(zip(self.rates.columns, heads, strict=True)))],
            ["The interval covers the Monte Carlo error of the simulation, given the model."],
        )


@reads_arguments
def sample_size(
    model: Model,
    test: Test,
    *,
    power: float = 0.9,
    alpha: float = 0.05,
    lens: LensLike | None = None,
    n_range: Sequence[int] = (20, 100_000),
    n_replicates: int = 2000,
    confidence_level: float = 0.95,
    **options: Unpack[SampleSizeOptions],
) -> SampleSize:
    r"""Estimate the number of labelled observations that a test needs for a given power.

    The size is doubled until the test rejects often enough. Then data sets are drawn near the answer, which is improved
    by their results: near it the power is assumed to be

    .. math:: \Phi(a + b \sqrt n)

    which is exact for a test by a mean with known variance and close for others within the factor 1.6 used; a and b are
    fitted by maximum likelihood, :math:`n = ((\Phi^{-1}(\text{power}) - a) / b)^2`, and the interval is Fieller's. It
    covers the Monte Carlo error of the simulation. The power of a test with discrete p-values jumps with n, and the
    answer is that of the smooth curve through the jumps.

    Parameters
    ----------
    model : Model
        The miscalibration that the test has to detect.
    test : Statistic or function
        As in `size_study`.
    power : float
        Probability of rejecting, larger than ``alpha``.
    alpha : float
        Level of the test.
    lens : lens, optional
        What to look at, as in `size_study`.
    n_range : sequence of two int
        Smallest and largest size that is tried.
    n_replicates : int
        Number of data sets near the answer; 2,000 give a standard error of about 2 % of the answer at a power of 0.9.
    confidence_level : float
        Probability with which the interval contains the number.
    workers : int
        Threads, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``, in rounds near the answer.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness; the answer depends on nothing else.

    Returns
    -------
    SampleSize
        The number of observations with its interval; unpacks as ``low, high``.

    Raises
    ------
    TypeError
        If ``model`` is not a model or ``test`` not a test.
    ValueError
        If ``power``, ``alpha`` or ``confidence_level`` is not strictly between 0 and 1, ``power`` is not larger than
        ``alpha``, ``n_range`` is not two increasing sizes or ``n_replicates`` < 24; if the power is not reached within
        ``n_range``.

    See Also
    --------
    caltest.detectable_error : The smallest error that a test finds with the data at hand.

    References
    ----------
    E. C. Fieller (1954), Some problems in interval estimation, Journal of the Royal Statistical Society B 16.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, sample_size
    >>> needed = sample_size(GaussianMixture1D(0, -3), caltest.TemperatureScore(), power=0.8,
    ...                      n_range=(100, 10_000), n_replicates=100, n_resamples=99, rng=0)
    >>> low, high = needed
    >>> 100 < low < needed.n_samples < high < 300
    True
    """
    import pandas as pd

    given = {"alpha": alpha, "confidence_level": confidence_level}
    alpha, confidence_level = (validate_level(value, name) for name, value in given.items())
    power = validate_power(power, alpha)
    limits = increasing_pair(n_range, "n_range", "hold two increasing sizes", validate_count)
    total = validate_count(n_replicates, "n_replicates", 2 * _ROUNDS * len(_AROUND))
    generator, progress = validate_rng(options.pop("rng")), options.pop("progress")

    def reject(sizes: Sequence[int], replicates: int) -> list[tuple[int, int, int]]:
        """Return sizes, rejections and numbers of data sets, from new data sets."""
        study = size_study(
            {"model": model},
            {"test": test},
            sizes,
            replicates,
            lenses=lens,
            levels=[alpha],
            rng=generator,
            **options,  # type: ignore[misc]
        )
        counted = study.to_frame()
        return [(int(row.n_samples), int(row.rejections), int(row.n_replicates)) for row in counted.itertuples()]

    with reporting(progress, "sample size study") as report:
        tried = _search(reject, power, limits)
        n = float(tried[-1][0])
        for done in range(_ROUNDS):
            report(done, _ROUNDS)
            if len(tried) > 1:  # few data sets may determine the slope badly: no step is large
                step = np.clip(_power_curve(n, tried, power).place ** 2, n / _STEP, n * _STEP)
                n = float(np.clip(step, *limits))
            around = sorted({int(np.clip(round(n * factor), *limits)) for factor in _AROUND})
            tried += reject(around, -(-total // (_ROUNDS * len(around))))
        report(_ROUNDS, _ROUNDS)
    curve = _power_curve(n, tried, power)
    low, high = curve.interval(confidence_level)
    low, n, high = (float(np.clip(root**2, *limits)) for root in (low, curve.place, high))
    rates = pd.DataFrame(tried, columns=["n_samples", "rejections", "n_replicates"])
    rates = rates.groupby("n_samples", as_index=False).sum()
    rates["rate"] = rates["rejections"] / rates["n_replicates"]
    return SampleSize(
        n_samples=math.ceil(n),
        confidence_interval=ConfidenceInterval(math.floor(low), math.ceil(high)),
        confidence_level=confidence_level,
        power=power,
        alpha=alpha,
        model=model,
        test=test,
        rates=rates,
    )


def _search(reject: Any, power: float, limits: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Return counts at sizes that are doubled until clearly enough data sets are rejected."""
    tried: list[tuple[int, int, int]] = []
    n, clear = limits[0], power + (1 - power) / 3
    while True:
        tried += reject([n], _SEARCH_REPLICATES)
        rate = tried[-1][1] / tried[-1][2]
        if rate >= clear:
            return tried
        if n == limits[1]:
            if rate >= power:
                return tried
            refuse(
                f"`n_range` must reach the size that gives power {power:g}; at {n:,} observations {rate:.2f} of the "
                "data sets were rejected (none can be, if 1 / (n_resamples + 1) is above `alpha`)."
            )
        n = min(2 * n, limits[1])


def _power_curve(n: float, tried: list[tuple[int, int, int]], power: float) -> PowerCurve:
    """Return the power as a curve of the root of the size, near a size."""
    return PowerCurve.near(math.sqrt(n), [(math.sqrt(size), rejected, sets) for size, rejected, sets in tried], power)
