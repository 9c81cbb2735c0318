"""One stated set of calibration errors and tests on one set of draws."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import conclude
from caltest.hypothesis_tests._calibration_table import CalibrationTable, Item, View, global_pvalue, shared_null
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Canonical, Confidence, Lens
from caltest.predictions._partitions import EqualWidth
from caltest.predictions._sample import induce
from caltest.predictions._validation import SeedLike, validate_count, validate_problem
from caltest.resampling._pvalues import evaluate_components
from caltest.resampling._schemes import Consistency
from caltest.statistics import ECE, KS, SCE, SKCE, Kuiper, Spiegelhalter, TCal

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CalibrationReport(CalibrationTable):
    """Result of `calibration_report`.

    Attributes
    ----------
    rows : tuple of CalibrationTestResult
        One test for each statistic, with its own exact p-value.
    pvalue : float
        Global p-value: exact min-p over the rows that share all draws, that is all but `SKCE`.
    """

    def to_frame(self) -> pd.DataFrame:
        """Return name, lens, statistic, noise floor, p-value and corrected p-value of every row as a pandas frame."""
        import pandas as pd

        names = ("name", "lens", "statistic", "noise_floor", "pvalue", "n_resamples")
        frame = pd.DataFrame([{name: getattr(row, name) for name in names} for row in self.rows])
        return frame.assign(pvalue_corrected=self.pvalue_corrected)

    def __str__(self) -> str:
        names = [row.name for row in self.rows]
        width, wide = max(map(len, names)), max(len(row.lens) for row in self.rows)
        head = f"{'':<{width}} {'lens':<{wide}} {'statistic':>10} {'noise floor':>12} {'p-value':>9} {'p (Holm)':>9}"
        lines = [head]
        for name, row, corrected in zip(names, self.rows, self.pvalue_corrected, strict=True):
            values = f"{row.statistic:>10.4g} {row.noise_floor:>12.4g} {row.pvalue:>9.4g} {corrected:>9.4g}"
            lines.append(f"{name:<{width}} {row.lens:<{wide}} {values}")
        drawn = sorted({row.n_resamples for row in self.rows}, reverse=True)
        fewer = f", {drawn[-1]} for SKCE" if len(drawn) > 1 else ""
        lines += [
            "",
            f"{drawn[0]} redraws of the outcomes{fewer}, predictions fixed (valid at every sample size)",
            f"global p-value (min-p over the rows but SKCE, same draws): {self.pvalue:.4g}",
        ]
        for words in (self.conclusion, *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, subsequent_indent="  ")
        return "\n".join(lines)


def calibration_report(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    n_resamples: int = 999,
    n_kernel_resamples: int = 199,
    workers: int = 1,
    rng: SeedLike = None,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationReport:
    r"""Test calibration by a stated set of statistics of the literature, predictions fixed.

    ===============================  ==========================================================
    whole prediction                 `ECE` over the variance tree, `SCE`, `SKCE`, `Spiegelhalter`
    top prediction (two classes:     `ECE` with 15 equal-width cells, `KS`, `Kuiper`, `TCal`
    the event)
    ===============================  ==========================================================

    The class of every row is drawn from the whole prediction and serves all rows of the report. Every p-value is exact
    under its own hypothesis, Holm's correction over the rows needs no assumption. It is an overview: the test to decide
    by is `calibration_test`, chosen beforehand.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    n_resamples : int
        Number of draws.
    n_kernel_resamples : int
        Number of these draws that `SKCE`, whose cost grows with the square of the rows, is evaluated on.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    progress : callable, optional
        Called with the number of finished draws and their total.

    Returns
    -------
    CalibrationReport
        Prints as a table; ``to_frame()`` for pandas.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> report = caltest.calibration_report(y_true[:500], y_prob[:500], n_resamples=99, n_kernel_resamples=19, rng=0)
    >>> [row.name.partition("(")[0] for row in report]
    ['ECE', 'ECE', 'SCE', 'KS', 'Kuiper', 'SKCE', 'Spiegelhalter', 'TCal']
    >>> report.pvalue
    0.01
    """
    prob, outcome = validate_problem(y_true, y_prob, classes)
    base = induce(prob, outcome)
    whole, top = Canonical(), Canonical() if prob.shape[1] == 2 else Confidence()
    views = {lens: View.of(lens, prob, outcome, base) for lens in dict.fromkeys((whole, top))}
    items = [
        _Row(views[lens], statistic.settle(views[lens].sample), lens)
        for lens, statistic in (
            (whole, ECE()),
            (top, ECE(EqualWidth(15))),
            (whole, SCE()),
            (top, KS()),
            (top, Kuiper()),
            (whole, SKCE()),
            (whole, Spiegelhalter()),
            (top, TCal()),
        )
    ]
    scheme = Consistency()
    draws = scheme.draws(n_resamples, rng)
    few = draws.slices(validate_count(n_kernel_resamples, "n_kernel_resamples"))[0]
    sharing = [item for item in items if not isinstance(item.statistic, SKCE)]
    observed = {item: evaluate_components(item.statistic, item.view.sample) for item in items}
    null = dict(zip(sharing, shared_null(sharing, base, draws, workers, progress), strict=True))
    rows = []
    for item in items:
        own = draws
        if item not in null:
            own, null[item] = few, shared_null([item], base, few, workers)[0]
        lens, sample = lens_text(item.lens, classes), item.view.sample
        rows.append(
            conclude(item.statistic, sample, observed[item], null[item], resampling=scheme, lens=lens, draws=own)
        )
    samples = [item.view.sample for item in sharing]
    pvalue = global_pvalue(samples, [observed[item] for item in sharing], [null[item] for item in sharing])
    return CalibrationReport(tuple(rows), pvalue)


@dataclass(frozen=True, eq=False)
class _Row(Item):
    """A statistic and what it looks at, by name."""

    lens: Lens
