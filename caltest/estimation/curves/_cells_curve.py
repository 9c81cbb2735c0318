"""Error curves: calibration errors along one parameter, such as the number of cells, with noise floors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._options import ErrorCurveOptions
from caltest.estimation.scores._scores import validate_error_or_score
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample, induce, observations_that_count
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import by_name, validate_models, validate_names
from caltest.predictions.inputs._validation import (
    refuse_if,
    require,
    validate_count,
    validate_distinct,
    validate_rng,
    validate_weight,
)
from caltest.resampling import Consistency
from caltest.resampling.draws._labels import Draws
from caltest.resampling.engine._evaluation import Question, draw_nulls
from caltest.resampling.engine._run import settle
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results import Result
from caltest.results._description import Description, Table, counted
from caltest.results._picture import Picture
from caltest.results._progress import reporting
from caltest.statistics import ACE, GCE, UCE, Statistic
from caltest.statistics._base import default_lens

if TYPE_CHECKING:
    import pandas as pd

HIGH = 0.95
"""Probability of the upper quantile of the noise floor."""
_N_CELLS = (2, 5, 10, 15, 20, 30, 50, 75, 100)
Name = TypeVar("Name", bound=Hashable)
Family = Callable[[int], Statistic]
"""From the number of cells to a statistic."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ErrorCurve(Result):
    """Errors of several models by several statistics at the points of a parameter.

    Attributes
    ----------
    models : tuple of str
        Names of the models; a single one has the name "".
    statistics : tuple of str
        Names of the statistics.
    value : array of shape (n_statistics, n_models, n_points)
        The error of the observed labels.
    floor, floor_upper : arrays of shape (n_statistics, n_models, n_points)
        Noise floor: mean and 95 % quantile of the error if the model is calibrated at this point, from simulated
        labels.
    n_resamples, n_samples : int
        Number of draws of the labels at each point, and of observations.
    quantities : tuple of str
        What the statistics are, in words.
    """

    models: tuple[str, ...]
    statistics: tuple[str, ...]
    value: Floats
    floor: Floats
    floor_upper: Floats
    n_resamples: int
    n_samples: int
    quantities: tuple[str, ...]

    _left_out: ClassVar[frozenset[str]] = frozenset({"quantities"})
    parameter: ClassVar[str]
    """Name of the field that holds the points of the parameter."""

    @abstractmethod
    def _sentence(self, s: int, m: int) -> str:
        """Return what a statistic of a model shows, by their positions."""

    @property
    def _sentences(self) -> list[str]:
        return [self._sentence(s, m) for s in range(len(self.statistics)) for m in range(len(self.models))]

    @property
    def points(self) -> NDArray[Any]:
        """Values of the parameter, ``(n_points,)``."""
        return getattr(self, self.parameter)

    @property
    def conclusion(self) -> str:
        """The findings in words."""
        return " ".join(self._sentences)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each statistic, model and point as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Statistic, model, parameter, error, and mean and 95 % quantile of its noise floor.
        """
        import pandas as pd

        index = pd.MultiIndex.from_product(
            [self.statistics, self.models, self.points], names=["statistic", "model", self.parameter]
        )
        columns = {name: getattr(self, name).ravel() for name in ("value", "floor", "floor_upper")}
        return pd.DataFrame(columns, index=index).reset_index()

    def _table(self, positions: Integers, head: str) -> Table:
        """Return a table with one line for each statistic and model, at positions ``(n_statistics, n_models)``."""
        rows = []
        for s, statistic in enumerate(self.statistics):
            for m, model in enumerate(self.models):
                at = positions[s, m]
                shown = (self.points[at], self.value[s, m, at], self.floor[s, m, at], self.floor_upper[s, m, at])
                rows.append((statistic, model or "the model", *(f"{number:.4g}" for number in shown)))
        return Table(("statistic", "model", head, "error", "noise floor", "95 % below"), rows, left=("model",))


def _by_look(
    statistics: Mapping[Name, Statistic], prob: NDArray[Any], outcome: Integers, weight: Floats | None, lens: Any
) -> Iterator[tuple[Sample, dict[Name, Statistic]]]:
    """Yield the samples behind the lenses of statistics, and the statistics of each."""
    looks = {name: default_lens(one, prob.shape[1]) if lens is None else lens for name, one in statistics.items()}
    for look in dict.fromkeys(looks.values()):
        sample = induce(prob, outcome, lens=look, weight=weight)
        yield sample, {name: settle(one, sample) for name, one in statistics.items() if looks[name] == look}


def measure_values(
    statistics: Mapping[Name, Statistic], prob: NDArray[Any], outcome: Integers, weight: Floats | None, lens: Any
) -> dict[Name, float]:
    """Return the value of each statistic."""
    looks = _by_look(statistics, prob, outcome, weight, lens)
    return {name: float(one.evaluate(sample, sample.outcome)) for sample, own in looks for name, one in own.items()}


def measure_errors(
    statistics: Mapping[Name, Statistic],
    prob: NDArray[Any],
    outcome: Integers,
    weight: Floats | None,
    *,
    draws: Draws,
    options: ErrorCurveOptions,
) -> Floats:
    """Return errors, and mean and upper quantile of their noise floors, ``(3, n_statistics)``."""
    found = {}
    for sample, own in _by_look(statistics, prob, outcome, weight, options["lens"]):  # which share their draws
        view = LensView(sample)
        nulls = draw_nulls([Question(one, view) for one in own.values()], sample, draws, options["workers"])
        for (name, one), null in zip(own.items(), nulls, strict=True):
            value = float(one.evaluate(sample, sample.outcome))
            found[name] = value, null[0].mean(), np.quantile(null[0], HIGH, method="higher")
    return np.array([found[name] for name in statistics]).T


def draws_of_points(n_resamples: int | None, options: ErrorCurveOptions) -> Draws:
    """Return the draws of the labels, which are the same at every point."""
    seed = int(validate_rng(options["rng"]).integers(2**62))
    return Consistency().draws(number_of_draws(n_resamples), seed)


def _ece(n_cells: int) -> Statistic:
    return GCE(max_prob=True, class_conditional=False, n_cells=n_cells)


_FAMILIES: dict[str, Family] = {"ECE": _ece, "ACE": ACE, "UCE": UCE}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellsCurve(ErrorCurve):
    """Result of `cells_curve`.

    Attributes
    ----------
    n_cells : array of shape (n_points,)
        Numbers of cells (bins), increasing.
    models : tuple of str
        Names of the models; a single one has the name "".
    statistics : tuple of str
        Names of the statistics.
    value : array of shape (n_statistics, n_models, n_points)
        The error of the observed labels.
    floor, floor_upper : arrays of shape (n_statistics, n_models, n_points)
        Noise floor: mean and 95 % quantile of the error if the model is calibrated, from simulated labels.
    n_resamples, n_samples : int
        Number of draws of the labels at each point, and of observations.

    See Also
    --------
    caltest.cells_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> curve = caltest.cells_curve(y_true, y_prob, n_cells=[5, 10, 20], n_resamples=19, rng=0)
    >>> curve.n_cells, curve.value.shape
    (array([ 5, 10, 20]), (3, 1, 3))
    """

    n_cells: Integers

    parameter: ClassVar[str] = "n_cells"
    plot = Picture("plot_cells_curve")
    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    def _sentence(self, s: int, m: int) -> str:
        values, floor = self.value[s, m], self.floor[s, m]
        first, last = self.n_cells[0], self.n_cells[-1]
        of = f" of {self.models[m]}" if self.models[m] else ""
        cells = f"{first} to {last} cells (bins)" if first < last else f"{first} cells (bins)"
        above = int((values > self.floor_upper[s, m]).sum())
        often = "all" if above == len(values) else "none" if above == 0 else str(above)
        return (
            f"With {cells} {self.statistics[s]}{of} is {values.min():.4g} to {values.max():.4g}, its noise floor "
            f"{floor.min():.4g} to {floor.max():.4g}; {often} of the {len(values)} values "
            f"{'is' if above == 1 else 'are'} above what 95 % of calibrated models would have."
        )

    def _describe(self) -> Description:
        last = np.full(self.value.shape[:2], len(self.n_cells) - 1)
        return Description(
            f"Cells curve ({counted(self.n_samples)})",
            self._sentences,
            [self._table(last, "cells")],
            [
                f"Noise floor: {self.n_resamples:,} Monte Carlo draws of the labels, predictions fixed.",
                "A binned error depends on the number of cells by its bias: with few, deviations cancel within a cell; "
                "with many, the noise floor rises. Do not choose the number by the result.",
            ],
        )


@reads_arguments
def cells_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    statistics: Mapping[str, Family | Statistic | str] | None = None,
    n_cells: Sequence[int] = _N_CELLS,
    n_resamples: int | None = None,
    **options: Unpack[ErrorCurveOptions],
) -> CellsCurve:
    r"""Compute binned calibration errors against the number of cells (bins), with their noise floors.

    The estimate :math:`T_L` with L cells has its own target, the error that remains when deviations cancel within
    cells, and its own bias. The noise floor :math:`E\,T_L(g, Y)`, labels simulated from the predictions, shows how
    much of a rise with L is noise: of the usual ECE with L equally full cells it is about :math:`(2 L / (\pi
    n))^{1/2}` times the standard deviation of a label (Laves et al. 2020, figure 1).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or mapping of str to such
        Predicted probabilities; of several models by name.
    lens : lens, optional
        By default that of each statistic: the whole prediction if it can judge it, and the confidence otherwise.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation: how much it counts, for errors and noise floors. Labels are not repeated.
        The statistics must take weights.
    statistics : mapping of str to callable, Statistic or str, optional
        By name, a function from the number of cells to a statistic, such as ``{"SCE": caltest.statistics.SCE}``; or,
        for comparison, what has no cells: a statistic, or a score "brier", "log" or "spherical" as in
        `temperature_curve`. By default ECE of the largest probability, ACE and UCE, as in the paper. The UCE of a
        calibrated model is not 0.
    n_cells : sequence of int
        Different numbers of cells.
    n_resamples : int, optional
        Number of draws of the labels for each noise floor; 999 by default.

    Returns
    -------
    CellsCurve
        Data for `caltest.plotting.plot_cells_curve`; prints as a report.

    Raises
    ------
    TypeError
        If ``statistics`` is no mapping of names to statistics or functions that return them, ``n_cells`` no sequence of
        integers, or a name is no string.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ, or weights
        are negative or all 0; if there is no model or no statistic, or models differ in their number of classes; if a
        statistic combines tests, or needs two outcomes and the lens returns more; if a number of cells is < 1 or occurs
        twice; if ``n_resamples`` < 1.

    See Also
    --------
    temperature_curve : Errors against the softmax temperature.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, figure 1.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.cells_curve(y_true, y_prob, statistics={"UCE": caltest.statistics.UCE}, rng=0)
    >>> round(float(curve.value.min()), 4), round(float(curve.value.max()), 4)
    (0.0362, 0.0368)
    """
    families = _FAMILIES if statistics is None else statistics
    must = "`statistics` must map names to functions of the number of cells"
    require(isinstance(families, Mapping), must, statistics, right_type=False)
    validate_names(list(families), "statistics")
    refuse_if(not families, "`statistics` must hold at least one function of the number of cells, got none.")
    numbers = validate_distinct(n_cells, "n_cells", validate_count, "integers >= 1", "integers")
    draws = draws_of_points(n_resamples, options)
    named = by_name(y_prob)
    outcome, probs = validate_models(y_true, named, options["classes"])
    row, weight, _ = observations_that_count(validate_weight(options["sample_weight"], len(outcome)), None)
    outcome, probs = outcome[row], [prob[row] for prob in probs]
    errors = np.empty((3, len(families), len(probs), len(numbers)))
    with reporting(options["progress"], "numbers of cells") as report:
        for c, number in enumerate(numbers):
            chosen = {
                name: validate_error_or_score(family(int(number)) if callable(family) else family)
                for name, family in families.items()
            }
            for m, prob in enumerate(probs):
                errors[:, :, m, c] = measure_errors(chosen, prob, outcome, weight, draws=draws, options=options)
                report(c * len(probs) + m + 1, len(numbers) * len(probs))
    return CellsCurve(
        n_cells=numbers,
        models=tuple(named),
        statistics=tuple(families),
        value=errors[0],
        floor=errors[1],
        floor_upper=errors[2],
        n_resamples=draws.n_resamples,
        n_samples=len(outcome),
        quantities=tuple(f"{one.words} ({name})" for name, one in chosen.items()),
    )
