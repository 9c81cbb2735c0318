"""All 32 general calibration errors of Nixon et al. (2019) on one set of draws."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import conclude
from caltest.hypothesis_tests._calibration_table import CalibrationTable, global_pvalue
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._sample import make_sample
from caltest.predictions._validation import SeedLike
from caltest.resampling._schemes import Consistency
from caltest.statistics import GCE
from caltest.statistics._base import joint_null
from caltest.statistics._gce import SCHEMES

if TYPE_CHECKING:
    import pandas as pd

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


@dataclass(frozen=True, eq=False)
class GCETable(CalibrationTable):
    """Result of `gce_table`.

    Attributes
    ----------
    rows : tuple of CalibrationTestResult
        One test per metric, each with its own exact p-value, in the order of the paper.
    pvalue : float
        Global p-value: exact min-p over the metrics, on the same draws. The metrics depend on each other closely, so
        that it has more power than Holm's correction.
    metrics : tuple of GCE
        The metric of each row.
    """

    metrics: tuple[GCE, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the paper calls each metric; empty where it has no name."""
        return tuple(gce_name(metric) for metric in self.metrics)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know beyond the numbers, each once."""
        return tuple(dict.fromkeys(super().notes))

    def to_frame(self) -> pd.DataFrame:
        """Return parameters, name, statistic, noise floor, p-value and corrected p-value of every row."""
        import pandas as pd

        parameters = ("scheme", "max_prob", "class_conditional", "threshold", "norm")
        frame = pd.DataFrame([{name: getattr(metric, name) for name in parameters} for metric in self.metrics])
        values = {name: [getattr(row, name) for row in self.rows] for name in ("statistic", "noise_floor", "pvalue")}
        return frame.assign(name=self.names, **values, pvalue_corrected=self.pvalue_corrected)

    def __str__(self) -> str:
        head = f"{'scheme':<12} {'entries':<8} {'classes':<9} {'above':>6} {'norm':>5}"
        lines = [f"{head} {'statistic':>10} {'noise floor':>12} {'p-value':>9} {'p (Holm)':>9}  name"]
        for metric, row, corrected, name in zip(
            self.metrics, self.rows, self.pvalue_corrected, self.names, strict=True
        ):
            entries, classes = "top" if metric.max_prob else "all", "each" if metric.class_conditional else "together"
            cut = f"{metric.scheme:<12} {entries:<8} {classes:<9} {metric.threshold:>6.4g} {metric.norm:>5}"
            values = f"{row.statistic:>10.4g} {row.noise_floor:>12.4g} {row.pvalue:>9.4g} {corrected:>9.4g}"
            lines.append(f"{cut} {values}  {name}".rstrip())
        lines += ["", f"global p-value (min-p over the rows, same draws): {self.pvalue:.4g}"]
        for words in (self.conclusion, *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, subsequent_indent="  ")
        return "\n".join(lines)


def gce_table(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    threshold: float = 0.01,
    n_cells: int = 15,
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
    progress: Callable[[int, int], None] | None = None,
) -> GCETable:
    """Return all 32 general calibration errors of Nixon et al. (2019) with noise floors and p-values.

    The paper shows that the metrics rank models differently; the table shows how far each of them is from what a
    perfect model would show on these predictions. The class of every row is drawn from the whole prediction, and one
    set of draws serves all 32 metrics: their p-values are exact, and so is the global one.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    threshold : float
        The threshold of the 16 thresholded metrics; the others have 0, which drops predictions of exactly 0.
    n_cells : int
        Cells of each class.
    n_resamples : int
        Number of draws; the smallest attainable p-value is 1 / (n_resamples + 1).
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    progress : callable, optional
        Called with the number of finished draws and their total.

    Returns
    -------
    GCETable
        Prints as a table; ``to_frame()`` for pandas.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, appendix C.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> table = caltest.gce_table(y_true, y_prob, n_resamples=99, rng=0)
    >>> sce = table.rows[table.names.index("SCE")]
    >>> round(sce.statistic, 10), sce.pvalue
    (0.008836746, 0.01)
    """
    metrics = gce_metrics(threshold, n_cells)
    sample = make_sample(y_true, y_prob, classes=classes)
    scheme = Consistency()
    draws = scheme.draws(n_resamples, rng)
    observed = np.array([[float(metric.evaluate(sample, sample.outcome))] for metric in metrics])
    null = draws.map(lambda part: joint_null(metrics, sample, part)[:, None], workers, progress)
    rows = tuple(
        conclude(metric, sample, value, drawn, resampling=scheme, lens=lens_text(None, classes), draws=draws)
        for metric, value, drawn in zip(metrics, observed, null, strict=True)
    )
    return GCETable(rows, global_pvalue([sample] * len(metrics), observed, null), metrics)
