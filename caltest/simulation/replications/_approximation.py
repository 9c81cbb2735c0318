"""How well few observations approximate the true calibration error (Posocco and Bonnefoy 2021, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import ClassWise, Confidence
from caltest.predictions._sample import induce
from caltest.predictions._user_functions import apply_lens
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.cells._quantiles import EqualMass
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, validate_count, validate_rng
from caltest.results._description import Description
from caltest.results._picture import Picture
from caltest.simulation.models._base import Model
from caltest.simulation.models._exact import mean_estimate
from caltest.simulation.models._trained import both_truths
from caltest.simulation.studies._options import RunOptions
from caltest.simulation.studies._run import Part, identify, named, replicate_rng, run_study, sizes
from caltest.simulation.studies._study import CLEAR, Study, frame_table
from caltest.statistics import ConvexECE, KDEError, Statistic
from caltest.statistics._binned import ECE

if TYPE_CHECKING:
    import pandas as pd

TRUTHS = ("level set", "large sample")
_DESIGN = ["setting", "truth", "estimator", "n_samples"]
_QUANTILE = 0.95


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ApproximationStudy(Study):
    """Result of `approximation_study`: how far estimates are from the truth, model by model.

    Attributes
    ----------
    models : pandas.DataFrame
        One row for each model, setting, truth, estimator and evaluation size: ``distribution`` (models of the same one
        are not independent), ``true_value``, its ``truth_error`` (standard error) and ``truth_floor`` (what its cells
        would show for a calibrated model), ``mean`` of the estimates, and ``error``, the 95th percentile of the
        relative error.

    See Also
    --------
    approximation_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, approximation_study
    >>> study = approximation_study(
    ...     GaussianMixture1D(0, -2), {"ECE": caltest.ECE()}, [30, 60], 10, n_holdout=1000, rng=0
    ... )
    >>> len(study.models)
    8
    """

    models: pd.DataFrame

    _left_out: ClassVar[frozenset[str]] = frozenset({"models"})
    plot = Picture("plot_approximation")

    @reads_arguments
    def to_frame(self, *, n_resamples: int = 499, rng: SeedLike = 0) -> pd.DataFrame:
        """Return the median error over the models, with standard errors by bootstrap over the distributions.

        Parameters
        ----------
        n_resamples : int
            Number of bootstrap samples of distributions; all models of a distribution are drawn together.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness of the resamples.

        Returns
        -------
        pandas.DataFrame
            One row for each setting, truth, estimator and evaluation size: ``n_models``, ``median``, ``median_bias``,
            the median of (mean estimate - truth) / truth, and ``best``, the share of the models on which no other
            estimator has a smaller error, each with its standard error ``..._se``, NaN for one distribution. All
            estimators have the same models and sets, so that differences between them are more certain than the
            standard errors of their medians suggest.
        """
        import pandas as pd

        frame = self._compared()
        drawn = _drawn_distributions(frame, n_resamples, validate_rng(rng))
        grouped = frame.groupby(_DESIGN, sort=False)
        summary = pd.DataFrame({"n_models": grouped.size()})
        for name, column, reduce in _SUMMARIES:
            summary[name] = grouped[column].agg(reduce.__name__)
            summary[f"{name}_se"] = _resampled(frame, column, reduce, drawn).std(ddof=1).reindex(summary.index)
        return summary.reset_index()

    def _compared(self) -> pd.DataFrame:
        """Return the models with the bias of each estimate, and whether no other estimator has a smaller error."""
        least = self.models.groupby(["model", *(key for key in _DESIGN if key != "estimator")])["error"]
        return self.models.assign(
            bias=_relative(self.models["mean"], self.models["true_value"]),
            best=(self.models["error"] == least.transform("min")).astype(float),
        )

    @property
    def conclusion(self) -> str:
        """Which estimator is closest to the truth, in words, where the models decide it."""
        frame = self._compared()
        frame = frame[frame["truth"] == TRUTHS[0]]
        medians = frame.groupby(_DESIGN, sort=False)["error"].median().groupby("estimator", sort=False).mean()
        best, worst = medians.idxmin(), medians.idxmax()
        resampled = _resampled(frame, "error", np.median, _drawn_distributions(frame, 499, validate_rng(0)))
        of_estimators = resampled.T.groupby("estimator", sort=False).mean().T
        with np.errstate(invalid="ignore"):
            error = of_estimators.sub(of_estimators[best], axis=0).std(ddof=1)
            undecided = [name for name in medians.index if not medians[name] - medians[best] > CLEAR * error[name]]
        start = f"Compared with the {TRUTHS[0]} truth and averaged over settings and evaluation sizes, "
        largest = f"{worst} has the largest median error ({medians.max():.3f})"
        if len(undecided) == 1:
            return f"{start}{best} has the smallest median error ({medians.min():.3f}) and {largest}."
        if worst in undecided:
            return (
                f"{start}the median errors lie between {medians.min():.3f} ({best}) and {medians.max():.3f} ({worst}), "
                f"which do not differ by more than {CLEAR:g} standard errors: the study does not decide which "
                "estimator is best."
            )
        others = ", ".join(name for name in undecided if name != best)
        return (
            f"{start}{best} has the smallest median error ({medians.min():.3f}), from which that of {others} does not "
            f"differ by more than {CLEAR:g} standard errors; {largest}."
        )

    def _describe(self) -> Description:
        frame = self.to_frame()
        wide = frame.pivot_table(index=_DESIGN[:-1], columns="n_samples", values="median", sort=False).reset_index()
        counts = [column for column in wide.columns if column not in _DESIGN]
        n_models = self.models["model"].nunique()
        names = {name: name for name in _DESIGN[:-1]} | {count: f"{count:,}" for count in counts}
        return Description(
            f"Approximation of the calibration error ({n_models} model{'s' if n_models > 1 else ''})",
            [self.conclusion],
            [frame_table(wide, names)],
            [
                "Each number is the median over the models of the 95th percentile of the relative error; columns are "
                "numbers of observations of an evaluation set."
            ],
        )


@reads_arguments
def approximation_study(
    models: Model | Sequence[Model] | Mapping[str, Model],
    estimators: Statistic | Sequence[Statistic] | Mapping[str, Statistic] | None = None,
    n_samples: int | Sequence[int] = (30, 53, 92, 162, 285, 500),
    n_replicates: int = 200,
    *,
    n_holdout: int = 100_000,
    **options: Unpack[RunOptions],
) -> ApproximationStudy:
    r"""Compare calibration errors by how well few observations approximate the truth.

    For each model a holdout set is drawn, and from it ``n_replicates`` bootstrap samples of each evaluation size, on
    which every estimator is evaluated. With :math:`\theta` the truth and :math:`T_r` the estimates,

    .. math:: \text{error} = q_{0.95} \left\{ \frac{|T_r - \theta|}{\theta} : r = 1, \dots, R \right\}

    and the score of an estimator at a size is the median error over the models. There are two settings: the confidence,
    and the mean over the classes of the error of each. Each has two truths:

    * "large sample", that of the paper: the ECE of 2,000 equal-width cells (bins) on the holdout set. Its noise makes
      it too large (``truth_floor``), the more so the fewer observations a cell has: the paper has 2,000,000
      observations, the default here is 100,000;
    * "level set": exact posteriors averaged over observations of equal, or nearly equal, predictions; labels add no
      noise.

    Relative errors are very large where the truth is close to 0, as for a calibrated model, and infinite at 0, unless
    the estimate is 0 too. The median over the models does not depend on them as long as they are few.

    Estimators that can use the range of the scores, from 0 for a class and from 1 / n_classes for the confidence, get
    it (``low`` of `ConvexECE`, ``support`` of `KDEError`).

    Parameters
    ----------
    models : Model, sequence or mapping
        Models with known posteriors, for example `TrainedClassifier` on the distributions of `posocco_mixtures`.
    estimators : Statistic, sequence or mapping, optional
        Estimators for lenses of two outcomes. By default those of the paper: "legacy" (equal-width cells), "adaptive"
        (equal-mass), "convex", "adaptive convex", with 15 and with :math:`\lfloor \sqrt n \rfloor` cells, and "KDE"
        with Silverman's and with the bandwidth 0.05.
    n_samples : int or sequence of int
        Number of observations of an evaluation set; by default six sizes, equally spaced in the logarithm, over the
        range of the paper.
    n_replicates : int
        Number of evaluation sets of each size.
    n_holdout : int
        Number of observations of the holdout set, at least 1,000.
    out : path, optional
        Folder in which every finished model is kept; with the same folder an interrupted study continues.
    workers : int
        Processes, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.

    Returns
    -------
    ApproximationStudy
        Prints the scores; ``to_frame()`` has their standard errors; ``plot()`` draws them.

    Raises
    ------
    TypeError
        If ``models`` or ``estimators`` hold something else than models or statistics; if ``workers`` is not an integer.
    ValueError
        If two models or estimators have the same name; if an evaluation size or ``n_replicates`` is < 1, or
        ``n_holdout`` < 1,000; if ``out`` holds another study.

    See Also
    --------
    caltest.simulation.bias_study : Distributions of the estimates themselves.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 5 and figure 2.

    Examples
    --------
    >>> from caltest import ECE, EqualWidth
    >>> from caltest.simulation import GaussianMixture1D, approximation_study
    >>> estimators = {f"{cells} cells": ECE(EqualWidth(cells)) for cells in (5, 50)}
    >>> study = approximation_study(
    ...     GaussianMixture1D(0, -1), estimators, [100, 1000], n_replicates=50, n_holdout=20_000, rng=0
    ... )
    >>> frame = study.to_frame().query("setting == 'class-wise' and truth == 'level set'")
    >>> frame[["estimator", "n_samples", "median", "median_bias"]].round(2)
       estimator  n_samples  median  median_bias
    12   5 cells        100    0.49         0.11
    13  50 cells        100    1.20         0.90
    14   5 cells       1000    0.17        -0.02
    15  50 cells       1000    0.26         0.13
    """
    chosen = named(models, "models", Model, "models of caltest.simulation")
    offered = _ESTIMATORS if estimators is None else estimators
    compared = named(offered, "estimators", Statistic, "statistics such as ECE()")
    rows, counts = validate_count(n_holdout, "n_holdout", 1000), sizes(n_samples, "n_samples")
    total = validate_count(n_replicates, "n_replicates")

    def parts(seed: int) -> list[Part]:
        return [
            Part(
                identify((name, model, compared, tuple(counts), total, rows)),
                partial(_approximate, seed, (name, model), compared, (counts, total), rows),
                cost=model.n_classes + 1,
            )
            for name, model in chosen.items()
        ]

    run = run_study("approximation", parts, prefer="processes", **options)
    return ApproximationStudy(models=run)


_ESTIMATORS: dict[str, Statistic] = {
    f"{name}, {cells}": make(n_cells)
    for name, make in (
        ("legacy", lambda n_cells: ECE(EqualWidth(n_cells))),
        ("adaptive", lambda n_cells: ECE(EqualMass(n_cells, cut="halfway"))),
        ("convex", lambda n_cells: ConvexECE(EqualWidth(n_cells))),
        ("adaptive convex", lambda n_cells: ConvexECE(EqualMass(n_cells, cut="halfway"))),
    )
    for cells, n_cells in (("15 cells", 15), ("sqrt(n) cells", "sqrt"))
} | {"KDE, Silverman": KDEError(), "KDE, 0.05": KDEError(0.05)}


def _approximate(
    seed: int, model: tuple[str, Model], estimators: dict[str, Statistic], design: tuple[list[int], int], n_holdout: int
) -> pd.DataFrame:
    """Return the rows of one model."""
    import pandas as pd

    name, drawn_from = model
    rng = replicate_rng(seed, name, 0)
    y_prob, class_prob, y_true = drawn_from.draw_many(n_holdout, rng)
    counts, n_replicates = design
    sets = [rng.integers(n_holdout, size=(n_replicates, count)) for count in counts]
    rows = []
    for setting, lenses, low in (
        ("confidence", [Confidence()], 1 / drawn_from.n_classes),
        ("class-wise", [ClassWise(k) for k in range(drawn_from.n_classes)], 0.0),
    ):
        adapted = {key: _adapted(estimator, low) for key, estimator in estimators.items()}
        values = np.mean([list(_estimates(adapted.values(), lens, y_prob, y_true, sets)) for lens in lenses], axis=0)
        both = zip(*(both_truths(y_prob, class_prob, y_true, lens, total_variation) for lens in lenses), strict=True)
        for truth, found in zip(TRUTHS[::-1], both, strict=True):
            true = mean_estimate(found, setting)
            for count, of_size in zip(counts, values, strict=True):
                for estimator, estimates in zip(estimators, of_size, strict=True):
                    rows.append({
                        "model": name,
                        "distribution": str(getattr(drawn_from, "distribution", name)),
                        **dict(zip(_DESIGN, (setting, truth, estimator, count), strict=True)),
                        "true_value": true.value,
                        "truth_error": true.standard_error,
                        "truth_floor": true.noise_floor,
                        "mean": estimates.mean(),
                        "error": np.quantile(np.abs(_relative(estimates, true.value)), _QUANTILE),
                    })  # fmt: skip
    return pd.DataFrame(rows)


def _estimates(
    estimators: Iterable[Statistic], lens: LensLike, y_prob: Floats, y_true: Integers, sets: Sequence[Integers]
) -> Iterator[Floats]:
    """Yield the estimates ``(n_estimators, n_replicates)`` from the sets ``(n_replicates, n_rows)`` of each size."""
    prob, outcome = apply_lens(lens, y_prob, y_true)
    for of_size in sets:
        samples = [induce(prob[rows], outcome[rows]) for rows in of_size]
        yield np.array([
            [float(estimator.evaluate(sample, sample.outcome)) for sample in samples] for estimator in estimators
        ])  # fmt: skip


def _adapted(estimator: Statistic, low: float) -> Statistic:
    """Return the estimator for scores from ``low`` to 1."""
    if isinstance(estimator, ConvexECE):
        return replace(estimator, low=low)
    return replace(estimator, support=(low, 1.0)) if isinstance(estimator, KDEError) else estimator


_SUMMARIES = (("median", "error", np.median), ("median_bias", "bias", np.median), ("best", "best", np.mean))


def _drawn_distributions(frame: pd.DataFrame, n_resamples: int, rng: np.random.Generator) -> Integers:
    """Return bootstrap samples ``(n_resamples, n_distributions)`` of the distributions of the models."""
    count = frame["distribution"].nunique()
    return rng.integers(count, size=(n_resamples, count))


def _resampled(frame: pd.DataFrame, column: str, reduce: Callable[..., Any], drawn: Integers) -> pd.DataFrame:
    """Return the median or mean over models, ``(n_resamples, n_designs)``, of bootstrap samples of distributions."""
    import pandas as pd

    wide = frame.pivot_table(index=["distribution", "model"], columns=_DESIGN, values=column, sort=False)
    place = pd.factorize(wide.index.get_level_values("distribution"))[0]
    members = [np.flatnonzero(place == one) for one in range(place.max() + 1)]
    values = wide.to_numpy()
    found = [reduce(values[np.concatenate([members[one] for one in row])], axis=0) for row in drawn]
    if len(members) == 1:  # one distribution shows no variation
        found = [np.full(values.shape[1], np.nan)] * len(drawn)
    return pd.DataFrame(found, columns=wide.columns)


def _relative(estimates: Any, truth: Any) -> Any:
    """Return (estimate - truth) / truth: infinite where the truth alone is 0, 0 where both are."""
    difference = estimates - truth
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / truth)
