"""Is the model calibrated within every subgroup of the data? One test each, on the same draws, and all at once."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._calibration import conclude, validate_statistic
from caltest.hypothesis_tests._calibration_table import LEVEL, CalibrationTable, Item, View, global_pvalue, shared_null
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Canonical, Lens
from caltest.predictions._sample import induce
from caltest.predictions._validation import SeedLike, validate_choice, validate_problem
from caltest.resampling._multiple_testing import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, correct_pvalues
from caltest.resampling._pvalues import evaluate_components
from caltest.resampling._schemes import Consistency
from caltest.results import CalibrationWarning
from caltest.statistics import Omnibus, Statistic

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SubgroupTests(CalibrationTable):
    """Result of `subgroup_tests`.

    Attributes
    ----------
    rows : tuple of CalibrationTestResult
        One test per subgroup, each with its own exact p-value.
    pvalue : float
        Joint p-value of "calibrated within every subgroup": exact min-p over the subgroups, on the same draws.
    subgroups : tuple of str
        Name of each subgroup.
    correction : str
        How the p-values of the subgroups are corrected.
    """

    subgroups: tuple[str, ...]
    correction: str

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells the rows apart: the subgroups."""
        return self.subgroups

    @cached_property
    def pvalue_corrected(self) -> NDArray[np.float64]:
        """P-values corrected over the subgroups, ``(n_subgroups,)``."""
        return correct_pvalues([row.pvalue for row in self.rows], self.correction)

    @property
    def conclusion(self) -> str:
        """What the tests say, in one sentence."""
        found = [label for label, p in zip(self.subgroups, self.pvalue_corrected, strict=True) if p <= LEVEL]
        after = f"at {LEVEL:.0%}, corrected over {len(self.rows)} subgroups ({self.correction})"
        where = f"rejected {after}: {', '.join(found)}" if found else f"no single subgroup is rejected {after}"
        if self.pvalue > LEVEL:
            return f"No evidence against calibration within subgroups (joint p-value {self.pvalue:.4g}); {where}."
        return f"The model is not calibrated within every subgroup (joint p-value {self.pvalue:.4g}); {where}."

    def to_dict(self) -> dict[str, Any]:
        """Return subgroups, corrected p-values, joint p-value and conclusion as plain objects, ready for JSON."""
        content = {**super().to_dict(), "correction": self.correction}
        named = zip(self.subgroups, content["rows"], strict=True)
        return {**content, "rows": [{"subgroup": label, **row} for label, row in named]}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per subgroup as a pandas frame."""
        import pandas as pd

        names = ("n_samples", "statistic", "noise_floor", "pvalue", "direction")
        frame = pd.DataFrame({name: [getattr(row, name) for row in self.rows] for name in names}, dtype=object)
        frame.insert(0, "subgroup", self.subgroups)
        return frame.infer_objects().assign(pvalue_corrected=self.pvalue_corrected)

    def __str__(self) -> str:
        width = max(len("subgroup"), *map(len, self.subgroups))
        lines = [
            f"Tests of calibration within subgroups: {self.rows[0].name} through {self.rows[0].lens}",
            f"{'subgroup':<{width}} {'rows':>8} {'statistic':>10} {'noise floor':>12} {'p-value':>9} {'corrected':>9}",
        ]
        for label, row, corrected in zip(self.subgroups, self.rows, self.pvalue_corrected, strict=True):
            values = f"{row.statistic:>10.4g} {row.noise_floor:>12.4g} {row.pvalue:>9.4g} {corrected:>9.4g}"
            lines.append(f"{label:<{width}} {row.n_samples:>8} {values}  {row.direction or ''}".rstrip())
        if len(self.rows[0].components) > 1:
            lines.append("statistic: -log10 of the smallest p-value of the combined statistics")
        lines.append(f"joint p-value (min-p over the subgroups, same draws): {self.pvalue:.4g}")
        for words in (self.conclusion, *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, subsequent_indent="  ")
        return "\n".join(lines)


def subgroup_tests(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    subgroup: Any,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    correction: str = "holm",
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> SubgroupTests:
    r"""Test calibration within subgroups of the data, predictions and subgroups fixed.

    The hypothesis is :math:`P(Y = \cdot \mid g(X), X \in S_j) = g(X)` through the lens, within every subgroup
    :math:`S_j`: more than calibration of all rows together, where subgroups that err in opposite directions may
    cancel. Outcomes are drawn for all rows at once, and every subgroup sees its rows of every draw, so that subgroups
    may overlap. Each p-value is exact, whatever the size of the subgroup (a small one just has little power); the joint
    p-value ranks the smallest of the subgroups' p-values among those of the draws, and is exact too.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    subgroup : array-like of shape (n_samples,) or (n_samples, n_columns), or data frame
        The subgroup of every row: labels of any type. With several columns, the levels of each column are subgroups.
        They must depend on predictions or covariates, never on outcomes.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        ``Omnibus()`` by default.
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
        Over the subgroups, by ``statsmodels.stats.multitest``. Subgroups of one column share no row and are independent
        given the predictions; those of several columns overlap, and only the first two hold.
    n_resamples : int
        Number of draws.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    SubgroupTests
        Prints as a table.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or a label is missing.

    Warns
    -----
    CalibrationWarning
        If every subgroup holds rows of one class only: subgroups must not be made of labels.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3: the p-value.
    P. H. Westfall and S. S. Young (1993), Resampling-based multiple testing, Wiley: the joint p-value.

    Examples
    --------
    Predictions are too low in one half and too high in the other; together they look calibrated:

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob, site = rng.uniform(0.2, 0.8, 2000), np.repeat(["north", "south"], 1000)
    >>> y_true = rng.random(2000) < y_prob + np.where(site == "north", 0.08, -0.08)
    >>> caltest.calibration_test(y_true, y_prob, n_resamples=999, rng=0).pvalue > 0.05
    True
    >>> tests = caltest.subgroup_tests(y_true, y_prob, subgroup=site, n_resamples=999, rng=0)
    >>> tests.subgroups, tests.pvalue_corrected.tolist(), tests.pvalue
    (('north', 'south'), [0.002, 0.002], 0.001)
    """
    prob, outcome = validate_problem(y_true, y_prob, classes)
    names, members, overlap = _validate_subgroup(subgroup, len(prob))
    _warn_of_labels(members, outcome)
    validate_choice(correction, "correction", UNDER_ANY_DEPENDENCE + (() if overlap else UNDER_INDEPENDENCE))
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    look = Canonical() if lens is None else lens
    base = induce(prob, outcome)
    whole = View.of(look, prob, outcome, base)
    views = [whole.take(np.flatnonzero(inside[whole.sample.row])) for inside in members]
    items = [Item(view, chosen.settle(view.sample)) for view in views]
    scheme = Consistency()
    draws = scheme.draws(n_resamples, rng)
    observed = [evaluate_components(item.statistic, item.view.sample) for item in items]
    null = shared_null(items, base, draws, workers)
    seen = lens_text(lens, classes)
    rows = tuple(
        conclude(item.statistic, item.view.sample, values, drawn, resampling=scheme, lens=seen, draws=draws)
        for item, values, drawn in zip(items, observed, null, strict=True)
    )
    pvalue = global_pvalue([view.sample for view in views], observed, null)
    return SubgroupTests(rows, pvalue, tuple(names), correction)


def _warn_of_labels(members: Sequence[NDArray[np.bool_]], outcome: NDArray[np.int64]) -> None:
    """Warn if the subgroups tell every label: they must depend on predictions and covariates only."""
    several = [outcome[inside] for inside in members if np.count_nonzero(inside) > 1]
    if several and len(np.unique(outcome)) > 1 and all((labels == labels[0]).all() for labels in several):
        msg = "every subgroup holds rows of one class only; if `subgroup` was made of labels, no p-value is valid."
        warnings.warn(msg, CalibrationWarning, stacklevel=3)


def _validate_subgroup(subgroup: Any, n_samples: int) -> tuple[list[str], list[NDArray[np.bool_]], bool]:
    """Return the name of each subgroup, which rows it holds, and whether subgroups may overlap."""
    columns = _columns(subgroup)
    names, members = [], []
    for name, values in columns.items():
        if len(values) != n_samples:
            msg = f"`subgroup` must have a label for each of the {n_samples} rows, got {len(values)}."
            raise ValueError(msg)
        levels, code = _levels(values)
        names += [f"{name}={level}" if name else str(level) for level in levels]
        members += [code == k for k in range(len(levels))]
    return names, members, len(columns) > 1


def _columns(subgroup: Any) -> dict[str, Any]:
    """Return the columns of a frame or of an array, by name; a single column of an array has none."""
    if hasattr(subgroup, "columns"):
        names = list(subgroup.columns)
        if len(set(names)) < len(names):
            msg = f"`subgroup` must have columns of different names, got {names}."
            raise ValueError(msg)
        columns = {str(name): subgroup[name] for name in names}
    elif hasattr(subgroup, "dtype") and not isinstance(subgroup, np.ndarray):  # a series, or categories
        columns = {"": subgroup}
    else:
        array = subgroup if isinstance(subgroup, np.ndarray) else np.asarray(subgroup, dtype=object)
        if array.ndim not in {1, 2} or np.ma.is_masked(array):
            msg = (
                f"`subgroup` must have shape (n_samples,) or (n_samples, n_columns), without masked values, "
                f"got {array.shape}."
            )
            raise ValueError(msg)
        columns = {"": array} if array.ndim == 1 else {str(k): column for k, column in enumerate(array.T)}
    if not columns:
        msg = "`subgroup` must have at least one column, got none."
        raise ValueError(msg)
    return columns


def _levels(values: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the levels that occur and the level of each row; categories keep their order, others are sorted."""
    import pandas as pd

    plain = values if type(values).__module__.startswith(("pandas", "numpy")) else list(values)
    try:
        labels = pd.Categorical(plain).remove_unused_categories()
    except TypeError as error:  # not hashable
        msg = f"`subgroup` must hold labels such as strings or numbers: {error}."
        raise ValueError(msg) from None
    code = np.asarray(labels.codes, dtype=np.int64)
    missing = np.flatnonzero(code < 0)
    if missing.size:
        msg = f"`subgroup` must have a label in every row, got {list(values)[missing[0]]!r} in row {missing[0]}."
        raise ValueError(msg)
    return list(labels.categories), code
