"""All 32 general calibration errors of Nixon et al. (2019), on the same draws."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Unpack

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration_table_result import CalibrationTable
from caltest.hypothesis_tests._diagnostics import ask_together, stopping_of_tests
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import TableOptions
from caltest.results import TestResult
from caltest.results._description import Table
from caltest.statistics import GCE
from caltest.statistics._gce import SCHEMES

NAMES = {
    ("equal-width", True, True, False, "l1"): "class-conditional ECE",
    ("equal-width", True, False, False, "l1"): "ECE",
    ("equal-width", False, True, False, "l1"): "SCE",
    ("equal-mass", True, False, False, "l2"): "RMSCE",
    ("equal-mass", False, True, False, "l1"): "ACE",
    ("equal-mass", False, True, True, "l1"): "TACE",
}
"""What the paper calls some of them (appendix C): scheme, max_prob, class_conditional, thresholded, norm."""


def gce_metrics(threshold: float = 0.01, n_cells: int = 15) -> tuple[GCE, ...]:
    """Return the 32 metrics in the order of the paper, of which 16 drop predictions at or below the threshold."""
    return tuple(
        GCE(scheme, max_prob, class_conditional, cut, norm, n_cells)
        for scheme, max_prob, class_conditional, cut, norm in product(
            SCHEMES, (True, False), (True, False), (0.0, threshold), ("l1", "l2")
        )
    )


def gce_name(metric: GCE) -> str:
    """Return what the paper calls a metric; empty where it has no name."""
    return NAMES.get((metric.scheme, metric.max_prob, metric.class_conditional, metric.threshold > 0, metric.norm), "")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GCETable(CalibrationTable):
    """Result of `gce_table`; iterates over its tests.

    Attributes
    ----------
    tests : tuple of TestResult
        One test for each metric, each with its own p-value, in the order of the paper.
    pvalue : float
        Global p-value: exact min-p over the metrics, on the same draws. The metrics depend on each other closely, so
        that it has more power than Holm's correction.
    metrics : tuple of GCE
        The metric of each test.
    alpha, correction, notes
        As in `CalibrationTable`.

    See Also
    --------
    caltest.gce_table : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> table = caltest.gce_table(y_true, y_prob, n_resamples=699, rng=0)
    >>> len(table.tests), table.rejected
    (32, False)
    """

    metrics: tuple[GCE, ...]

    _kind: ClassVar[str] = "General calibration errors"
    _of_one_statistic: ClassVar[bool] = False
    _what: ClassVar[tuple[str, str]] = ("metric", "metrics")

    @property
    def names(self) -> tuple[str, ...]:
        """What the paper calls each metric; empty where it has no name."""
        return tuple(gce_name(metric) for metric in self.metrics)

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests: their metrics."""
        return tuple(map(str, self.metrics))

    def _record(self, number: int, test: TestResult) -> dict[str, Any]:
        metric = self.metrics[number]
        parameters = ("scheme", "max_prob", "class_conditional", "threshold", "norm")
        return {
            **{name: getattr(metric, name) for name in parameters},
            "name": self.names[number],
            "statistic": test.statistic,
            "noise_floor": test.noise_floor,
            "pvalue": test.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted[number],
        }

    def _sizes(self) -> list[str]:
        return super()._sizes()[:1]

    def _tables(self) -> list[Table]:
        """Return one table for cells of equal width and one for cells of equal mass."""
        columns = {"entries": "{entries}", "classes": "{classes}", "above": "{threshold:.4g}", "norm": "{norm}"}
        columns |= {"value": "{statistic:.3g}", "calibrated": "{noise_floor:.3g}", "p": "{pvalue:p}"}
        columns |= {self._adjusted_name: "{pvalue_adjusted:p}", "name": "{name}"}
        rows: dict[str, list[dict[str, Any]]] = {scheme: [] for scheme in SCHEMES}
        for number, (metric, test) in enumerate(zip(self.metrics, self.tests, strict=True)):
            kind = {
                "entries": "top" if metric.max_prob else "all",
                "classes": "each" if metric.class_conditional else "together",
                "name": gce_name(metric).replace("class-conditional ", "CC-"),
            }
            rows[metric.scheme].append(self._record(number, test) | kind)
        return [Table.of(part, columns, left=("classes", "name")) for part in rows.values()]

    def _remarks(self) -> list[str]:
        meaning = (
            "The first table has cells (bins) of equal width, the second of equal mass. Column calibrated: average "
            "value if the model is calibrated. CC-ECE is the class-conditional ECE."
        )
        return [meaning, *self._sources(), *self._conditions()]


@reads_arguments
def gce_table(
    y_true: ArrayLike, y_prob: ArrayLike, *, threshold: float = 0.01, n_cells: int = 15, **options: Unpack[TableOptions]
) -> GCETable:
    """Compute all 32 general calibration errors of Nixon et al. (2019) with noise floors and p-values.

    The paper shows that the metrics rank models differently. The table shows how far each of them is from its average
    value if the model were calibrated. The class of every observation is simulated from the whole prediction, and the
    same draws serve all 32 metrics. Their p-values are exact, and so is the global one.

    Parameters
    ----------
    threshold : float
        The threshold of the 16 thresholded metrics; the others have 0, which drops predictions of exactly 0.
    n_cells : int
        Cells (bins) of each class.
    region : callable, optional
        From predictions ``(n_samples, n_classes)`` to booleans ``(n_samples,)``; observations outside are left out.
    n_resamples : int, optional
        Number of draws, all of which are made. By default 9,999; and for more than 5,000,000 predicted probabilities
        (observations times classes) at most 999, or as many as Holm's correction needs, which stop after 100
        exceedances.
    n_exceedances : int, optional
        Number of draws at least as extreme as the observed data after which the draws of a test stop, as in
        `calibration_test`. Every test, and the global p-value, stops separately; the draws end with the last one.

    Returns
    -------
    GCETable
        Prints as a table; ``to_frame()`` for pandas.

    Raises
    ------
    TypeError
        If ``region`` is no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``threshold`` is no number from 0 to 1; if ``region`` holds no observation; if ``n_cells``,
        ``n_resamples`` or ``n_exceedances`` < 1, or ``alpha`` is not strictly between 0 and 1.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if no Holm-adjusted p-value can reach ``alpha`` with this number of draws; if
        observations are resampled and cells (bins) hold few of them.

    See Also
    --------
    calibration_report : Statistics of different kinds.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, appendix C.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> table = caltest.gce_table(y_true, y_prob, n_resamples=999, rng=0)
    >>> sce = table[table.names.index("SCE")]
    >>> round(sce.statistic, 10), sce.pvalue
    (0.008836746, 0.001)
    """
    metrics = gce_metrics(threshold, n_cells)
    null = options["resampling"]
    about: Any = {name: options[name] for name in ("classes", "region", "sample_weight", "groups")}
    sample = null.under_null(make_sample(y_true, y_prob, **about))
    stopping = stopping_of_tests(len(metrics), options, sample.given.size)
    view, looks = LensView(sample), [Canonical()] * len(metrics)
    questions = [Question(metric, view) for metric in metrics]
    tests = ask_together(questions, sample, null, looks, stopping=stopping, options=options)
    return GCETable(**tests, metrics=metrics)
