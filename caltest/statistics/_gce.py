"""Calibration errors over all classes: the 32 of Nixon et al. (2019), and named ones such as SCE, ACE and RMSCE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from caltest.predictions import EqualMass, EqualWidth
from caltest.predictions.inputs._validation import one_of, require, validate_bool, validate_count, validate_share
from caltest.results._naming import parameter
from caltest.statistics._classwise_cells import AuthorsCells, Layout, OverClasses

SCHEMES = ("equal-width", "equal-mass")
_CUTS: dict[str, Callable[[int], Any]] = {
    "equal-mass": EqualMass,
    "equal-mass-floor": partial(EqualMass, cut="floor"),
    "equal-width": EqualWidth,
}
"""Partitions by the names that `ACE` and `TACE` give them."""
_CELL_WEIGHTS = ("cells", "observations", "occupied")


@dataclass(frozen=True, repr=False)
class GCE(OverClasses):
    r"""General calibration error (GCE): the space of 32 metrics of Nixon et al. (2019).

    .. math:: \Bigl(\frac1G \sum_{g=1}^G \sum_b \frac{n_{bg}}{n_g}
              \bigl|\mathrm{acc}_{bg} - \mathrm{conf}_{bg}\bigr|^q\Bigr)^{1/q}

    The groups g are the K classes, or a single one of all entries. A group has :math:`n_g` entries, of which
    :math:`n_{bg}` lie in cell (bin) b, with mean prediction conf and frequency acc; q is 1 or 2. The outcome of an
    observation determines all of its entries, so that one draw serves every class and classes are tested jointly.

    Its conventions are those of the authors' code (robustness_metrics), which sometimes differ from those of the
    field: a group without entries counts 0 and is not left out; with ``max_prob`` and ``class_conditional`` every
    predicted class counts 1 / K, whatever its share; for the l2 norm squares are averaged over classes before the root
    is taken; values of exactly 1 have a separate cell, and with threshold 0 values of exactly 0 are dropped. `SCE`,
    `ACE`, `TACE`, `RMSCE` and `ClassConditionalECE` are members of this space in the usual definitions.

    It uses all columns as they are: behind a two-outcome lens the event and the rest, and with ``max_prob`` the larger
    of the two. Apply it to the whole prediction, not behind `Confidence`. Sample weights replace counts; they do not
    move the edges.

    Parameters
    ----------
    scheme : {"equal-width", "equal-mass"}
        Cells :math:`[j/L, (j+1)/L)`; or the same number of values in each, with edge r at the value of rank round(r n /
        L) and ties in one cell ("even" and "adaptive" in the paper).
    max_prob : bool
        Use the top prediction of each observation only.
    class_conditional : bool
        Average over separate cells of each class (each predicted class), or the same cells for all entries.
    threshold : float
        Predictions at or below are dropped; 0 or 0.01 in the paper.
    norm : {"l1", "l2"}
        The exponent q.
    n_cells : int
        Cells L of each class.

    Raises
    ------
    TypeError
        If a parameter has another type than the one above.
    ValueError
        If ``scheme`` or ``norm`` is unknown, ``threshold`` is negative or at least 1, or ``n_cells`` < 1.

    See Also
    --------
    SCE, ACE, TACE, RMSCE, ClassConditionalECE : Named members of this space.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4 and appendix C.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> adaptive = caltest.statistics.GCE("equal-mass", norm="l2")
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=adaptive), 10)
    0.011777551
    """

    words = "general calibration error"

    scheme: str = parameter("equal-width", one_of(*SCHEMES))
    max_prob: bool = parameter(False, validate_bool)
    class_conditional: bool = parameter(True, validate_bool)
    threshold: float = parameter(0.0, validate_share)
    norm: str = parameter("l1", one_of("l1", "l2"))
    n_cells: int = parameter(15, validate_count)

    @property
    def power(self) -> int:  # type: ignore[override]
        """The exponent of the gaps."""
        return int(self.norm[1])

    def layout(self, n_samples: int) -> Layout:
        """Return the layout, which both norms share."""
        cells = AuthorsCells(self.scheme, self.n_cells)
        return Layout(cells, self.max_prob, self.class_conditional, self.threshold)


@dataclass(frozen=True, repr=False)
class SCE(OverClasses):
    r"""Static calibration error (SCE), also class-wise or marginal ECE: the average of the ECE of all classes.

    .. math:: \frac1K \sum_{k=1}^K \sum_{b=1}^L \frac{n_{bk}}{n} \bigl|\mathrm{acc}_{bk} - \mathrm{conf}_{bk}\bigr|

    with cells (bins) of equal width of the probability of each class; all classes are tested jointly. Its target is the
    class-wise miscalibration averaged within cells. Most entries of sharp predictions are near 0, so that with many
    classes it is always small. All values count, those of exactly 0 and 1 in the end cells; `GCE` drops zeros and has
    a separate cell for 1, and ``GCE(class_conditional=False)`` has the same cells for all classes. Behind a two-outcome
    lens it is the average over the event and the rest.

    Parameters
    ----------
    n_cells : int
        Cells L of each class.
    average : {"mean", "sum"}
        Mean over the classes, or their sum as in some programs (ece-kde).
    closed : {"left", "right"}
        Which end of a cell belongs to it, as in `EqualWidth`.

    Raises
    ------
    TypeError
        If ``n_cells`` is not an integer, or ``average`` or ``closed`` is not a text.
    ValueError
        If ``n_cells`` < 1, or ``average`` or ``closed`` is unknown.

    See Also
    --------
    ACE : Cells of equal mass.
    ClasswiseKS : Largest error of a class, without cells.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.3.
    M. Kull et al. (2019), Beyond temperature scaling, NeurIPS.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.SCE()), 10)
    0.008836746
    """

    words = "average error of all classes"

    n_cells: int = parameter(15, validate_count)
    average: str = parameter("mean", one_of("mean", "sum"))
    closed: str = parameter("left", one_of("left", "right"))

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        cells = EqualWidth(self.n_cells, closed=self.closed)
        return Layout(cells, False, True, class_weight="equal" if self.average == "mean" else "sum")


@dataclass(frozen=True, repr=False)
class ACE(OverClasses):
    r"""Adaptive calibration error (ACE): the average gap over cells of equal mass of all classes.

    .. math:: \frac1{KL} \sum_{k=1}^K \sum_{b=1}^L \bigl|\mathrm{acc}_{bk} - \mathrm{conf}_{bk}\bigr|

    Cells (bins) are those of `EqualMass` with ties together; cells that ties leave empty add 0. Their sizes differ by
    one observation; the paper cuts at the multiples of :math:`\lfloor n / L \rfloor`, so that the last cell, of the
    largest predictions, holds up to L - 1 more (``scheme="equal-mass-floor"``). Three numbers have this name: this one;
    the same with cells weighted by their observations, ``cell_weight="observations"`` (nearly the authors' code); and
    the unweighted average over the occupied cells of equal width of the top prediction, ``ACE(scheme="equal-width",
    max_prob=True, cell_weight="occupied")`` (Neumann et al. 2018, netcal). Most cells of sharp predictions lie near 0,
    so that a large miscalibration of the others has little weight.

    Parameters
    ----------
    n_cells : int
        Cells L of each class.
    scheme : {"equal-mass", "equal-mass-floor", "equal-width"}
        How cells are cut: as `EqualMass`, as ``EqualMass(n_cells, cut="floor")`` or as `EqualWidth`.
    max_prob : bool
        Use the top prediction of each observation only, all classes in the same cells.
    cell_weight : {"cells", "observations", "occupied"}
        Weight of a cell: 1 / n_cells, its share of the observations, or the same for all occupied cells.

    Raises
    ------
    TypeError
        If a parameter has another type than the one above.
    ValueError
        If ``n_cells`` < 1, or ``scheme`` or ``cell_weight`` is unknown.

    See Also
    --------
    SCE : Cells of equal width, weighted by their observations.
    TACE : The same above a threshold.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.2.
    L. Neumann, A. Zisserman and A. Vedaldi (2018), Relaxed softmax, NeurIPS workshop.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.ACE()), 6)
    0.003896
    >>> paper = caltest.statistics.ACE(scheme="equal-mass-floor")
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=paper), 6)
    0.003857
    """

    words = "average error of all classes, adaptive cells"

    n_cells: int = parameter(15, validate_count)
    scheme: str = parameter("equal-mass", one_of(*_CUTS))
    max_prob: bool = parameter(False, validate_bool)
    cell_weight: str = parameter("cells", one_of(*_CELL_WEIGHTS))

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        cells = _CUTS[self.scheme](self.n_cells)
        return Layout(cells, self.max_prob, not self.max_prob, cell_weight=self.cell_weight)


@dataclass(frozen=True, repr=False)
class TACE(OverClasses):
    r"""Thresholded adaptive calibration error (TACE): `ACE` of the predictions above a threshold.

    The cells (bins) of each class contain only the predictions of this class above the threshold. The constructor of
    this name in the authors' code ignores its threshold and returns another number.

    Parameters
    ----------
    n_cells : int
        Cells of each class.
    threshold : float
        Predictions at or below are dropped.
    cell_weight : {"cells", "observations", "occupied"}
        As in `ACE`; a class with fewer predictions than cells leaves some of them empty, which add 0.
    scheme : {"equal-mass", "equal-mass-floor", "equal-width"}
        As in `ACE`.

    Raises
    ------
    TypeError
        If ``n_cells`` is not an integer, ``threshold`` not a number or ``cell_weight`` or ``scheme`` not a text.
    ValueError
        If ``n_cells`` < 1, ``threshold`` is negative or at least 1, or ``cell_weight`` or ``scheme`` is unknown.

    See Also
    --------
    ACE : The same without a threshold.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.5 and appendix A.1.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.TACE()), 6)
    0.051757
    """

    words = "average error of all classes above a threshold"

    n_cells: int = parameter(15, validate_count)
    threshold: float = parameter(0.01, validate_share)
    cell_weight: str = parameter("cells", one_of(*_CELL_WEIGHTS))
    scheme: str = parameter("equal-mass", one_of(*_CUTS))

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        cells = _CUTS[self.scheme](self.n_cells)
        return Layout(cells, False, True, self.threshold, cell_weight=self.cell_weight)


@dataclass(frozen=True, repr=False)
class RMSCE(OverClasses):
    r"""Root mean square calibration error (RMSCE) of the top prediction.

    .. math:: \Bigl(\sum_b \frac{n_b}{n} (\mathrm{acc}_b - \mathrm{conf}_b)^2\Bigr)^{1/2}

    over cells (bins) b of the confidence. Some programs return its square, which has the same p-value. Behind a
    two-outcome lens it uses the larger column: apply it to the whole prediction, not behind `Confidence`.

    Parameters
    ----------
    n_cells : int
        Number of cells.
    scheme : {"equal-mass", "equal-width"}
        How cells are cut: as `EqualMass` (Hendrycks, Nixon) or as `EqualWidth` (torchmetrics,
        which has a separate cell for exact ones, as ``GCE(max_prob=True, class_conditional=False, norm="l2")`` has).
    samples_per_cell : int, optional
        Cells of equal mass of about this many observations, whatever ``n_cells``; 100 in Hendrycks' code.

    Raises
    ------
    TypeError
        If ``n_cells`` or ``samples_per_cell`` is not an integer, or ``scheme`` is not a text.
    ValueError
        If ``n_cells`` or ``samples_per_cell`` < 1, if ``scheme`` is unknown, or if ``samples_per_cell`` comes with
        "equal-width".

    See Also
    --------
    SquaredL2 : Squared error without the bias of small samples.

    References
    ----------
    D. Hendrycks, M. Mazeika and T. Dietterich (2019), Deep anomaly detection with outlier exposure, ICLR.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.RMSCE(scheme="equal-width")), 10)
    0.0652795247
    """

    words = "root mean squared error in cells"

    n_cells: int = parameter(15, validate_count)
    scheme: str = parameter("equal-mass", one_of(*SCHEMES))
    samples_per_cell: int | None = None

    power = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples_per_cell is None:
            return
        validate_count(self.samples_per_cell, "samples_per_cell")
        require(self.scheme == "equal-mass", '`samples_per_cell` needs scheme="equal-mass"', self.scheme)

    def layout(self, n_samples: int) -> Layout:
        """Return the layout; the number of cells may depend on the number of observations."""
        n_cells = self.n_cells if self.samples_per_cell is None else max(1, round(n_samples / self.samples_per_cell))
        return Layout(_CUTS[self.scheme](n_cells), True, False)


@dataclass(frozen=True, repr=False)
class ClassConditionalECE(OverClasses):
    r"""Class-conditional ECE, also top-label ECE: the ECE of the confidence, averaged over the predicted classes.

    .. math:: \sum_{k=1}^K v_k \sum_b \frac{n_{bk}}{n_k} \bigl|\mathrm{acc}_{bk} - \mathrm{conf}_{bk}\bigr|

    over the :math:`n_k` observations whose top prediction is k, in cells (bins) of `EqualWidth`. Behind a two-outcome
    lens it uses the larger column: apply it to the whole prediction, not behind `Confidence`.

    Parameters
    ----------
    n_cells : int
        Cells of each class.
    class_weight : {"equal", "observations"}
        :math:`v_k = 1 / K` as in Nixon et al., where classes that are rarely predicted add mostly noise; or
        :math:`v_k = n_k / n` (Gupta & Ramdas 2022).

    Raises
    ------
    TypeError
        If ``n_cells`` is not an integer, or ``class_weight`` is not a text.
    ValueError
        If ``n_cells`` < 1, or ``class_weight`` is unknown.

    See Also
    --------
    SCE : Errors of all classes, not only of the predicted one.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.1 and appendix C.
    C. Gupta and A. Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.ClassConditionalECE()), 10)
    0.043162212
    """

    words = "average error given the class"

    n_cells: int = parameter(15, validate_count)
    class_weight: str = parameter("equal", one_of("equal", "observations"))

    def layout(self, n_samples: int) -> Layout:
        """Return the layout."""
        return Layout(EqualWidth(self.n_cells), True, True, class_weight=self.class_weight)
