"""Studies of bias: how estimates of miscalibration are distributed around what they estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import refuse_if, require, validate_count
from caltest.results._description import Description
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.simulation.models._base import Model
from caltest.simulation.studies._data_sets import draw_data_sets
from caltest.simulation.studies._estimates import Estimates
from caltest.simulation.studies._options import StudyOptions
from caltest.simulation.studies._run import Block, Design, accepted, by_lens, named, numbers, read_lenses
from caltest.simulation.studies._study import CLEAR, Study, frame_table, rank, share_error, varying
from caltest.simulation.studies._truth import Truth, truths
from caltest.statistics import Statistic
from caltest.statistics._base import validate_estimate

if TYPE_CHECKING:
    import pandas as pd

_DESIGN = ["model", "lens", "n_samples", "test_statistic"]
_UNKNOWN = (
    "Where truth and bias are empty, it is not known what the statistic estimates: name it with `truth`, or, if the "
    "model was trained and has more than two classes, choose a lens with two outcomes such as Confidence()."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BiasStudy(Study):
    """Result of `bias_study`: sampling distributions of estimates.

    Attributes
    ----------
    replicates : pandas.DataFrame
        One row for each model, lens, number of samples, statistic and replicate, with the estimate (``value``) and the
        ends of its intervals (``NAME low``, ``NAME high``).
    truth : pandas.DataFrame
        One row for each model, lens and statistic with ``truth``, what the statistic estimates (NaN where it is not
        known), ``truth_se``, its Monte Carlo standard error (0 where it is exact), ``target`` in words, ``n_cells`` of
        its partition, and ``partition``.
    intervals : tuple of str
        Names of the intervals.

    See Also
    --------
    bias_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, bias_study
    >>> study = bias_study(GaussianMixture1D(0, -2), [caltest.ECE(caltest.EqualWidth(4))], 30, 20, rng=0)
    >>> len(study.replicates), round(float(study.truth["truth"].iloc[0]), 9)
    (20, 0.0)
    """

    replicates: pd.DataFrame
    truth: pd.DataFrame
    intervals: tuple[str, ...] = ()

    _left_out: ClassVar[frozenset[str]] = frozenset({"replicates", "intervals"})
    plot = Picture("plot_bias_study")

    def to_frame(self, quantiles: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> pd.DataFrame:
        r"""Return one row for each model, lens, number of samples and statistic, with Monte Carlo standard errors.

        Over R replicates with mean :math:`\bar v`, standard deviation s and truth :math:`\theta`: ``mean``, ``bias``
        :math:`\bar v - \theta`, ``std``, ``rmse`` :math:`\sqrt{s'^2 + \text{bias}^2}`, the ``quantiles`` (``q05``
        and so on) and ``NAME coverage``, the share of intervals that contain the truth. ``mean_se`` is
        :math:`s / \sqrt R`, ``std_se`` and ``rmse_se`` follow from the fourth moments, ``q05_se`` is half the distance
        of the order statistics one binomial standard deviation away, and the error of a coverage is binomial.
        ``truth_se``, the error of a truth that is simulated, is added in quadrature to ``bias_se``, times
        :math:`|\text{bias}| / \text{rmse}` to ``rmse_se`` (the derivative by :math:`\theta`), and to the error of a
        coverage half the difference of the coverages of :math:`\theta \pm` ``truth_se``.

        Parameters
        ----------
        quantiles : sequence of float
            Probabilities of the quantiles.

        Returns
        -------
        pandas.DataFrame
            The summary.
        """
        import pandas as pd

        groups = self._with_truth().groupby(_DESIGN, sort=False)
        rows = [
            dict(zip(_DESIGN, key, strict=True)) | _summary(group, quantiles, self.intervals) for key, group in groups
        ]
        return pd.DataFrame(rows)

    def ranking(self) -> pd.DataFrame:
        r"""Return which estimators have the smaller error, where the difference exceeds its Monte Carlo error.

        All statistics have the same data sets, so that squared errors are compared in pairs: with :math:`T_r` and
        :math:`S_r` two estimates from data set r and :math:`\theta` their common truth, the mean of
        :math:`D_r = (T_r - \theta)^2 - (S_r - \theta)^2` has the standard error
        :math:`\sqrt{s_D^2 / R + (2 (\bar T - \bar S) \operatorname{se}(\theta))^2}`. Only statistics of one target are
        compared.

        Returns
        -------
        pandas.DataFrame
            One row for each model, lens, number of samples and statistic whose truth is known, the smallest ``rmse``
            first: ``rank`` is 1 + the number of statistics whose mean squared error is smaller by more than 4 standard
            errors, so that statistics between which the study does not decide share a rank; ``excess`` is the mean
            squared error minus the smallest one, ``excess_se`` its standard error, and ``target`` what the statistics
            estimate that are compared.
        """
        return rank(self._with_truth())

    def _with_truth(self) -> pd.DataFrame:
        return self.replicates.merge(self.truth, on=["model", "lens", "test_statistic"], how="left", sort=False)

    @property
    def conclusion(self) -> str:
        """The largest bias in words."""
        frame = self.to_frame(quantiles=())
        known = frame[frame["truth"].notna()]
        if known.empty:
            return "The truth is not known for these statistics, so the study shows no bias."
        size = known["bias"].abs()
        worst, clear = known.loc[size.idxmax()], int((size > CLEAR * known["bias_se"]).sum())
        return (
            f"In {clear} of {len(known)} cases the mean estimate differs from the truth by more than {CLEAR:g} Monte "
            f"Carlo standard errors. The largest bias is {worst['bias']:.4g}, that of {worst['test_statistic']} with "
            f"{worst['n_samples']:,} observations of {worst['model']}."
        )

    def _describe(self) -> Description:
        frame = self.to_frame(quantiles=())
        coverage = [f"{name} coverage" for name in self.intervals]
        names = [*varying(frame, ("model", "lens")), "n_samples", "test_statistic"]
        return Description(
            self._title("Bias study", frame),
            [self.conclusion],
            [frame_table(frame, [*names, "truth", "mean", "bias", "std", "rmse", *coverage])],
            [_UNKNOWN] if frame["truth"].isna().any() else [],
        )


@reads_arguments
def bias_study(
    models: Model | Sequence[Model] | Mapping[str, Model],
    statistics: Statistic | Sequence[Statistic] | Mapping[str, Statistic],
    n_samples: int | Sequence[int],
    n_replicates: int = 1000,
    *,
    intervals: Mapping[str, Callable[..., Any]] | None = None,
    truth: Truth | None = None,
    n_truth: int = 100_000,
    **options: Unpack[StudyOptions],
) -> BiasStudy:
    r"""Simulate the sampling distribution, bias and mean squared error of calibration errors.

    Data sets are drawn from models with known truth, and every statistic is evaluated on the same data sets. With T the
    estimate and :math:`\theta` the truth, the study gives the distribution of T, its bias :math:`E[T] - \theta` and its
    root mean squared error :math:`\sqrt{E (T - \theta)^2}`, and how often intervals contain :math:`\theta`.

    Parameters
    ----------
    models : Model, sequence or mapping
        What data sets are drawn from.
    statistics : Statistic, sequence or mapping
        Estimators, for example ``[ECE(EqualWidth(b)) for b in (5, 10, 20)]``.
    n_samples : int or sequence of int
        Number of observations of a data set.
    n_replicates : int
        Number of data sets for each model and number of observations.
    lenses : lens, sequence or mapping, optional
        What to look at. By default the whole prediction where a statistic can judge it, otherwise the confidence.
    intervals : mapping of name to function, optional
        Functions such as `caltest.bootstrap_interval` that return two numbers; called with ``(y_true, y_prob)`` and
        those of the keywords ``lens``, ``statistic`` and ``rng`` that they take. Whatever an interval is made for, here
        its coverage is that of the truth; for another target see `coverage_study`.
    truth : callable, optional
        What a statistic estimates, a function ``(model, lens, statistic) -> float``. By default the model's expected
        miscalibration :math:`\eta_d` through the lens: with the distance of the statistic for `ECE` and `ConvexECE`,
        total variation for `MonotonicSweepECE` and `KDEError`, the squared l2 distance for `SquaredL2`; unknown (NaN)
        for others. A fixed partition estimates less than :math:`\eta_d` at every sample size, because deviations are
        averaged within its cells (Theorem 2).
    n_truth : int
        Number of simulated observations behind a truth that the model does not know exactly, at least 20; the same in
        every study, whatever its seed. Its standard error is ``truth_se``; what is averaged, with which bias, see
        `Model.estimate_miscalibration`. With 0 such a truth is NaN.
    workers : int
        Threads, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.

    Returns
    -------
    BiasStudy
        The estimates and their summary; ``plot()`` draws it, ``ranking()`` says which estimators are better.

    Raises
    ------
    TypeError
        If ``models``, ``statistics`` or ``intervals`` hold something else than models, statistics or functions, or
        ``workers`` is not an integer.
    ValueError
        If two models, statistics or lenses have the same name; if a number of observations is < 1 or
        ``n_replicates`` < 2; if a statistic has no value on one data set (`Omnibus`), or needs two outcomes and the
        lens has more; if ``out`` holds another study.

    See Also
    --------
    caltest.simulation.coverage_study : How often intervals contain their target.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.1, appendix C.

    Examples
    --------
    The ECE of a calibrated model is positive, the more so the more cells (bins) it has:

    >>> from caltest import ECE, EqualWidth
    >>> from caltest.simulation import GaussianMixture1D, bias_study
    >>> statistics = [ECE(EqualWidth(5)), ECE(EqualWidth(50))]
    >>> study = bias_study(GaussianMixture1D(0, -2), statistics, n_samples=100, n_replicates=200, rng=0)
    >>> study.to_frame()[["n_cells", "truth", "bias"]].round(2)
       n_cells  truth  bias
    0        5    0.0  0.06
    1       50    0.0  0.17
    """
    design, looks = Design.of(models, n_samples, n_replicates, least=2), read_lenses(options.pop("lenses"))
    estimators = named(statistics, "statistics", Statistic, "statistics such as ECE()")
    msg = f'`intervals` must be a mapping such as {{"l2": l2_interval}}, got {describe(intervals)}.'
    refuse_if(not isinstance(intervals, Mapping | None), msg, right_type=False)
    built = dict(intervals or {})
    for statistic in estimators.values():
        validate_estimate(statistic)
    for build in built.values():
        require(callable(build), "`intervals` must hold functions that return two numbers", build, right_type=False)
    known = truths(design.models, looks, estimators, truth, validate_count(n_truth, "n_truth", 0))
    replicates = design.run("bias", _estimate, looks, estimators, built, **options)
    return BiasStudy(replicates=replicates, truth=known, intervals=tuple(built))


def _estimate(
    block: Block,
    lenses: dict[str, LensLike] | None,
    statistics: dict[str, Statistic],
    intervals: dict[str, Callable[..., Any]],
) -> pd.DataFrame:
    """Return the estimates of some replicates, one row for each replicate, lens and statistic."""
    views = by_lens(lenses, statistics, block.model.n_classes)
    estimates = [Estimates(lens, estimators) for lens, estimators in views.values()]
    values, ends = [], []
    for sets in draw_data_sets(block):
        values.append(np.concatenate([each.of_many(sets.y_true, sets.y_prob) for each in estimates], axis=1))
        if intervals:
            ends += [_ends(one.y_true, one.y_prob, one.rng, views, intervals) for one in sets.one_by_one()]
    names = [f"{interval} {end}" for interval in intervals for end in ("low", "high")]
    of_intervals = dict(zip(names, np.concatenate(ends).T if intervals else [], strict=True))
    pairs = [(view, estimator) for view, (_, estimators) in views.items() for estimator in estimators]
    found = {"value": np.concatenate(values).ravel(), **of_intervals}
    return block.frame(pairs, "test_statistic", **found)


def _ends(
    y_true: Integers,
    y_prob: Floats,
    rng: np.random.Generator,
    views: dict[str, tuple[LensLike, dict[str, Any]]],
    intervals: dict[str, Callable[..., Any]],
) -> Floats:
    """Return the ends of all intervals of one data set, a row for each lens and statistic."""
    rows = []
    for lens, estimators in views.values():
        for statistic in estimators.values():
            ends: list[float] = []
            for name, build in intervals.items():
                found = build(y_true, y_prob, **accepted(build, {"lens": lens, "statistic": statistic, "rng": rng}))
                ends += numbers(found, 2, name)
            rows.append(ends)
    return np.array(rows, dtype=np.float64)


def _summary(group: pd.DataFrame, quantiles: Sequence[float], intervals: Sequence[str]) -> dict[str, Any]:
    """Return the summary of the replicates of one row of the frame."""
    value, truth = group["value"].to_numpy(), float(group["truth"].iloc[0])
    truth_se = float(group["truth_se"].iloc[0])
    count, mean, std = len(value), value.mean(), value.std(ddof=1)
    loss = np.square(value - truth)
    rmse = np.sqrt(loss.mean())
    row = {
        **{name: group[name].iloc[0] for name in ("partition", "n_cells")},
        "n_replicates": count,
        "truth": truth,
        "truth_se": truth_se,
        "mean": mean,
        "mean_se": std / np.sqrt(count),
        "bias": mean - truth,
        "bias_se": np.hypot(std / np.sqrt(count), truth_se),
        "std": std,
        "std_se": _root_se(np.square(value - mean), std),
        "rmse": rmse,
        "rmse_se": np.hypot(_root_se(loss, rmse), truth_se * abs(mean - truth) / rmse if rmse != 0 else 0.0),
    }
    ordered = np.sort(value)
    for q in quantiles:
        near = count * q + np.sqrt(count * q * (1 - q)) * np.array([-1, 1])
        low, high = ordered[np.clip(np.rint(near).astype(int), 0, count - 1)]
        row |= {f"q{100 * q:02.0f}": np.quantile(value, q), f"q{100 * q:02.0f}_se": (high - low) / 2}
    for name in intervals:
        lows, highs = group[f"{name} low"].to_numpy(), group[f"{name} high"].to_numpy()
        held, below, above = (
            ((lows <= at) & (at <= highs)).mean() if np.isfinite(truth) else np.nan
            for at in (truth, truth - truth_se, truth + truth_se)
        )
        error = np.hypot(share_error(held, count), (above - below) / 2)
        row |= {f"{name} coverage": held, f"{name} coverage_se": error}
    return row


def _root_se(squares: Floats, root: float) -> float:
    """Return the standard error of the root of a mean of squares, by the delta method."""
    return squares.std(ddof=1) / np.sqrt(len(squares)) / (2 * root) if root != 0 else 0.0
