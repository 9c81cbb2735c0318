"""Studies of size: how often tests reject models that are calibrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.hypothesis_tests._calibration import METHODS, validate_resampling
from caltest.predictions._lenses import Canonical, Lens
from caltest.predictions._sample import make_sample
from caltest.predictions._validation import SeedLike, validate_choice, validate_count
from caltest.resampling._pvalues import find_pvalues
from caltest.resampling._schemes import Consistency
from caltest.results._progress import Progress
from caltest.simulation.models._base import Model
from caltest.simulation.studies._identity import identify
from caltest.simulation.studies._run import (
    Part,
    PathLike,
    accepted,
    named,
    replicate_ranges,
    replicate_rng,
    run_study,
    sizes,
)
from caltest.statistics import Statistic

if TYPE_CHECKING:
    import pandas as pd

Test = Statistic | Callable[..., Any]
"""What is tested with: a statistic, or a function ``(y_true, y_prob, lens=, rng=)`` whose result has a ``pvalue``."""

LEVELS = (0.01, 0.05, 0.1)
_REPLICATES = 100  # of a part: some seconds of work, so that little is lost when a study is stopped
_ROWS_OF_A_CALL = 1000  # rows that cost as much as what every data set costs, whatever its size
_ROUNDING = 1 + 1e-12


@dataclass(frozen=True, eq=False)
class RejectionStudy:
    """P-values of tests on data sets of models with known truth.

    Attributes
    ----------
    pvalues : pandas.DataFrame
        One row per model, lens, number of samples, replicate and test, with its ``pvalue``.
    levels : tuple of float
        Levels at which `to_frame` counts rejections.
    """

    pvalues: pd.DataFrame
    levels: tuple[float, ...]

    def to_frame(self, *, error: float = 0.001, per: str = "study") -> pd.DataFrame:
        r"""Return one row per model, lens, number of samples, test and level.

        Of R data sets (``n_replicates``) X were rejected (``rejections``, ``rate`` X / R with its standard error
        ``rate_se``). ``lower`` and ``upper`` are one-sided limits of the rejection probability (Clopper and Pearson),
        each wrong with probability :math:`\epsilon` at most. ``limit`` is the largest X that a test which keeps its
        level explains,

        .. math:: \min \{c : P(\mathrm{Bin}(R, \alpha) > c) \le \epsilon\},

        and ``exceeds`` says whether X lies above it; only then is ``lower`` above the level.

        Parameters
        ----------
        error : float
            Probability, at most, that a test which keeps its level exceeds its limit by chance.
        per : {"study", "row"}
            Whether ``error`` is shared by all rows (Bonferroni) or that of each row.

        Returns
        -------
        pandas.DataFrame
            The rejection rates.
        """
        import pandas as pd
        from scipy.stats import binom
        from statsmodels.stats.proportion import proportion_confint

        validate_choice(per, "per", ("study", "row"))
        design = [name for name in self.pvalues.columns if name not in {"replicate", "pvalue"}]
        groups = self.pvalues.groupby(design, sort=False)["pvalue"]
        rows = [
            dict(zip(design, key, strict=True)) | _counted(pvalues.to_numpy(), level)
            for key, pvalues in groups
            for level in self.levels
        ]
        frame = pd.DataFrame(rows)
        each = error / len(frame) if per == "study" else error
        count, total = frame["rejections"], frame["n_replicates"]
        lower, upper = proportion_confint(count, total, alpha=2 * each, method="beta")
        limit = binom.isf(each, total, frame["level"]).astype(int)
        return frame.assign(lower=lower, upper=upper, limit=limit, exceeds=count > limit)

    def __str__(self) -> str:
        frame = self.to_frame()
        wide = frame.pivot_table(
            index=[name for name in frame.columns if name in self.pvalues.columns],
            columns="level",
            values="rate",
            sort=False,
        )
        total = frame["n_replicates"]
        sets = f"{total.min():,}" if total.min() == total.max() else f"{total.min():,} to {total.max():,}"
        over = int(frame["exceeds"].sum())
        said = f"{over} of {len(frame)} rates exceed the binomial limit of their level (familywise 0.001)."
        return (
            f"Rejection rates by level, {sets} data sets each\n{wide.to_string(float_format='{:.4f}'.format)}\n{said}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def size_study(
    models: Model | Sequence[Model] | Mapping[str, Model],
    tests: Test | Sequence[Test] | Mapping[str, Test],
    n_samples: int | Sequence[int],
    n_replicates: int = 10_000,
    *,
    lenses: Lens | Sequence[Lens] | Mapping[str, Lens] | None = None,
    levels: Sequence[float] = LEVELS,
    n_resamples: int = 999,
    resampling: Consistency | None = None,
    method: str = "auto",
    out: PathLike | None = None,
    workers: int | None = None,
    progress: bool | Progress = False,
    rng: SeedLike = None,
) -> RejectionStudy:
    r"""Draw data sets from models with known truth, test each, and count how often tests reject.

    With calibrated models the rejection rate is the size of a test: a test that keeps its level :math:`\alpha` rejects
    at most :math:`\alpha` of the data sets, up to binomial scatter. Every test sees the same data sets.

    Parameters
    ----------
    models : Model, sequence or mapping
        What data sets are drawn from.
    tests : Statistic, function, sequence or mapping
        A statistic stands for `caltest.calibration_test` with it, ``n_resamples``, ``resampling`` and ``method``, and
        has its p-value. A function is called with ``(y_true, y_prob, lens=lens, rng=seed)``, or those of the two
        keywords that it takes, and returns an object with ``pvalue``: `caltest.spiegelhalter_test`, for example, or
        ``functools.partial(caltest.cox_test, method="score")``.
    n_samples : int or sequence of int
        Rows of a data set.
    n_replicates : int
        Data sets per model and number of rows.
    lenses : lens, sequence or mapping, optional
        What to look at; the whole prediction by default. Every test must accept every lens.
    levels : sequence of float
        Levels at which rejections are counted. A p-value of B draws can keep a level exactly only if (B + 1) times
        the level is an integer.
    n_resamples : int
        Number of draws B of each test that is named by a statistic.
    resampling : Consistency, optional
        How these tests draw: predictions fixed by default.
    method : {"auto", "exact", "monte-carlo"}
        How these tests find their null law.
    out : path, optional
        Folder in which every finished part is kept, and from which an interrupted study goes on. A function is known
        by its own code, not by what it calls: after that has changed, take another folder.
    workers : int, optional
        Threads, or what ``joblib.parallel_config`` names; 1 by default, -1 for all. The answer does not depend on it.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    RejectionStudy
        The p-values and, by ``to_frame()``, rejection rates with one-sided binomial limits.

    Raises
    ------
    ValueError
        If an argument is not of the form above, a test does not accept a lens, or ``out`` holds another study.

    Examples
    --------
    The asymptotic test of Hosmer and Lemeshow, and the same statistic with its exact law:

    >>> from functools import partial
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, size_study
    >>> tests = {"chi-squared": partial(caltest.hosmer_lemeshow_test, method="asymptotic"),
    ...          "exact": caltest.HosmerLemeshow()}
    >>> study = size_study(GaussianMixture1D(0, -2), tests, n_samples=100, n_replicates=300, rng=0)
    >>> frame = study.to_frame(per="row")
    >>> frame.loc[frame.level == 0.01, ["test", "rejections", "limit", "exceeds"]]
              test  rejections  limit  exceeds
    0  chi-squared          14     10     True
    3        exact           1     10    False
    """
    battery = Battery.of(tests, n_resamples, resampling, method)
    cells = cells_of(
        named(models, "models", Model, "models of caltest.simulation"), lenses, battery, n_samples, n_replicates
    )
    stated = validate_levels(levels)
    pvalues = run_study(
        "size", lambda seed: [cell.part(seed) for cell in cells], out=out, workers=workers, progress=progress, rng=rng
    )
    return RejectionStudy(pvalues, stated)


@dataclass(frozen=True)
class Battery:
    """Tests that see the same data; see `size_study`."""

    tests: dict[str, Test]
    n_resamples: int
    resampling: Consistency
    method: str

    @classmethod
    def of(cls, tests: Any, n_resamples: int, resampling: Consistency | None, method: str) -> Battery:
        """Check what the user passed."""
        chosen = named(tests, "tests")
        for test in chosen.values():
            if not isinstance(test, Statistic) and not (callable(test) and not isinstance(test, type)):
                msg = f"`tests` must hold statistics or functions of (y_true, y_prob, lens=, rng=), got {test!r}."
                raise ValueError(msg)
        return cls(
            chosen,
            validate_count(n_resamples, "n_resamples"),
            validate_resampling(Consistency() if resampling is None else resampling),
            validate_choice(method, "method", METHODS),
        )

    def pvalues(self, y_true: NDArray[np.int64], y_prob: NDArray[np.float64], lens: Lens, seed: int) -> list[float]:
        """Return the p-value of every test through a lens; each is that of the public function with this seed."""
        found: dict[str, float] = {}
        statistics = {name: test for name, test in self.tests.items() if isinstance(test, Statistic)}
        if statistics:
            sample = self.resampling.under_null(make_sample(y_true, y_prob, lens=lens))
            draws = self.resampling.draws(self.n_resamples, seed)
            values = find_pvalues(
                list(statistics.values()), sample, resampling=self.resampling, draws=draws, method=self.method
            )
            found |= zip(statistics, values, strict=True)
        for name, test in self.tests.items():
            if name not in found:
                options = accepted(test, {"lens": lens, "rng": seed})  # type: ignore[arg-type]
                found[name] = _pvalue(test(y_true, y_prob, **options), name)  # type: ignore[operator]
        return [found[name] for name in self.tests]


@dataclass(frozen=True)
class Cell:
    """Some replicates of a model and a number of rows, seen through lenses and tested: a part of a study."""

    model_name: str
    model: Model
    n_samples: int
    replicates: range
    lenses: dict[str, Lens]
    battery: Battery

    def part(self, seed: int) -> Part:
        """Return what is run, and kept under a name that says everything but the seed."""
        return Part(
            identify(self), partial(self.pvalues, seed), cost=(self.n_samples + _ROWS_OF_A_CALL) * len(self.replicates)
        )

    def pvalues(self, seed: int) -> pd.DataFrame:
        """Return one row for each replicate, lens and test."""
        import pandas as pd

        tests = self.battery.tests
        pvalues = np.empty((len(self.replicates), len(self.lenses), len(tests)))
        for found, replicate in zip(pvalues, self.replicates, strict=True):
            rng = replicate_rng(seed, f"{self.model_name}/{self.n_samples}", replicate)
            _, y_true, y_prob = self.model.draw(self.n_samples, rng)
            test_seed = int(rng.integers(2**63))
            found[:] = [self.battery.pvalues(y_true, y_prob, lens, test_seed) for lens in self.lenses.values()]
        rows = pd.MultiIndex.from_product([self.replicates, self.lenses, tests], names=["replicate", "lens", "test"])
        frame = rows.to_frame(index=False)
        frame = frame.assign(model=self.model_name, n_samples=self.n_samples, pvalue=pvalues.ravel())
        return frame[["model", "lens", "n_samples", "test", "replicate", "pvalue"]]


def cells_of(
    models: dict[str, Model], lenses: Any, battery: Battery, n_samples: int | Sequence[int], n_replicates: int
) -> list[Cell]:
    """Return the cells of a study, in the order of its rows."""
    looks = named(Canonical() if lenses is None else lenses, "lenses")
    total = validate_count(n_replicates, "n_replicates")
    return [
        Cell(name, model, n, replicates, looks, battery)
        for name, model in models.items()
        for n in sizes(n_samples, "n_samples")
        for replicates in replicate_ranges(total, _REPLICATES)
    ]


def _counted(pvalues: NDArray[np.float64], level: float) -> dict[str, Any]:
    count, total = int(np.count_nonzero(pvalues <= level * _ROUNDING)), len(pvalues)
    rate = count / total
    return {
        "level": level,
        "rejections": count,
        "n_replicates": total,
        "rate": rate,
        "rate_se": np.sqrt(rate * (1 - rate) / total),
    }


def _pvalue(found: Any, name: str) -> float:
    """Return the p-value of what a test returned."""
    if hasattr(found, "pvalue"):
        return float(found.pvalue)
    msg = f"`tests` must return results with a `pvalue`, got {type(found).__name__} from {name!r}."
    raise ValueError(msg)


def validate_levels(levels: Any) -> tuple[float, ...]:
    """Return levels strictly between 0 and 1, each once."""
    given = tuple(float(level) for level in np.atleast_1d(np.asarray(levels, dtype=np.float64)))
    if not given or len(set(given)) < len(given) or not all(0 < level < 1 for level in given):
        msg = f"`levels` must hold one or more different levels between 0 and 1, got {levels!r}."
        raise ValueError(msg)
    return given
