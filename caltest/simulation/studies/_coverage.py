"""Studies of coverage: how often intervals contain what they are made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from caltest.estimation.curves._bars import clopper_pearson
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import require
from caltest.results._description import Description
from caltest.simulation.models._base import Model
from caltest.simulation.studies._data_sets import draw_data_sets
from caltest.simulation.studies._options import StudyOptions
from caltest.simulation.studies._run import Block, Design, accepted, named, numbers
from caltest.simulation.studies._study import CLEAR, Study, frame_table, share_error, varying

if TYPE_CHECKING:
    import pandas as pd

Build = Callable[..., Any]
Target = Callable[..., float]
_DESIGN = ["model", "lens", "n_samples", "interval"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoverageStudy(Study):
    """Result of `coverage_study`: intervals and their targets.

    Attributes
    ----------
    replicates : pandas.DataFrame
        One row for each model, lens, number of samples, interval and replicate with ``low``, ``high`` and ``target``.

    See Also
    --------
    coverage_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, coverage_study
    >>> def interval(y_true, y_prob):
    ...     return tuple(caltest.estimation.calibration_in_the_large(y_true, y_prob[:, 1]).confidence_interval)
    >>> def target(y_prob, class_prob):
    ...     return float(class_prob[:, 1].mean() / y_prob[:, 1].mean())
    >>> study = coverage_study(GaussianMixture1D(0, -2), {"O/E": (interval, target)}, 50, 20, rng=0)
    >>> len(study.replicates)
    20
    """

    replicates: pd.DataFrame

    _left_out: ClassVar[frozenset[str]] = frozenset({"replicates"})

    def to_frame(self) -> pd.DataFrame:
        r"""Return one row for each model, lens, number of samples and interval.

        ``coverage`` is the share of data sets whose interval contains the target, ``above`` and ``below`` the shares
        whose target is above the upper and below the lower end: the one-sided errors. ``target`` and ``width`` are
        means. Each has its Monte Carlo standard error: binomial for the shares (``coverage_se``, ``above_se``,
        ``below_se``), :math:`s / \sqrt R` for the means (``target_se``, ``width_se``). Targets are computed from the
        true probabilities and have no error. ``coverage_low`` and ``coverage_high`` are 99 % Clopper-Pearson limits.

        Returns
        -------
        pandas.DataFrame
            The summary.
        """
        import pandas as pd

        rows = []
        for key, group in self.replicates.groupby(_DESIGN, sort=False):
            low, high, target = (group[name].to_numpy() for name in ("low", "high", "target"))
            # An end that equals the target holds it, whatever the last bit of its sum.
            slack = 1e-12 * np.maximum(1.0, np.abs(target))
            above, below = target > high + slack, target < low - slack
            count, held = len(group), int((~above & ~below).sum())
            limits = clopper_pearson(np.array(held), np.array(count - held), 0.005)
            rows.append(
                dict(zip(_DESIGN, key, strict=True))
                | {"n_replicates": count, "target": target.mean(), "target_se": _mean_se(target)}
                | {"width": (high - low).mean(), "width_se": _mean_se(high - low)}
                | {"coverage": held / count, "coverage_se": share_error(held / count, count)}
                | {"coverage_low": float(limits[0]), "coverage_high": float(limits[1])}
                | {"above": above.mean(), "above_se": share_error(above.mean(), count)}
                | {"below": below.mean(), "below_se": share_error(below.mean(), count)}
            )
        return pd.DataFrame(rows)

    @property
    def conclusion(self) -> str:
        """The lowest coverage in words."""
        frame = self.to_frame()
        worst = frame.loc[frame["coverage"].idxmin()]
        lead, error = frame["coverage"] - worst["coverage"], np.hypot(frame["coverage_se"], worst["coverage_se"])
        others = int((lead <= CLEAR * error).sum()) - 1
        cases = "1 other case does" if others == 1 else f"{others} other cases do"
        undecided = f" {cases} not differ from the lowest by more than {CLEAR:g} standard errors." if others else ""
        return (
            f"The lowest coverage is {worst['coverage']:.4g} (99 % limits {worst['coverage_low']:.3f} to "
            f"{worst['coverage_high']:.3f}), that of {worst['interval']} with {worst['n_samples']:,} observations of "
            f"{worst['model']}; the highest is {frame['coverage'].max():.4g}.{undecided}"
        )

    def _describe(self) -> Description:
        frame = self.to_frame()
        names = [*varying(frame, ("model", "lens")), "n_samples", "interval", "target", "width"]
        return Description(
            self._title("Coverage study", frame),
            [self.conclusion],
            [frame_table(frame, [*names, "coverage", "above", "below"])],
            ["above, below: shares of data sets whose target is above the upper end, or below the lower end."],
        )


def _mean_se(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


@reads_arguments
def coverage_study(
    models: Model | Sequence[Model] | Mapping[str, Model],
    intervals: Mapping[str, tuple[Build, Target]],
    n_samples: int | Sequence[int],
    n_replicates: int = 1000,
    **options: Unpack[StudyOptions],
) -> CoverageStudy:
    r"""Simulate the coverage of intervals: how often they contain their targets.

    Data sets are drawn from models with known truth. A target may depend on the data set: predictions :math:`g(x_i)`
    and true class probabilities :math:`P(Y = \cdot \mid x_i)` of its observations are known, so it is a number
    :math:`\theta` of each data set, and the coverage is :math:`P(\text{low} \le \theta \le \text{high})`. For a
    target that is one number of the model, see `bias_study`.

    Parameters
    ----------
    models : Model, sequence or mapping
        What data sets are drawn from.
    intervals : mapping of name to (build, target)
        ``build(y_true, y_prob)`` returns two numbers; ``target(y_prob, class_prob)``, with arrays of shape
        ``(n_samples, n_classes)``, returns what they should contain. Both get those of the keywords ``lens`` and
        ``rng`` that they take.
    n_samples : int or sequence of int
        Number of observations of a data set.
    n_replicates : int
        Number of data sets for each model and number of observations.
    lenses : lens, sequence or mapping, optional
        What to look at; the whole prediction by default.
    workers : int
        Threads, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.

    Returns
    -------
    CoverageStudy
        Intervals, targets and their summary.

    Raises
    ------
    TypeError
        If ``models`` hold something else than models, or ``intervals`` something else than pairs of functions; if
        ``workers`` is not an integer.
    ValueError
        If two models, intervals or lenses have the same name; if a number of observations or ``n_replicates`` is < 1;
        if ``out`` holds another study.

    See Also
    --------
    caltest.simulation.bias_study : Bias and variance of estimates.

    Examples
    --------
    An interval for the mean deviation in the data set, too wide because its variance includes that of the truth:

    >>> import numpy as np
    >>> from caltest.simulation import GaussianMixture1D, coverage_study
    >>> def build(y_true, y_prob):
    ...     deviation = y_true - y_prob[:, 1]
    ...     reach = 1.96 * deviation.std() / np.sqrt(len(y_true))
    ...     return deviation.mean() - reach, deviation.mean() + reach
    >>> def target(y_prob, class_prob):
    ...     return (class_prob - y_prob)[:, 1].mean()
    >>> study = coverage_study(GaussianMixture1D(1, 1), {"mean": (build, target)}, 200, 500, rng=0)
    >>> float(study.to_frame()["coverage"].round(2).item())
    1.0
    """
    design = Design.of(models, n_samples, n_replicates)
    lenses = options.pop("lenses")
    looks = named(Canonical() if lenses is None else lenses, "lenses")
    built = named(intervals, "intervals", tuple, "pairs (build, target)")
    for pair in built.values():
        functions = len(pair) == 2 and all(map(callable, pair))
        require(functions, "`intervals` must hold pairs (build, target) of functions", pair, right_type=False)

    return CoverageStudy(replicates=design.run("coverage", _cover, looks, built, **options))


def _cover(block: Block, lenses: dict[str, LensLike], intervals: dict[str, tuple[Build, Target]]) -> pd.DataFrame:
    """Return the intervals of some replicates with their targets, one row each."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    sets = (one for some in draw_data_sets(block) for one in some.one_by_one())
    for replicate, y_true, y_prob, true_prob, rng in sets:
        class_prob = true_prob()
        for view, lens in lenses.items():
            for interval, (build, target) in intervals.items():
                ends = build(y_true, y_prob, **accepted(build, {"lens": lens, "rng": rng}))
                low, high = numbers(ends, 2, interval)
                theta = target(y_prob, class_prob, **accepted(target, {"lens": lens, "rng": rng}))
                (held,) = numbers([theta], 1, interval)
                design = dict(zip(_DESIGN, (block.name, view, block.n_samples, interval), strict=True))
                rows.append(design | {"replicate": replicate, "low": low, "high": high, "target": held})
    return pd.DataFrame(rows)
