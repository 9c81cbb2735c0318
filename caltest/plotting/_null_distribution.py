"""Null distributions and observed values: of one test, and of the classes of a table as histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.hypothesis_tests._calibration_table_result import CalibrationTable
from caltest.plotting._axes import (
    BAR,
    DENSITY,
    FINDING,
    POINT,
    add_legend,
    in_one_look,
    legend_below,
    literal,
    require,
    single,
    wrapped,
)
from caltest.plotting._heading import first_sentence, head_figure, what_is_shown
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count
from caltest.results._component_result import ComponentResult
from caltest.results._decision import equate_pvalue, rejects
from caltest.results._description import counted
from caltest.results._distribution import TIE_TOLERANCE
from caltest.results._naming import describe
from caltest.results._test_result import TestResult
from caltest.statistics._base import quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWN, _COMPUTED = 50, 20  # columns; those of an exact distribution take longer to compute
_LEFT_OUT = 0.002  # probability on either side of a computed distribution
_FEW = 30  # values; so many have a column each
_ROOM = 0.6  # of the width of the distribution: an observed value beyond it is an arrow at the edge
_OF_CLASSES = "Is the error of any class more than chance?"
_ALPHA = 0.05  # level of a finding of a statistic alone


@in_one_look
def plot_null_distribution(result: ComponentResult, ax: Any = None) -> Any:
    """Plot the null distribution of a test statistic with the observed value and its p-value.

    The columns are the share of simulated data sets, or the exact or limit probability, in intervals of the statistic.
    Values at least as extreme as the observed one are darker, and orange if calibration is rejected: they are the
    p-value. An observed value far beyond the distribution is an arrow at the edge. A combination of statistics has a
    panel for each, with p-values that are not adjusted. What was found stands above.

    Parameters
    ----------
    result : TestResult or ComponentResult
        From `caltest.calibration_test` or a classical test, or one of the ``components`` of a result.
    ax : matplotlib.axes.Axes or array of them, optional
        What to draw into, one for each component; new axes by default.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        What was drawn into; an array for a combination.

    Raises
    ------
    TypeError
        If ``result`` is not the result of a test.
    ValueError
        If the null distribution is not known; if ``ax`` has another number of axes than
        there are components.

    See Also
    --------
    caltest.noise_floor : The null distribution, without labels.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, statistic=caltest.KS(), lens=caltest.Confidence())
    >>> ax = result.plot()
    >>> ax.get_xlabel()
    'largest cumulative error'
    """
    require(result, ComponentResult, "result", "calibration_test")
    parts = result.components if isinstance(result, TestResult) else (result,)
    if isinstance(result, TestResult) and result.folds:
        refuse("`result` has no null distribution of all folds; plot one of its `folds`.")
    if any(part.null is None for part in parts):
        refuse(f"`result` must have a null distribution, which is not known for {describe(result.test_statistic)}.")
    method = result.method if isinstance(result, TestResult) else ""
    findings = _findings(result, parts)
    panel = (6.0, 4.6) if len(parts) == 1 else (4.0, 3.2)
    axes = wrapped(None if ax is None else np.atleast_1d(ax), len(parts), 3, panel, 0.4, sharey=False)
    words = quantities([part.test_statistic for part in parts])
    for each, part, quantity, is_finding in zip(axes, parts, words, findings, strict=True):
        said = _draw(part, each, quantity, bound=method == "upper-bound", finding=is_finding)
        each.set_title(literal(said))
    caption = ""
    if len(parts) == 1 and isinstance(result, TestResult):
        caption = f"{what_is_shown([result])}{_in_time(result)}; {said}"
        axes[0].set_title(literal(first_sentence(result.verdict)))
    elif ax is None and isinstance(result, TestResult):
        caption = f"{what_is_shown([result])}{_in_time(result)}"
        head_figure(axes[0].figure, first_sentence(result.verdict))
    add_legend(axes, new=ax is None, caption=caption)
    return axes[0] if len(parts) == 1 else axes


@in_one_look
def plot_class_histogram(table: CalibrationTable, ax: Axes | None = None, *, n_columns: int = 25) -> Axes:
    """Plot the histogram of a statistic over the classes, before what it would be if the model were calibrated.

    The area behind is the expected number of classes in each column if the model is calibrated, from the simulated
    labels of all classes: errors differ between classes by chance too (Nixon et al. 2019, figure 1). Classes whose
    error is more than chance, after the correction of the table, are orange.

    Parameters
    ----------
    table : CalibrationTable
        From `caltest.calibration_table`, with two classes or more; tests through other lenses are left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default.
    n_columns : int
        Number of columns of the histograms.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``table`` is not a `CalibrationTable`, or ``n_columns`` not an integer.
    ValueError
        If ``table`` has fewer than two tests of classes by one statistic with simulated labels, or ``n_columns`` < 1.

    See Also
    --------
    caltest.statistics.Classwise : Mean or maximum over the classes, tested jointly.

    Examples
    --------
    The adaptive calibration error (ACE) of each class:

    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> table = caltest.calibration_table(
    ...     y_true, y_prob, lenses=[caltest.ClassWise(k) for k in range(10)],
    ...     statistic=caltest.ECE(caltest.EqualMass(15)), n_resamples=299, rng=0)
    >>> caltest.plotting.plot_class_histogram(table).get_title()
    'Calibration is rejected in 10 of 10 classes.'
    """
    require(table, CalibrationTable, "table", "calibration_table")
    validate_count(n_columns, "n_columns")
    places = list(table.of_classes)
    if len(places) < 2:
        refuse("`table` must hold tests of two classes or more by one statistic, with simulated labels.")
    tests = [table.tests[place] for place in places]
    values = np.array([test.statistic for test in tests])
    drawn = np.concatenate([test.null_distribution for test in tests])
    drawn = drawn[np.isfinite(drawn)]
    high = max(values[np.isfinite(values)].max(initial=0.0), np.quantile(drawn, 1 - _LEFT_OUT))
    edges = np.linspace(min(values.min(), drawn.min()), high, n_columns + 1)
    expected = np.histogram(np.minimum(drawn, high), edges)[0] * (len(tests) / len(drawn))
    found = np.asarray(rejects(table.pvalue_adjusted[places], table.alpha))
    ax = single(ax, (6.0, 4.2))
    ax.stairs(expected, edges, fill=True, color=DENSITY, label="expected if calibrated")
    below = np.zeros(n_columns)
    for chosen, color, label in ((~found, BAR, "no more than chance"), (found, FINDING, "more than chance")):
        if chosen.any():
            height = np.histogram(np.minimum(values[chosen], high), edges)[0]
            place = edges[:-1] + 0.1 * np.diff(edges), height, 0.8 * np.diff(edges)
            ax.bar(*place, bottom=below, align="edge", color=color, label=label)
            below = below + height
    quantity = quantities([tests[0].test_statistic])[0]
    ax.set(ylim=(0, None), xlabel=literal(quantity), ylabel="number of classes")
    number = int(found.sum())
    said = f"Calibration is rejected in {number} of {len(tests)} classes." if number else _OF_CLASSES
    ax.set_title(literal(said))
    legend_below(ax, caption=f"{counted(tests[0].n_samples)}{_in_time(tests[0])}, each class against the rest")
    return ax


def _in_time(result: TestResult) -> str:
    """Return that simulated labels depend on each other in time, as those of the data do; empty if they do not."""
    return "; simulated labels share shocks of time" if result._in_time else ""


def _findings(result: ComponentResult, parts: Sequence[ComponentResult]) -> list[bool]:
    """Return which parts are findings: none without a rejection, else the smallest p-value and what Bonferroni adds."""
    pvalues = np.array([part.pvalue for part in parts])
    if not isinstance(result, TestResult):
        return [bool(rejects(pvalue, _ALPHA)) for pvalue in pvalues]
    named = rejects(len(parts) * pvalues, result.alpha) | (pvalues == pvalues.min())
    return [bool(result.rejected and each) for each in named]


def _draw(part: ComponentResult, ax: Axes, quantity: str, *, bound: bool, finding: bool) -> str:
    """Draw one distribution, its upper tail and the observed value, and return the numbers."""
    columns = _columns(part)
    low, high = columns.left[0], (columns.left + columns.width)[-1]
    room = _ROOM * (high - low)
    for chosen, color, label in (
        (~columns.extreme, DENSITY, "under the null hypothesis"),
        (columns.extreme, FINDING if finding else BAR, "at least as extreme"),
    ):
        if chosen.any():
            place = columns.left[chosen], columns.height[chosen], columns.width[chosen]
            ax.bar(*place, align="edge", color=color, label=label)
    label = "observed"
    if low - room <= part.statistic <= high + room:
        ax.axvline(part.statistic, color=POINT, linewidth=1.5, label=label)
    else:
        right = part.statistic > high
        edge = high + room / 2 if right else low - room / 2
        ax.set_xlim(min(low, edge), max(high, edge))
        look: dict[str, Any] = {"linestyle": "none", "color": POINT, "markersize": 8, "clip_on": False}
        ax.plot([edge], [columns.height.max() / 2], marker=">" if right else "<", label=label, **look)
    ax.locator_params(axis="x", nbins=4)  # long numbers stay apart in three panels
    ax.set(ylim=(0, None), xlabel=literal(quantity), ylabel="probability")
    return _in_words(part, bound=bound)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns ``(n,)``: left ends, widths and probabilities, and whether they are as extreme as the observed value."""

    left: Floats
    width: Floats
    height: Floats
    extreme: Booleans


