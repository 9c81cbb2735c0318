"""The mergeable state: all that calibration needs of predictions and outcomes, in a fixed amount of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._compiled._usual import read_events
from caltest.estimation import ReliabilityCurve
from caltest.predictions._arrays import Booleans
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, ClassWise, Confidence
from caltest.predictions._sample import are_impossible
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    FLOAT32_ROUNDING,
    PAIR_ROUNDING,
    SeedLike,
    refuse_if,
    validate_bool,
    validate_count,
    validate_given_problem,
    validate_level,
)
from caltest.results import TestResult
from caltest.results._description import counted
from caltest.statistics._base import Statistic, validate_statistic
from caltest.streaming.states._answers import Answers
from caltest.streaming.states._redrawn_cells import RedrawnCells
from caltest.streaming.states._settings import Settings, agreed_classes, read_classes, with_class_names
from caltest.streaming.states._state_file import Packed, pack
from caltest.streaming.states._table import OutcomeTable

_BLOCK = 2**15  # probabilities that are copied at once, into the cache
_SURE = 0.99  # of the tolerance: sums closer to it depend on the order of summation, and are left to the validation


class Batch(NamedTuple):
    """Observations behind a lens.

    Attributes
    ----------
    prob : array of shape (n_samples,) or (n_samples, n_outcomes)
        Probability of the event, or of each outcome.
    outcome : array of shape (n_samples,)
        Whether the event happened, or the outcomes.
    impossible : array of shape (n_samples,) or None
        Whether the label had been predicted with probability 0; None where the outcomes are the labels.
    """

    prob: NDArray[Any]
    outcome: NDArray[Any]
    impossible: Booleans | None


def events_of(y_true: Any, y_prob: Any, classes: Any, n_classes: int, lens: Lens) -> Batch:
    """Return the events of observations; refuse what is no problem."""
    plain = plain_events(y_true, y_prob, n_classes, lens) if classes is None else None
    if plain is not None:
        return plain
    found = outcomes_of(y_true, y_prob, classes, n_classes, lens)
    return found._replace(prob=found.prob[:, 1])


def outcomes_of(y_true: Any, y_prob: Any, classes: Any, n_classes: int, lens: Lens) -> Batch:
    """Return the outcomes of observations; refuse what is no problem."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    if prob.shape[1] != n_classes:
        refuse(f"`y_prob` must have {n_classes} classes as the state has, got {prob.shape[1]}.")
    if type(lens) is Canonical:
        return Batch(prob, outcome, None)
    return Batch(*lens(prob, outcome), are_impossible(prob, outcome))


def plain_events(y_true: Any, y_prob: Any, n_classes: int, lens: Lens) -> Batch | None:
    """Return the events of observations, perhaps the caller's arrays.

    The answer is that of the validation and the lens. It is None where they would refuse or change something, and for
    types and lenses that are not common.
    """
    plain = type(y_true) is np.ndarray and y_true.dtype.kind in "biu" and type(y_prob) is np.ndarray
    if not plain or y_prob.dtype not in (np.float32, np.float64) or y_true.shape != y_prob.shape[:1] or not y_true.size:
        return None
    if y_prob.ndim == 1:
        known = n_classes == 2 and type(lens) is Canonical
        return Batch(y_prob, y_true, None) if known and _is_inside(y_true) and _is_inside(y_prob) else None
    if y_prob.shape[1:] != (n_classes,) or (y_true.dtype.kind == "b" and n_classes != 2):
        return None
    chosen = {Canonical: 1, Confidence: -1, ClassWise: getattr(lens, "k", 0)}.get(type(lens))
    return None if chosen is None else _events(y_true, y_prob, chosen)


def _is_inside(values: NDArray[Any]) -> bool:
    """Return whether all values are in [0, 1]; what is no number is not."""
    return values.dtype.kind == "b" or bool(values.min() >= 0 and values.max() <= 1)


