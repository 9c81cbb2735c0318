"""How many labelled rows a test needs to detect a given miscalibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lenses import Lens
from caltest.predictions._validation import SeedLike, validate_count, validate_rng
from caltest.resampling._schemes import Consistency
from caltest.results._progress import Progress
from caltest.simulation.models._base import Model
from caltest.simulation.studies._run import reporting
from caltest.simulation.studies._size import Test, size_study

if TYPE_CHECKING:
    import pandas as pd

_SEARCH_REPLICATES = 100
_ROUNDS, _STEP = 4, 2.0
_AROUND = (0.8, 1.0, 1.25)
_WINDOWS = (1.6, 2.5, 6.3, math.inf)  # sizes this near the answer, as a factor, decide it


@dataclass(frozen=True, eq=False)
class SampleSize:
    """Result of `sample_size`.

    Attributes
    ----------
    n_samples : int
        Estimated number of rows at which the test has the power.
    low, high : int
        Confidence interval of this number; either end may be that of ``n_range``.
    power, level, confidence_level : float
        What was asked for.
    rates : pandas.DataFrame
        Rejections at every size that was tried: ``n_samples``, ``rejections``, ``n_replicates``, ``rate``.
    """

    n_samples: int
    low: int
    high: int
    power: float
    level: float
    confidence_level: float
    rates: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return the rejections at every size that was tried."""
        return self.rates

    def __str__(self) -> str:
        sets = int(self.rates["n_replicates"].sum())
        most = "at most " if self.n_samples <= self.rates["n_samples"].min() else ""
        return (
            f"{most}{self.n_samples:,} rows ({self.confidence_level:.0%} interval {self.low:,} to {self.high:,}) for a "
            f"power of {self.power:g} at level {self.level:g}, from {sets:,} data sets of "
            f"{self.rates['n_samples'].min():,} to {self.rates['n_samples'].max():,} rows"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def sample_size(
    model: Model,
    test: Test,
    *,
    power: float = 0.9,
    level: float = 0.05,
    lens: Lens | None = None,
    n_range: Sequence[int] = (20, 100_000),
    n_replicates: int = 2000,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    resampling: Consistency | None = None,
    method: str = "auto",
    workers: int | None = None,
    progress: bool | Progress = False,
    rng: SeedLike = None,
) -> SampleSize:
    r"""Return how many labelled rows a test needs to detect the miscalibration of a model with given power.

    Sizes are doubled until the test rejects often enough. Then data sets are drawn near the answer, and the answer is
    improved by what they say: the power is taken to be

    .. math:: \Phi(a + b \sqrt n)

    near it, which is exact for a test by a mean with known variance and close for others within the factor 1.6 used;
    a and b are fitted by maximum likelihood, :math:`n = ((\Phi^{-1}(\text{power}) - a) / b)^2`, and the interval is
    Fieller's. It covers the scatter of the simulation; the power of a test with discrete p-values jumps with n, and
    the answer is that of the smooth curve through the jumps.

    Parameters
    ----------
    model : Model
        The miscalibration that is to be found.
    test : Statistic or function
        As in `size_study`.
    power : float
        Probability of rejecting, larger than ``level``.
    level : float
        Level of the test.
    lens : lens, optional
        What to look at; the whole prediction by default.
    n_range : sequence of two int
        Smallest and largest size that is tried.
    n_replicates : int
        Data sets near the answer; 2,000 leave a standard error of about 2 % of the answer at a power of 0.9.
    confidence_level : float
        Of the interval.
    n_resamples, resampling, method, workers
        As in `size_study`.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``, in data sets near the answer.
    rng : None, int or numpy.random.Generator
        Source of randomness; the answer depends on nothing else.

    Returns
    -------
    SampleSize
        The number of rows with its interval.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the power is not reached within ``n_range``.

    References
    ----------
    E. C. Fieller (1954), Some problems in interval estimation, Journal of the Royal Statistical Society B 16.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, sample_size
    >>> needed = sample_size(GaussianMixture1D(0, -3), caltest.TemperatureScore(), power=0.8,
    ...                      n_replicates=400, n_resamples=99, rng=0)
    >>> 100 < needed.low < needed.n_samples < needed.high < 300
    True
    """
    import pandas as pd

    for name, value in {"power": power, "level": level, "confidence_level": confidence_level}.items():
        if not 0 < value < 1:
            msg = f"`{name}` must lie between 0 and 1, got {value!r}."
            raise ValueError(msg)
    if power <= level:
        msg = f"`power` must be larger than `level` {level}, got {power!r}."
        raise ValueError(msg)
    limits = _limits(n_range)
    total = validate_count(n_replicates, "n_replicates", 2 * _ROUNDS * len(_AROUND))
    generator = validate_rng(rng)

    def reject(sizes: Sequence[int], replicates: int) -> list[tuple[int, int, int]]:
        """Return size, rejections and data sets, all drawn anew."""
        study = size_study(
            {"model": model},
            {"test": test},
            sizes,
            replicates,
            lenses=lens,
            levels=[level],
            n_resamples=n_resamples,
            resampling=resampling,
            method=method,
            workers=workers,
            rng=generator,
        )
        counted = study.to_frame()
        return [(int(row.n_samples), int(row.rejections), int(row.n_replicates)) for row in counted.itertuples()]

    with reporting(progress, "sample size study") as report:
        tried = _search(reject, power, limits)
        n = float(tried[-1][0])
        for done in range(_ROUNDS):
            report(done, _ROUNDS)
            if len(tried) > 1:  # few data sets may say little of the slope: no step is large
                step = np.clip(_Fit.near(n, tried, power).n_samples, n / _STEP, n * _STEP)
                n = float(np.clip(step, *limits))
            around = sorted({int(np.clip(round(n * factor), *limits)) for factor in _AROUND})
            tried += reject(around, -(-total // (_ROUNDS * len(around))))
        report(_ROUNDS, _ROUNDS)
    fit = _Fit.near(n, tried, power)
    low, high = fit.interval(confidence_level)
    low, n, high = (float(np.clip(value, *limits)) for value in (low, fit.n_samples, high))
    rates = pd.DataFrame(tried, columns=["n_samples", "rejections", "n_replicates"])
    rates = rates.groupby("n_samples", as_index=False).sum()
    rates["rate"] = rates["rejections"] / rates["n_replicates"]
    return SampleSize(math.ceil(n), math.floor(low), math.ceil(high), power, level, confidence_level, rates)


def _search(reject: Any, power: float, limits: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Return counts at sizes that double until clearly enough data sets are rejected."""
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
            msg = (
                f"`n_range` must reach the size that gives power {power:g}; at {n} rows {rate:.2f} were rejected "
                "(none can be, if 1 / (n_resamples + 1) is above the level)."
            )
            raise ValueError(msg)
        n = min(2 * n, limits[1])


@dataclass(frozen=True)
class _Fit:
    """A probit regression of rejection on the root of the size, and where it reaches the power."""

    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    target: float
    centre: float

    @classmethod
    def near(cls, n: float, tried: list[tuple[int, int, int]], power: float) -> _Fit:
        """Fit to the sizes near n; to more, if these tell nothing of the slope."""
        import statsmodels.api as sm
        from scipy.special import ndtri

        counts = np.array(tried, dtype=np.float64)
        for factor in _WINDOWS:
            size, rejected, total = counts[np.abs(np.log(counts[:, 0] / n)) <= math.log(factor) + 1e-9].T
            if len(np.unique(size)) > 1 and 0 < rejected.sum() < total.sum():
                break
        # Half a data set on either side keeps the fit finite where all agree.
        weight = np.concatenate([rejected, total - rejected]) + 0.5 / len(size)
        outcome = np.repeat([1.0, 0.0], len(size))
        root = sm.add_constant(np.tile(np.sqrt(size), 2), has_constant="add")
        family = sm.families.Binomial(sm.families.links.Probit())
        found = sm.GLM(outcome, root, family=family, freq_weights=weight).fit()
        return cls(
            np.asarray(found.params), np.asarray(found.cov_params()), float(ndtri(power)), float(root[:, 1].mean())
        )

    @property
    def n_samples(self) -> float:
        """Size at which the fit reaches the power; where the fitted power does not grow, one end of all sizes."""
        a, b = self.coefficients
        if b <= 0:
            return 0.0 if a + b * self.centre >= self.target else math.inf
        return max((self.target - a) / b, 0.0) ** 2

    def interval(self, confidence_level: float) -> tuple[float, float]:
        r"""Return the sizes :math:`x^2` with :math:`(a + b x - z)^2 \le c^2 \mathrm{Var}(a + b x)` (Fieller)."""
        from scipy.special import ndtri

        (a, b), v = self.coefficients, ndtri((1 + confidence_level) / 2) ** 2 * self.covariance
        square, half, constant = b**2 - v[1, 1], b * (a - self.target) - v[0, 1], (a - self.target) ** 2 - v[0, 0]
        if square <= 0 or b <= 0:  # the slope is not clear of 0: no end is known
            return 0.0, math.inf
        reach = math.sqrt(max(half**2 - square * constant, 0.0))
        low, high = (-half - reach) / square, (-half + reach) / square
        return max(low, 0.0) ** 2, max(high, 0.0) ** 2


def _limits(n_range: Any) -> tuple[int, int]:
    given = list(n_range) if isinstance(n_range, Sequence | np.ndarray) and not isinstance(n_range, str) else []
    if len(given) != 2 or not given[0] < given[1]:
        msg = f"`n_range` must hold two increasing sizes, got {n_range!r}."
        raise ValueError(msg)
    return validate_count(given[0], "n_range"), validate_count(given[1], "n_range")