def _columns(part: ComponentResult) -> _Columns:
    """Return the columns; one begins at the observed value, so that the p-value is the sum of what is as extreme."""
    drawn, observed = part.null_distribution, part.statistic
    if drawn is None:
        null = part.null
        edges = _edges(null.quantile(_LEFT_OUT), null.quantile(1 - _LEFT_OUT), observed, _COMPUTED)
        height = np.maximum(-np.diff([null.sf(edge) for edge in edges]), 0.0)
        return _Columns(edges[:-1], np.diff(edges), height, edges[:-1] >= observed - 1e-9 * (edges[1] - edges[0]))
    values, count = np.unique(drawn[np.isfinite(drawn)], return_counts=True)
    if not values.size:
        values, count = np.zeros(1), np.zeros(1, dtype=np.int64)
    slack = TIE_TOLERANCE * max(np.abs(values).max(), abs(observed) if np.isfinite(observed) else 0.0)
    if values.size <= _FEW:  # a narrow column for each
        width = 0.5 * np.diff(values).min() if values.size > 1 else 0.1
        return _Columns(values - width / 2, np.full(values.size, width), count / len(drawn), values >= observed - slack)
    edges = _edges(values[0], values[-1], observed - slack, _DRAWN)
    height = np.histogram(values, edges, weights=count)[0] / len(drawn)
    return _Columns(edges[:-1], np.diff(edges), height, edges[:-1] >= observed - slack - 1e-9 * (edges[1] - edges[0]))


def _edges(low: float, high: float, observed: float, n_columns: int) -> Floats:
    """Return the ends of columns of one width that cover both numbers; one is the observed value if it is between."""
    width = (high - low) / n_columns or 1.0
    first = observed - width * np.ceil((observed - low) / width) if low < observed < high else low
    return first + width * np.arange(np.ceil((high - first) / width + 1e-9) + 1)


def _in_words(part: ComponentResult, *, bound: bool) -> str:
    """Return the observed value, the p-value, and what it counts."""
    said = f"observed {part.statistic:.4g}, {equate_pvalue(part.pvalue, bound=bound)}"
    drawn = part.null_distribution
    if drawn is None or (part.pvalue == 1 and np.min(drawn) < part.statistic):  # data that decide nothing have p = 1
        return said
    hits = round(part.pvalue * (len(drawn) + 1)) - 1
    count = "none" if hits <= 0 else f"{hits:,}"
    return f"{said}: {count} of {len(drawn):,} simulated data sets {'is' if hits <= 1 else 'are'} at least as extreme"
