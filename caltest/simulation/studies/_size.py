"""Studies of size: how often tests reject models that are calibrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from caltest.estimation.curves._bars import clopper_pearson
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_choice, validate_count
from caltest.resampling.draws._schemes import Consistency, validate_resampling
from caltest.resampling.draws._summaries import CellCounts, EntryCounts
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._run import METHODS, run, settle
from caltest.results._decision import rejects
from caltest.results._description import Description, Table, join, percent
from caltest.results._picture import Picture
from caltest.simulation.models._base import Model
from caltest.simulation.studies._options import TestStudyOptions
from caltest.simulation.studies._run import (
    Block,
    Design,
    accepted,
    by_lens,
    distinct_numbers,
    named,
    read_lenses,
    replicate_rng,
)
from caltest.simulation.studies._study import Study, frame_table, share_error, varying
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
                refuse(
                    f"`tests` must hold statistics or functions of (y_true, y_prob, lens=, rng=), got {test!r}.",
                    TypeError,
                )
        return cls(
            chosen,
            validate_count(n_resamples, "n_resamples"),
            validate_resampling(Consistency() if resampling is None else resampling),
            validate_choice(method, "method", METHODS),
        )

    @classmethod
    def taken(cls, tests: Any, options: Any) -> Battery:
        """Check what the user passed as `TestingOptions`, and take it out of the options."""
        return cls.of(tests, *(options.pop(name) for name in ("n_resamples", "resampling", "method")))

    def pvalues(self, y_true: Integers, y_prob: Floats, lens: LensLike, seed: int) -> list[float]:
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
            found |= {name: finding.pvalue for name, finding in zip(names, answer.answers, strict=True)}
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

    See Also
    --------
    size_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, size_study
    >>> study = size_study(GaussianMixture1D(0, -2), caltest.KS(), 30, 20, n_resamples=19, rng=0)
    >>> len(study.pvalues), study.levels
    (20, (0.01, 0.05, 0.1))
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
        lower, upper = clopper_pearson(count.to_numpy(), (total - count).to_numpy(), each)
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
            self._title("Rejection rates by level", frame),
            [self.conclusion],
            [self._rates(frame, ["model", "lens"], ["n_samples", "test"])],
            ["A star marks rates above the binomial limit."] if frame["exceeds"].any() else [],
        )

    def _rates(self, frame: pd.DataFrame, design: Sequence[str], always: Sequence[str]) -> Table:
        """Return the rates of all levels side by side; those columns of the design are left out that do not vary."""
        shown = frame[frame["level"] == self.levels[0]]
        for level in self.levels:  # the rows of all levels have the same order
            rows = frame[frame["level"] == level]
            stars = np.where(rows["exceeds"], "*", " ") if "exceeds" in rows else ""
            shown = shown.assign(**{percent(level): (rows["rate"].map("{:.4f}".format) + stars).to_numpy()})
        rates = [percent(level) for level in self.levels]
        return frame_table(shown, [*varying(frame, design), *always, *rates], right=rates)


@reads_arguments
def size_study(
    models: Model | Sequence[Model] | Mapping[str, Model],
    tests: Test | Sequence[Test] | Mapping[str, Test],
    n_samples: int | Sequence[int],
    n_replicates: int = 10_000,
    **options: Unpack[TestStudyOptions],
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
    out : path, optional
        Folder in which every finished part is kept; with the same folder an interrupted study continues. A function
        is identified by its own code, not by that of the functions that it calls: if these change, use another folder.
    workers : int
        Threads, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.

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

    See Also
    --------
    caltest.simulation.power_study : Rejections of models that are miscalibrated.

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
    battery, levels = Battery.taken(tests, options), validate_levels(options.pop("levels"))
    design, looks = Design.of(models, n_samples, n_replicates), read_lenses(options.pop("lenses"))
    pvalues = run_tests("size", design, looks, battery, **options)
    return RejectionStudy(pvalues=pvalues, levels=levels)


def run_tests(study: str, design: Design, looks: dict[str, LensLike] | None, battery: Battery, **running: Any) -> Any:
    """Return the p-values of all data sets of a design; see `RejectionStudy`."""
    return design.run(study, _test, looks, battery, overhead=_FIXED_COST, **running)


def _test(block: Block, lenses: dict[str, LensLike] | None, battery: Battery) -> pd.DataFrame:
    """Return the p-values of some replicates, one row for each replicate, lens and test."""
    views = by_lens(lenses, battery.tests, block.model.n_classes)
    batteries = [(lens, replace(battery, tests=tests)) for lens, tests in views.values()]
    pvalues: list[float] = []
    for replicate in block.replicates:
        rng = replicate_rng(block.seed, block.stream, replicate)
        _, y_true, y_prob = block.model.draw(block.n_samples, rng)
        test_seed = int(rng.integers(2**63))
        for lens, some in batteries:
            pvalues += some.pvalues(y_true, y_prob, lens, test_seed)
    pairs = [(view, test) for view, (_, tests) in views.items() for test in tests]
    return block.frame(pairs, "test", pvalue=pvalues)


def _counted(pvalues: Floats, level: float) -> dict[str, Any]:
    count, total = int(np.count_nonzero(rejects(pvalues, level))), len(pvalues)
    rate = count / total
    return {
        "level": level,
        "rejections": count,
        "n_replicates": total,
        "rate": rate,
        "rate_se": share_error(rate, total),
    }


def validate_levels(levels: Any) -> tuple[float, ...]:
    """Return levels strictly between 0 and 1, each once."""
    return distinct_numbers(levels, "levels", "levels between 0 and 1", lambda level: 0 < level < 1)
