"""Studies of size: how often tests reject models that are calibrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, validate_choice, validate_count
from caltest.resampling.draws._schemes import Consistency, validate_resampling
from caltest.resampling.draws._summaries import CellCounts, EntryCounts
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._run import METHODS, run, settle
from caltest.results._decision import rejects
from caltest.results._description import Description, Table, join, percent
from caltest.results._picture import Picture
from caltest.results._progress import Progress
from caltest.simulation.models._base import Model
from caltest.simulation.studies._run import (
    Part,
    PathLike,
    accepted,
    by_lens,
    identify,
    named,
    replicate_ranges,
    replicate_rng,
    run_study,
    sizes,
)
from caltest.simulation.studies._study import Study, frame_table, subject, varying
from caltest.statistics import Statistic

if TYPE_CHECKING:
    import pandas as pd

Test = Statistic | Callable[..., Any]
"""What is tested with: a statistic, or a function ``(y_true, y_prob, lens=, rng=)`` whose result has a ``pvalue``."""


@dataclass(frozen=True)
class Battery:
    """Tests that are applied to the same data sets; see `size_study`."""

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
                raise TypeError(msg)
        return cls(
            chosen,
            validate_count(n_resamples, "n_resamples"),
            validate_resampling(Consistency() if resampling is None else resampling),
            validate_choice(method, "method", METHODS),
        )

    def pvalues(self, y_true: NDArray[np.int64], y_prob: NDArray[np.float64], lens: LensLike, seed: int) -> list[float]:
        """Return the p-value of every test through a lens; each is that of the public function with this seed."""
        found: dict[str, float] = {}
        statistics = {name: test for name, test in self.tests.items() if isinstance(test, Statistic)}
        if statistics:
            found |= self._pvalues_of(statistics, make_sample(y_true, y_prob, lens=lens), seed)
        for name, test in self.tests.items():
            if name not in found:
                options = accepted(test, {"lens": lens, "rng": seed})  # type: ignore[arg-type]
                found[name] = _pvalue(test(y_true, y_prob, **options), name)  # type: ignore[operator]
        return [found[name] for name in self.tests]

    def _pvalues_of(self, statistics: dict[str, Statistic], observed: Sample, seed: int) -> dict[str, float]:
        """Return the p-value of every statistic; those that are evaluated on labels share the draws of the labels."""
        sample = self.resampling.under_null(observed)
        view = LensView(sample)
        shared = [name for name, statistic in statistics.items() if self._draws_labels(statistic, sample)]
        alone = [[name] for name in statistics if name not in shared]
        found: dict[str, float] = {}
        for names in (*alone, shared) if shared else alone:
            answer = run(
                [Question(statistics[name], view) for name in names],
                sample,
                self.resampling,
                n_resamples=self.n_resamples,
                method=self.method if len(names) == 1 else "monte-carlo",
                rng=seed,
            )
            found |= {name: finding.pvalue for name, finding in zip(names, answer.findings, strict=True)}
        return found

    def _draws_labels(self, statistic: Statistic, sample: Sample) -> bool:
        """Return whether the null distribution comes from simulated labels: neither from counts nor from a formula."""
        counted = isinstance(settle(statistic, sample).summary(sample), CellCounts | EntryCounts)
        if counted or self.method not in {"auto", "monte-carlo"}:
            return False
        computed = self.method == "auto" and not self.resampling.resample_predictions
        return not computed or type(statistic).exact_distribution is Statistic.exact_distribution


def _pvalue(found: Any, name: str) -> float:
    """Return the p-value of what a test returned."""
    if hasattr(found, "pvalue"):
        return float(found.pvalue)
    msg = f"`tests` must return results with a `pvalue`, got {type(found).__name__} from {name!r}."
    raise TypeError(msg)


LEVELS = (0.01, 0.05, 0.1)
_REPLICATES = 100  # of a part: some seconds of work, so that little is lost when a study is stopped
_FIXED_COST = 1000  # of every data set, in observations
_ERROR = 0.001


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RejectionStudy(Study):
    """Result of `size_study`: p-values of tests on data sets of models with known truth.

    Attributes
    ----------
    pvalues : pandas.DataFrame
        One row for each model, lens, number of samples, replicate and test, with its ``pvalue``.
    levels : tuple of float
        Levels at which `to_frame` counts rejections.
    """

    pvalues: pd.DataFrame
    levels: tuple[float, ...]

    _left_out: ClassVar[frozenset[str]] = frozenset({"pvalues"})
    plot = Picture("plot_size_study")

    def to_frame(self, *, error: float = _ERROR, per: str = "study") -> pd.DataFrame:
        r"""Return one row for each model, lens, number of samples, test and level.

        Of R data sets (``n_replicates``) X were rejected (``rejections``, ``rate`` X / R with its standard error
        ``rate_se``). ``lower`` and ``upper`` are one-sided limits of the rejection probability (Clopper and Pearson),
        each wrong with probability :math:`\epsilon` at most. ``limit`` is the largest X that is compatible with a test
        which keeps its level,

        .. math:: \min \{c : P(\mathrm{Bin}(R, \alpha) > c) \le \epsilon\},

        and ``exceeds`` is whether X is above it; only then is ``lower`` above the level.

        Parameters
        ----------
        error : float
            Largest probability with which a test that keeps its level exceeds its limit by chance.
        per : {"study", "row"}
            Whether ``error`` is shared by all rows (Bonferroni) or that of each row.

        Returns
        -------
        pandas.DataFrame
            The rejection rates.

        Raises
        ------
        ValueError
            If ``per`` is unknown.
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

    @property
    def conclusion(self) -> str:
        """Whether tests reject calibrated models too often, in words."""
        frame = self.to_frame()
        over, total = frame[frame["exceeds"]], len(frame)
        if over.empty:
            return (
                f"None of {total} rejection rates exceeds the binomial limit of its level (familywise error "
                f"{_ERROR:g})."
            )
        tests = list(dict.fromkeys(over["test"]))
        verb = "rejects" if len(tests) == 1 else "reject"
        return (
            f"{len(over)} of {total} rejection rates exceed the binomial limit of their level (familywise error "
            f"{_ERROR:g}). If the models are calibrated, {join(tests)} {verb} too often."
        )

    def _describe(self) -> Description:
        frame = self.to_frame()
        return Description(
            f"Rejection rates by level ({', '.join(filter(None, [subject(frame, ('model', 'lens')), self._sets]))})",
            [self.conclusion],
            [self._rates(frame, ["model", "lens"], ["n_samples", "test"])],
            ["A star marks rates above the binomial limit."] if frame["exceeds"].any() else [],
        )

    def _rates(self, frame: pd.DataFrame, design: Sequence[str], always: Sequence[str]) -> Table:
        """Return the rates of all levels side by side; those columns of the design are left out that do not vary."""
        stars = np.where(frame["exceeds"], "*", " ") if "exceeds" in frame else ""
        shown = frame[frame["level"] == self.levels[0]]
        for level in self.levels:  # the rows of all levels have the same order
            rows = frame[frame["level"] == level]
            stars = np.where(rows["exceeds"], "*", " ") if "exceeds" in rows else ""
            shown = shown.assign(**{percent(level): (rows["rate"].map("{:.4f}".format) + stars).to_numpy()})
        names = {name: _HEADS.get(name, name) for name in (*varying(frame, design), *always)}
        rates = {percent(level): percent(level) for level in self.levels}
        return frame_table(shown, names | rates, right=rates)

    @property
    def _sets(self) -> str:
        total = self.to_frame()["n_replicates"]
        sets = f"{total.min():,}" if total.min() == total.max() else f"{total.min():,} to {total.max():,}"
        return f"{sets} data sets each"