def _events(label: NDArray[Any], prob: NDArray[Any], chosen: int) -> Batch | None:
    n_rows, n_classes = prob.shape
    size = max(_BLOCK // n_classes, 1)
    table, own = np.empty((min(size, n_rows), n_classes)), np.empty(min(size, n_rows), dtype=np.int64)
    found = np.empty(n_rows), np.empty(n_rows, dtype=np.uint8), np.empty(n_rows, dtype=np.bool_)
    tolerance = _SURE * FLOAT32_ROUNDING * n_classes
    rounding = PAIR_ROUNDING if n_classes == 2 else 1.0  # as the validation divides rows
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        given = _as_read(prob[rows], table), _as_read(label[rows], own)
        if not read_events(*given, chosen, tolerance, rounding, *(part[rows] for part in found)):
            return None
    return Batch(*found)


def _as_read(values: NDArray[Any], room: NDArray[Any]) -> NDArray[Any]:
    """Return values as they are if they have the type that is read, and otherwise a copy of them in ``room``."""
    if values.dtype == room.dtype and values.flags.carray:
        return values
    room[: len(values)] = values
    return room[: len(values)]


class CalibrationState:
    r"""Sums over narrow cells (bins), from which calibration is tested without the observations.

    A state takes batches of labels and predictions, and is merged with the states of other batches, files or machines.
    Its size does not depend on the number of observations. A lens makes two outcomes of every prediction: p is the
    probability of the event, y its indicator. For every micro-cell and outcome the state holds the number of
    observations and the sums of d, :math:`d^2` and :math:`d^3`, where d is the distance of p from the lower end of the
    micro-cell. The sums are integers: d is an integer multiple of a power of 2 for every double above :math:`2^{-64}`.
    So every order of batches and of merging, any number of workers, and every processor give the same bits.

    Binned statistics whose edges are edges of micro-cells are exact, up to rounding of doubles. For null distributions
    the predictions of a micro-cell are replaced by two with the same sums of 1, p, :math:`p^2` and :math:`p^3`. With
    width h and variance :math:`V = \sum p (1 - p)` of a cell of n observations, this changes the logarithm of the
    characteristic function of the number of events at frequency :math:`\omega` by about
    :math:`n h^4 \omega^4 / 384`, where only :math:`\omega^2 \lesssim 82 / V` matters: below :math:`10^{-12}` if V is
    at least 1. P-values of ECE, MCE and Hosmer-Lemeshow are those of `caltest.calibration_test`, to 1e-9 relative or
    1e-14 absolute.

    A state of the confidence counts the labels that had been predicted with probability exactly 0 before the lens. A
    single one refutes the predictions, so that the state is rejected with the smallest possible p-value, as a test of
    the whole prediction is. These observations are summed up separately, too, for the p-value without them. States of
    other lenses are rejected by what the lens shows, as arrays are.

    Of a lens with more outcomes the state holds, for every cell of `RedrawnCells`, the numbers of outcomes, the sums of
    the predictions, and the numbers of outcomes that are drawn while rows are added. P-values are those of a Monte
    Carlo test with these draws.

    Parameters
    ----------
    n_classes : int
        Number of classes of the predictions.
    lens : lens, optional
        What to look at: any lens of the package; by default `Canonical` for two classes and `Confidence` for more.
    micro_cells : int or RedrawnCells
        Number of micro-cells of equal width, a power of 2 from 2,048 to 32,768. Their edges are ``j / micro_cells`` and
        ``j / 1800``. For a lens with more than two outcomes `RedrawnCells`, and ``RedrawnCells()`` by default.

    Raises
    ------
    TypeError
        If ``n_classes`` or ``micro_cells`` is no integer, or ``lens`` is no lens of the package.
    ValueError
        If ``n_classes`` < 2, or ``micro_cells`` is not one of these powers of 2, or not for the outcomes of the lens.

    See Also
    --------
    caltest.calibration_test : The same test of predictions in memory.
    scan : A state of files or batches.

    References
    ----------
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> state = CalibrationState(n_classes=10)
    >>> for start in range(0, 10_000, 2500):
    ...     _ = state.update(y_true[start : start + 2500], y_prob[start : start + 2500])
    >>> ece = caltest.ECE(caltest.EqualWidth(15))
    >>> in_memory = caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=ece)
    >>> round(state.error(ece), 12) == round(in_memory, 12)
    True
    >>> state
    CalibrationState(n_classes=10, lens=Confidence(), micro_cells=4096), 10,000 observations
    """

    def __init__(self, n_classes: int = 2, lens: Lens | None = None, micro_cells: int | RedrawnCells = 4096) -> None:
        self._settings = found = Settings.of(n_classes, lens, micro_cells)
        self.n_classes, self.lens, self.micro_cells = found.n_classes, found.lens, found.micro_cells
        self._table = self._settings.empty_table()
        self._classes: list[str] | None = None

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return self._table.n_samples

    @property
    def fingerprint(self) -> str:
        """A short text that is the same for states that can be merged."""
        return self._settings.fingerprint

    @reads_arguments
    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: Sequence[Any] | None = None,
        source: str = "",
        first_row: int | None = None,
        **_: Unpack[InputOption],
    ) -> Self:
        """Add observations; nothing is added if one of them is refused.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
        y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
            Predicted probabilities. Of two columns the second one is used, divided by the sum of the row
            where that misses 1, as sums of float32 do.
        classes : sequence, optional
            The label of each column. Without it, columns with names are matched to the labels of each batch.
        source : str
            Where the rows come from, such as a file. It matters for lenses with more than two outcomes, as
            ``first_row``: both tell the rows of states apart that are merged, for each of which outcomes are drawn.
        first_row : int, optional
            Number of the first row in its source; by default the row after the last one of this source.

        Returns
        -------
        CalibrationState
            The state itself.

        Raises
        ------
        ValueError
            If a probability is missing or outside [0, 1], rows do not sum to 1, a label is unknown, lengths differ, or
            the number of columns is not ``n_classes``; if the classes are not those of the batches before; of more
            than two outcomes also if rows of this source are counted already, or there is no memory for their cells.
        """
        row = None if first_row is None else validate_count(first_row, "first_row", minimum=0)
        validated = outcomes_of if isinstance(self._table, OutcomeTable) else events_of
        batch = validated(y_true, y_prob, classes, self.n_classes, self.lens)
        classes = agreed_classes(self.lens, self._classes, classes)
        self._table.add(*batch, str(source), row)
        self._classes = classes
        return self

    def merge(self, other: CalibrationState) -> Self:
        """Add the observations of another state, which is not changed.

        Parameters
        ----------
        other : CalibrationState
            A state with the same settings.

        Returns
        -------
        CalibrationState
            The state itself.

        Raises
        ------
        TypeError, ValueError
            If ``other`` is no state; if its settings differ, or the classes of its batches, or it has more than two
            outcomes and holds the same rows.
        """
        if not isinstance(other, CalibrationState):
            refuse(f"`other` must be a CalibrationState, got {type(other).__name__}.", TypeError)
        if other._settings != self._settings:
            refuse(f"`other` must have the same settings: {self._code} and {other._code} cannot be merged.")
        classes = agreed_classes(self.lens, self._classes, other._classes)
        self._table.merge(other._table)  # type: ignore[arg-type]
        self._classes = classes
        return self

    def __add__(self, other: CalibrationState) -> CalibrationState:
        """Return a new state with the observations of both."""
        if not isinstance(other, CalibrationState):
            return NotImplemented
        return self._empty().merge(self).merge(other)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same settings and the same sums."""
        if not isinstance(other, CalibrationState) or self._settings != other._settings:
            return False
        sums, others = self._table.arrays(), other._table.arrays()
        return all(np.array_equal(sums[name], others[name]) for name in sums)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        refuse("a CalibrationState holds no predictions: call its `test`, or rank by a LeaderboardState.", TypeError)

    def __repr__(self) -> str:
        return f"{self._code}, {counted(self.n_samples)}"

    def to_bytes(self) -> bytes:
        """Return the state as an NPZ archive without pickled objects; equal states of the same classes are equal bytes.

        Returns
        -------
        bytes
            Format, version, settings, classes, checksum and sums: at most about 2 MB of two outcomes, and of more about
            8 bytes for each occupied cell, outcome and draw before they are compressed.
        """
        return self._pack({})

    @classmethod
    def from_bytes(cls, data: bytes) -> CalibrationState:
        """Return the state of an archive.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        CalibrationState
            An equal state.

        Raises
        ------
        TypeError, ValueError
            If ``data`` is no bytes; if it is truncated or changed, is no state, was written by another version, or
            holds what no state can hold. Sizes are compared before memory is taken.

        Examples
        --------
        >>> state = CalibrationState().update([0, 1], [0.25, 0.5])
        >>> CalibrationState.from_bytes(state.to_bytes()) == state
        True
        """
        packed = Packed.of(data)
        found = Settings.of_plain(packed.settings)
        state = cls(found.n_classes, found.lens, found.micro_cells)
        state._classes = read_classes(packed.more.get("classes"), found.n_classes)
        state._table.restore(packed.arrays(state._table.declared()))
        return state

    def error(self, statistic: Statistic | None = None) -> float:
        """Return the value of a statistic, as `caltest.calibration_error` does in memory.

        Parameters
        ----------
        statistic : Statistic or str, optional
            ``ECE(EqualWidth(15))`` by default. ECE, MCE, SquaredL2 and HosmerLemeshow with a partition whose edges are
            edges of micro-cells, Spiegelhalter, TemperatureScore, OverConfidence, UnderConfidence. KS and Kuiper are
            evaluated at the ends of the micro-cells, and at most the value of all observations (`error_bounds`).
            Of more than two outcomes ECE (the default), MCE and SquaredL2 with cells made of those of the state, and
            TemperatureScore and its sides.

        Returns
        -------
        float
            The value.

        Raises
        ------
        TypeError, ValueError
            If ``statistic`` is no statistic; if it needs the observations, or the state is empty.
        """
        return self._answers().error(statistic)

    def error_bounds(self, statistic: Statistic | None = None) -> tuple[float, float]:
        """Return bounds of the value that a statistic has on all observations.

        Parameters
        ----------
        statistic : Statistic or str, optional
            As in `error`.

        Returns
        -------
        tuple of float
            Lower and upper bound. They differ for `KS` and `Kuiper` only, by what may happen within a micro-cell;
            predictions in it that differ by less than 1e-7 count as equal. More micro-cells make them closer.

        Raises
        ------
        TypeError, ValueError
            As `error`.
        """
        return self._answers().error_bounds(statistic)

    def brier_score(self) -> float:
        """Return the mean of (y - p)^2, as `caltest.estimation.brier_score` behind the lens."""
        return self._answers().sums.brier_score

    def log_score(self) -> float:
        """Return the mean of -log of the probability of the outcome; infinite if that had been 0 once."""
        return self._answers().log_score()

    def test(
        self,
        statistic: Statistic | str | None = None,
        *,
        n_resamples: int | None = None,
        alpha: float = 0.05,
        rng: SeedLike = None,
    ) -> TestResult:
        """Test whether the model is calibrated, with an exact null distribution where it is known.

        The predictions are fixed, as in `caltest.calibration_test`, and the p-values of `ECE`, `MCE` and
        `HosmerLemeshow` are the same. For the other statistics the numbers of events of the micro-cells are simulated;
        predictions within a micro-cell are then replaced by two with the same mean and variance. Of more than two
        outcomes the draws are those of `RedrawnCells`. If a label had been predicted with probability 0, the
        p-value is the smallest possible; ``verdict.impossible.pvalue`` is that of the others.

        Parameters
        ----------
        statistic : Statistic or str, optional
            As in `error`; of two outcomes also ``TCal(n)`` where ``2 ** n`` is at most the number of micro-cells. `KS`
            and `Kuiper` are tested by their values at the ends of the micro-cells.
        n_resamples : int, optional
            Number of draws of two outcomes, where the null distribution is not known; 999 by default.
        alpha : float
            Level of the conclusion.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness of the draws of two outcomes.

        Returns
        -------
        TestResult
            Prints as a report; unpacks as ``statistic, pvalue``. Its ``noise_floor`` is the mean of the null
            distribution.

        Raises
        ------
        TypeError, ValueError
            If ``statistic`` is no statistic; if it needs the observations, the state is empty, ``n_resamples`` < 1,
            ``alpha`` is not strictly between 0 and 1; if ``n_resamples`` or ``rng`` is given for more than two
            outcomes.

        Examples
        --------
        >>> import caltest
        >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
        >>> state = CalibrationState(10).update(y_true, y_prob)
        >>> statistic = caltest.HosmerLemeshow(caltest.EqualWidth(10))
        >>> in_memory = caltest.calibration_test(y_true, y_prob, lens=caltest.Confidence(), statistic=statistic)
        >>> abs(state.test(statistic).statistic / in_memory.statistic - 1) < 1e-9
        True
        """
        level = validate_level(alpha, "alpha")
        count = None if n_resamples is None else validate_count(n_resamples, "n_resamples")
        chosen = None if statistic is None else validate_statistic(statistic)
        return with_class_names(self._answers().test(chosen, alpha=level, n_resamples=count, rng=rng), self._classes)

    def curve(
        self, partition: Partition | None = None, *, confidence_level: float = 0.9, simultaneous: bool = False
    ) -> ReliabilityCurve:
        """Compute observed frequencies and consistency bars, as `caltest.reliability_curve` does in memory.

        Parameters
        ----------
        partition : Partition, optional
            Cells of the event's probability whose edges are edges of micro-cells; ``EqualWidth(15)`` by default.
        confidence_level : float
            Level of the bars.
        simultaneous : bool
            Whether the level holds for all cells at once.

        Returns
        -------
        ReliabilityCurve
            The curve, with exact consistency bars and p-values of the cells.

        Raises
        ------
        ValueError
            If the cells cannot be made of micro-cells, the state is empty or has more than two outcomes, or
            ``confidence_level`` is not strictly between 0 and 1.
        """
        validate_bool(simultaneous, "simultaneous")
        level = validate_level(confidence_level, "confidence_level")
        curve = self._answers().curve(partition, level, simultaneous=simultaneous)
        return with_class_names(curve, self._classes)

    @property
    def _code(self) -> str:
        return f"CalibrationState(n_classes={self.n_classes}, lens={self.lens!r}, micro_cells={self.micro_cells})"

    def _empty(self) -> CalibrationState:
        return CalibrationState(self.n_classes, self.lens, self.micro_cells)

    def _answers(self) -> Answers:
        refuse_if(not self.n_samples, "the state is empty; call `update` first.")
        return self._table.answers(self.lens)

    def _pack(self, more: dict[str, Any]) -> bytes:
        """Return the bytes of the state with further entries."""
        return pack(self._settings.plain, self._table.arrays(), more | {"classes": self._classes})
