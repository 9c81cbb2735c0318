r"""Calibration errors over all classes: the 32 of Nixon et al. (2019), and those with a name of their own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.predictions._partitions import EqualMass, EqualWidth
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_choice, validate_count
from caltest.statistics._classwise_cells import AuthorsCells, EntryCells, EntryStatistic, Layout

SCHEMES = ("equal-width", "equal-mass")


class OverClasses(EntryStatistic):
    """An error over the entries of the predictions; subclasses say of which, by `layout`."""

    measures_scatter = True

    @abstractmethod
    def layout(self, n_samples: int) -> Layout:
        """Return which entries are looked at, how they are cut and what they count."""

    def entry_cells(self, sample: Sample) -> EntryCells:
        """Return the cells of the entries of a sample; computed once."""
        return sample.once(self.layout(sample.n_samples))


@dataclass(frozen=True)
class GCE(OverClasses):
    r"""General calibration error: the space of 32 metrics of Nixon et al. (2019).

    .. math:: \Bigl(\frac1G \sum_{g=1}^G \sum_b \frac{n_{bg}}{n_g}
              \bigl|\mathrm{acc}_{bg} - \mathrm{conf}_{bg}\bigr|^q\Bigr)^{1/q}

    The groups g are the K classes, or all entries in one; :math:`n_g` entries are looked at in a group and
    :math:`n_{bg}` of them lie in cell b, with mean prediction conf and frequency acc; q is 1 or 2. The outcome of a
    row decides on all of its entries, so that one draw serves every class and the test is a joint one.

    Its conventions are those of the authors' code (robustness_metrics), not always of the field: a group without
    entries counts 0 and is not left out; with ``max_prob`` and ``class_conditional`` every predicted class counts 1 /
    K, whatever its share; for the l2 norm squares are averaged over classes and the root comes last; values of exactly
    1 have a cell of their own, and with threshold 0 values of exactly 0 are dropped. `SCE`, `ACE`, `TACE`, `RMSCE` and
    `ClassConditionalECE` are members of this space in the field's definitions.

    It looks at all columns as they are: behind a two-outcome lens at the event and at the rest, and ``max_prob`` is
    then the larger of the two. Give it the whole prediction and no `Confidence` lens. Sample weights replace counts;
    they do not move the edges.

    Parameters
    ----------
    scheme : {"equal-width", "equal-mass"}
        Cells :math:`[j/L, (j+1)/L)`; or the same number of values in each, with edge r at the value of rank round(r n /
        L) and ties in one cell ("even" and "adaptive" in the paper).
    max_prob : bool
        Look at the top prediction of a row only.
    class_conditional : bool
        Classes apart (with ``max_prob``: predicted classes), then averaged; otherwise all in the same cells.
    threshold : float
        Predictions at or below are dropped; 0 or 0.01 in the paper.
    norm : {"l1", "l2"}
        The exponent q.
    n_cells : int
        Cells L of each class.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4 and appendix C.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> adaptive = caltest.GCE("equal-mass", norm="l2")
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=adaptive), 10)
    0.011777551
    """

    scheme: str = "equal-width"
    max_prob: bool = False
    class_conditional: bool = True
    threshold: float = 0.0
    norm: str = "l1"
    n_cells: int = 15

    def __post_init__(self) -> None:
        validate_choice(self.scheme, "scheme", SCHEMES)
        _validate_bool(self.max_prob, "max_prob")
        _validate_bool(self.class_conditional, "class_conditional")
        _validate_threshold(self.threshold)
        validate_choice(self.norm, "norm", ("l1", "l2"))
        validate_count(self.n_cells, "n_cells")

    @property
    def power(self) -> int:  # type: ignore[override]
        """The exponent of the gaps."""
        return int(self.norm[1])

    def layout(self, n_samples: int) -> Layout:
        """Return the layout; norms share it."""
        cells = AuthorsCells(self.scheme, self.n_cells)
        return Layout(cells, self.max_prob, self.class_conditional, self.threshold)


@dataclass(frozen=True)
class SCE(OverClasses):
    r"""Static calibration error, also class-wise or marginal ECE: the average of every class's ECE.

    .. math:: \frac1K \sum_{k=1}^K \sum_{b=1}^L \frac{n_{bk}}{n} \bigl|\mathrm{acc}_{bk} - \mathrm{conf}_{bk}\bigr|

    with cells of equal width for each class's probability, tested jointly over the classes. Its target is the
    class-wise miscalibration averaged within cells; most entries of sharp predictions are near 0, so that with many
    classes it is small whatever the model does. All values count, those of exactly 0 and 1 in the end cells; for a
    cell of their own and dropped zeros see `GCE`, for all classes in the same cells ``GCE(class_conditional=False)``.
    Behind a two-outcome lens it is the average over the event and the rest.

    Parameters
    ----------
    n_cells : int
        Cells L of each class.
    average : {"mean", "sum"}
        Over the classes; some programs (ece-kde) add them up.
    closed : {"left", "right"}
        Which end of a cell belongs to it, as in `EqualWidth`.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.3.
    M. Kull et al. (2019), Beyond temperature scaling, NeurIPS.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.SCE()), 10)
    0.008836746
    """

    n_cells: int = 15
    average: str = "mean"
    closed: str = "left"

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")
        validate_choice(self.average, "average", ("mean", "sum"))
        validate_choice(self.closed, "closed", ("left", "right"))

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        cells = EqualWidth(self.n_cells, closed=self.closed)
        return Layout(cells, False, True, class_weight="equal" if self.average == "mean" else "sum")


@dataclass(frozen=True)
class ACE(OverClasses):
    r"""Adaptive calibration error: cells of equal mass for every class, each of which counts the same.

    .. math:: \frac1{KL} \sum_{k=1}^K \sum_{b=1}^L \bigl|\mathrm{acc}_{bk} - \mathrm{conf}_{bk}\bigr|

    Cells are those of `EqualMass`, ties kept together; one that ties leave empty adds 0. Three numbers go by this
    name: this one (the paper); the same with cells counted by their rows, ``cell_weight="rows"`` (the authors' code,
    nearly); and the unweighted average over the occupied cells of equal width of the top prediction, ``ACE(scheme=
    "equal-width", max_prob=True, cell_weight="occupied")`` (Neumann et al. 2018, netcal). Most cells of sharp
    predictions lie near 0, where a large miscalibration of the rest is averaged away.

    Parameters
    ----------
    n_cells : int
        Cells L of each class.
    scheme : {"equal-mass", "equal-width"}
        How cells are cut: as `EqualMass` or as `EqualWidth`.
    max_prob : bool
        Look at the top prediction of a row only, all classes in the same cells.
    cell_weight : {"cells", "rows", "occupied"}
        A cell counts 1 / n_cells, by its share of the rows, or all cells that hold rows count equally.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.2.
    L. Neumann, A. Zisserman and A. Vedaldi (2018), Relaxed softmax, NeurIPS workshop.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.ACE()), 6)
    0.003896
    """

    n_cells: int = 15
    scheme: str = "equal-mass"
    max_prob: bool = False
    cell_weight: str = "cells"

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")
        validate_choice(self.scheme, "scheme", SCHEMES)
        _validate_bool(self.max_prob, "max_prob")
        _validate_cell_weight(self.cell_weight)

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        cells = _cells(self.scheme, self.n_cells)
        return Layout(cells, self.max_prob, not self.max_prob, cell_weight=self.cell_weight)


@dataclass(frozen=True)
class TACE(OverClasses):
    r"""Thresholded adaptive calibration error: `ACE` over the predictions above a threshold.

    The cells of each class are cut, and averaged, over the rows that this class keeps. The constructor of this name in
    the authors' code ignores its threshold and returns another number.

    Parameters
    ----------
    n_cells : int
        Cells of each class.
    threshold : float
        Predictions at or below are dropped.
    cell_weight : {"cells", "rows", "occupied"}
        As in `ACE`; a class that keeps fewer rows than cells leaves some of them empty, which add 0.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.5 and appendix A.1.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.TACE()), 6)
    0.051757
    """

    n_cells: int = 15
    threshold: float = 0.01
    cell_weight: str = "cells"

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")
        _validate_threshold(self.threshold)
        _validate_cell_weight(self.cell_weight)

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        return Layout(EqualMass(self.n_cells), False, True, self.threshold, cell_weight=self.cell_weight)


@dataclass(frozen=True)
class RMSCE(OverClasses):
    r"""Root mean square calibration error of the top prediction.

    .. math:: \Bigl(\sum_b \frac{n_b}{n} (\mathrm{acc}_b - \mathrm{conf}_b)^2\Bigr)^{1/2}

    Some programs return its square, which has the same p-value. It looks at the larger column behind a two-outcome
    lens: give it the whole prediction and no `Confidence` lens.

    Parameters
    ----------
    n_cells : int
        Number of cells.
    scheme : {"equal-mass", "equal-width"}
        How cells are cut: as `EqualMass` (Hendrycks, Nixon) or as `EqualWidth` (torchmetrics).
    rows_per_cell : int, optional
        Cells of equal mass of about this many rows, whatever ``n_cells``; 100 in Hendrycks' code.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    References
    ----------
    D. Hendrycks, M. Mazeika and T. Dietterich (2019), Deep anomaly detection with outlier exposure, ICLR.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.RMSCE(scheme="equal-width")), 10)
    0.0652795247
    """

    n_cells: int = 15
    scheme: str = "equal-mass"
    rows_per_cell: int | None = None

    power = 2

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")
        validate_choice(self.scheme, "scheme", SCHEMES)
        if self.rows_per_cell is None:
            return
        validate_count(self.rows_per_cell, "rows_per_cell")
        if self.scheme != "equal-mass":
            msg = f'`rows_per_cell` needs scheme="equal-mass", got {self.scheme!r}.'
            raise ValueError(msg)

    def layout(self, n_samples: int) -> Layout:
        """Return the layout; the number of cells may depend on the number of rows."""
        n_cells = self.n_cells if self.rows_per_cell is None else max(1, round(n_samples / self.rows_per_cell))
        return Layout(_cells(self.scheme, n_cells), True, False)


@dataclass(frozen=True)
class ClassConditionalECE(OverClasses):
    r"""Class-conditional ECE, also top-label ECE: the ECE of the top prediction, for each predicted class apart.

    .. math:: \sum_{k=1}^K v_k \sum_b \frac{n_{bk}}{n_k} \bigl|\mathrm{acc}_{bk} - \mathrm{conf}_{bk}\bigr|

    over the :math:`n_k` rows whose top prediction is k, in cells of equal width, the last closed on both sides. It
    looks at the larger column behind a two-outcome lens: give it the whole prediction and no `Confidence` lens.

    Parameters
    ----------
    n_cells : int
        Cells of each class.
    class_weight : {"equal", "rows"}
        :math:`v_k = 1 / K`, as Nixon et al. have it: classes that are rarely predicted are mostly noise; or
        :math:`v_k = n_k / n` (Gupta & Ramdas 2022).

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.1 and appendix C.
    C. Gupta and A. Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.ClassConditionalECE()), 10)
    0.043162212
    """

    n_cells: int = 15
    class_weight: str = "equal"

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")
        validate_choice(self.class_weight, "class_weight", ("equal", "rows"))

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        return Layout(EqualWidth(self.n_cells), True, True, class_weight=self.class_weight)


def _cells(scheme: str, n_cells: int) -> Any:
    return EqualWidth(n_cells) if scheme == "equal-width" else EqualMass(n_cells)


def _validate_bool(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        msg = f"`{name}` must be True or False, got {value!r}."
        raise ValueError(msg)


def _validate_threshold(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < 1:
        msg = f"`threshold` must be a number of at least 0 and below 1, got {value!r}."
        raise ValueError(msg)


def _validate_cell_weight(value: Any) -> None:
    validate_choice(value, "cell_weight", ("cells", "rows", "occupied"))