_HEADS = {"n_samples": "observations"}


@reads_arguments
def size_study(
    models: Model | Sequence[Model] | Mapping[str, Model],
    tests: Test | Sequence[Test] | Mapping[str, Test],
    n_samples: int | Sequence[int],
    n_replicates: int = 10_000,
    *,
    lenses: LensLike | Sequence[LensLike] | Mapping[str, LensLike] | None = None,
    levels: Sequence[float] = LEVELS,
    n_resamples: int = 999,
    resampling: Consistency | None = None,
    method: str = "auto",
    out: PathLike | None = None,
    workers: int = 1,
    progress: bool | Progress = False,
    rng: SeedLike = None,
) -> RejectionStudy:
    r"""Simulate the size of tests: how often they reject models with known truth.

    Data sets are drawn from each model, and every test is applied to the same data sets. With calibrated models the
    rejection rate is the size of a test: a test that keeps its level :math:`\alpha` rejects at most :math:`\alpha` of
    the data sets, up to binomial variation.

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
        Number of observations of a data set.
    n_replicates : int
        Number of data sets for each model and number of observations.
    lenses : lens, sequence or mapping, optional
        What to look at; every test must accept every lens. By default a statistic has its default lens, the whole
        prediction where it can judge it and otherwise the confidence, and a function gets the whole prediction.
    levels : sequence of float
        Levels at which rejections are counted. A p-value of B draws can keep a level exactly only if (B + 1) times
        the level is an integer.
    n_resamples : int
        Number of draws B of each test that is named by a statistic.
    resampling : Consistency, optional
        The null hypothesis of these tests; ``Consistency()`` by default, with predictions fixed.
    method : {"auto", "exact", "monte-carlo", "asymptotic"}
        How these tests find their null distribution, as in `caltest.calibration_test`.
    out : path, optional
        Folder in which every finished part is kept; with the same folder an interrupted study continues. A function
        is identified by its own code, not by that of the functions that it calls: if these change, use another folder.
    workers : int
        Threads, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    RejectionStudy
        The p-values and, by ``to_frame()``, rejection rates with one-sided binomial limits; ``plot()`` draws them.

    Raises
    ------
    TypeError
        If ``models`` or ``tests`` hold something else than models or tests; if ``resampling`` is not a `Consistency`
        or ``workers`` not an integer; if a function returns no result with a ``pvalue``.
    ValueError
        If two models, tests or lenses have the same name; if a level is not strictly between 0 and 1, a number of
        observations, ``n_replicates`` or ``n_resamples`` is < 1, or ``method`` is unknown; if a test does not accept a
        lens or the method; if ``out`` holds another study.

    Examples
    --------
    The asymptotic test of Hosmer and Lemeshow, and the same statistic with its exact distribution:

    >>> from functools import partial
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, size_study
    >>> tests = {"chi-squared": partial(caltest.hosmer_lemeshow_test, method="asymptotic"),
    ...          "exact": caltest.HosmerLemeshow()}
    >>> study = size_study(GaussianMixture1D(0, -2), tests, n_samples=50, n_replicates=150, rng=0)
    >>> frame = study.to_frame(per="row")
    >>> frame.loc[frame.level == 0.01, ["test", "rejections", "limit", "exceeds"]]
              test  rejections  limit  exceeds
    0  chi-squared           8      6     True
    3        exact           0      6    False
    """
    battery = Battery.of(tests, n_resamples, resampling, method)
    cells = cells_of(
        named(models, "models", Model, "models of caltest.simulation"), lenses, battery, n_samples, n_replicates
    )
    chosen = validate_levels(levels)
    pvalues = run_study(
        "size", lambda seed: [cell.part(seed) for cell in cells], out=out, workers=workers, progress=progress, rng=rng
    )
    return RejectionStudy(pvalues=pvalues, levels=chosen)


@dataclass(frozen=True)
class Cell:
    """A part of a study: some replicates of a model and a number of observations, tested through lenses."""

    model_name: str
    model: Model
    n_samples: int
    replicates: range
    lenses: dict[str, LensLike] | None
    battery: Battery

    @property
    def views(self) -> dict[str, tuple[LensLike, dict[str, Test]]]:
        """What is tested through each lens, by the name of the lens."""
        return by_lens(self.lenses, self.battery.tests, self.model.n_classes)

    def part(self, seed: int) -> Part:
        """Return what is run, and kept under a name that depends on everything but the seed."""
        return Part(
            identify(self), partial(self.pvalues, seed), cost=(self.n_samples + _FIXED_COST) * len(self.replicates)
        )

    def pvalues(self, seed: int) -> pd.DataFrame:
        """Return one row for each replicate, lens and test."""
        import pandas as pd

        views = [(lens, replace(self.battery, tests=tests)) for lens, tests in self.views.values()]
        pairs = [(lens, test) for lens, (_, tests) in self.views.items() for test in tests]
        pvalues = np.empty((len(self.replicates), len(pairs)))
        for found, replicate in zip(pvalues, self.replicates, strict=True):
            rng = replicate_rng(seed, f"{self.model_name}/{self.n_samples}", replicate)
            _, y_true, y_prob = self.model.draw(self.n_samples, rng)
            test_seed = int(rng.integers(2**63))
            found[:] = [p for lens, battery in views for p in battery.pvalues(y_true, y_prob, lens, test_seed)]
        frame = pd.DataFrame(pairs * len(self.replicates), columns=["lens", "test"])
        frame = frame.assign(
            model=self.model_name,
            n_samples=self.n_samples,
            replicate=np.repeat(self.replicates, len(pairs)),
            pvalue=pvalues.ravel(),
        )
        return frame[["model", "lens", "n_samples", "test", "replicate", "pvalue"]]


def cells_of(
    models: dict[str, Model], lenses: Any, battery: Battery, n_samples: int | Sequence[int], n_replicates: int
) -> list[Cell]:
    """Return the cells of a study, in the order of its rows."""
    looks = None if lenses is None else named(lenses, "lenses")
    total = validate_count(n_replicates, "n_replicates")
    return [
        Cell(name, model, n, replicates, looks, battery)
        for name, model in models.items()
        for n in sizes(n_samples, "n_samples")
        for replicates in replicate_ranges(total, _REPLICATES)
    ]


def _counted(pvalues: NDArray[np.float64], level: float) -> dict[str, Any]:
    count, total = int(np.count_nonzero(rejects(pvalues, level))), len(pvalues)
    rate = count / total
    return {
        "level": level,
        "rejections": count,
        "n_replicates": total,
        "rate": rate,
        "rate_se": np.sqrt(rate * (1 - rate) / total),
    }


def validate_levels(levels: Any) -> tuple[float, ...]:
    """Return levels strictly between 0 and 1, each once."""
    given = tuple(float(level) for level in np.atleast_1d(np.asarray(levels, dtype=np.float64)))
    if not given or len(set(given)) < len(given) or not all(0 < level < 1 for level in given):
        msg = f"`levels` must hold one or more different levels between 0 and 1, got {levels!r}."
        raise ValueError(msg)
    return given
