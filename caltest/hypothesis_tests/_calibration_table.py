"""One model through several lenses, on one set of draws: corrected p-values and one global exact p-value."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._compiled._lookup import map_outcomes
from caltest.hypothesis_tests._calibration import conclude, conclude_by_law, validate_statistic
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Canonical, ClassWise, Confidence, Lens
from caltest.predictions._sample import Sample, apply_lens, induce
from caltest.predictions._validation import SeedLike, validate_problem
from caltest.resampling._draws import Draws
from caltest.resampling._multiple_testing import correct_pvalues
from caltest.resampling._pvalues import evaluate_components, exact_law, rank_pvalues
from caltest.resampling._schemes import Consistency
from caltest.results._test_result import CalibrationTestResult
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._omnibus import combine_pvalues

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
"""Level at which the closing sentence counts rejections."""


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """Result of `calibration_table`.

    Attributes
    ----------
    rows : tuple of CalibrationTestResult
        One test per lens, each with its own exact p-value.
    pvalue : float
        Global p-value of "calibrated through every lens": exact min-p over the rows, on the same draws.
    """

    rows: tuple[CalibrationTestResult, ...]
    pvalue: float

    def __iter__(self) -> Iterator[CalibrationTestResult]:
        return iter(self.rows)

    @cached_property
    def pvalue_corrected(self) -> NDArray[np.float64]:
        """P-values corrected over the rows by Holm's method, ``(n_rows,)``."""
        return correct_pvalues([row.pvalue for row in self.rows])

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells the rows apart."""
        return tuple(row.lens for row in self.rows)

    @property
    def conclusion(self) -> str:
        """What the table says, in one sentence."""
        rejected = int((self.pvalue_corrected <= LEVEL).sum())
        share = f"{rejected} of {len(self.rows)} rows are rejected at {LEVEL:.0%} after Holm's correction"
        if self.pvalue > LEVEL:
            n_samples = self.rows[0].n_samples
            return (
                f"No evidence against calibration in these {n_samples} rows, which is no proof of it "
                f"(global p-value {self.pvalue:.4g}): {share}."
            )
        direction = self.rows[0].direction
        towards = f"; the model is {direction}" if direction else ""
        told = f"The probabilities should not be taken at their word (global p-value {self.pvalue:.4g})"
        return f"{told}: {share}{towards}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know beyond the numbers: the notes of every row, and whether draws are too few."""
        notes = [f"{label}: {note}" for label, row in zip(self.labels, self.rows, strict=True) for note in row.notes]
        n_resamples = self.rows[0].n_resamples
        smallest = len(self.rows) / (n_resamples + 1)
        if n_resamples and smallest > LEVEL:
            needed = round(len(self.rows) / LEVEL)
            notes.append(
                f"{n_resamples} draws are too few: no corrected p-value can be below {smallest:.2g}; "
                f"take {needed} draws or more."
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return rows, corrected p-values, global p-value and conclusion as plain Python objects, ready for JSON."""
        rows = [
            {**row.to_dict(), "pvalue_corrected": float(corrected)}
            for row, corrected in zip(self.rows, self.pvalue_corrected, strict=True)
        ]
        return {
            "rows": rows,
            "correction": "holm",
            "pvalue": self.pvalue,
            "conclusion": self.conclusion,
            "notes": list(self.notes),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return lens, statistic, noise floor, p-value and corrected p-value of every row as a pandas frame."""
        import pandas as pd

        names = ("lens", "statistic", "noise_floor", "pvalue", "direction")
        frame = pd.DataFrame([{name: getattr(row, name) for name in names} for row in self.rows])
        return frame.assign(pvalue_corrected=self.pvalue_corrected)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        first = self.rows[0].components[0]
        combined = len(self.rows[0].components) > 1
        own = f"{first.name.partition('(')[0]:>9} {'its floor':>10} {'score':>6}  " if combined else ""
        width = max(len(row.lens) for row in self.rows)
        lines = [f"{'lens':<{width}} {own}{'statistic':>10} {'noise floor':>12} {'p-value':>9} {'p (Holm)':>9}"]
        for row, corrected in zip(self.rows, self.pvalue_corrected, strict=True):
            part = row.components[0]
            own = f"{part.statistic:>9.4g} {part.noise_floor:>10.4g} {_sign(row):>6}  " if combined else ""
            lines.append(
                f"{row.lens:<{width}} {own}{row.statistic:>10.4g} {row.noise_floor:>12.4g} "
                f"{row.pvalue:>9.4g} {corrected:>9.4g}"
            )
        lines += ["", *(_details(self.rows[0]) if combined else [])]
        if combined:
            parts = ", ".join(part.name.partition("(")[0] for part in self.rows[0].components)
            lines += [
                f"statistic: -log10 of the smallest p-value of {parts}",
                f"score: direction of the temperature score, where its own p-value is at most {LEVEL}",
            ]
        lines += [f"global p-value (min-p over the rows, same draws): {self.pvalue:.4g}"]
        for words in (self.conclusion, *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, subsequent_indent="  ")
        return "\n".join(lines)


def calibration_table(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lenses: Sequence[Lens] | None = None,
    statistic: Statistic | None = None,
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationTable:
    """Test calibration through several lenses at once, predictions fixed.

    The class of every row is drawn from the whole prediction and looked at through each lens, so that one draw serves
    all rows. Each row is exact under its own hypothesis; Holm's correction over the rows needs no assumption, and the
    global p-value is an exact min-p that uses their dependence. A single row with an exact law is not drawn at all.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lenses : sequence of lenses, optional
        By default `Canonical`, `Confidence` and `ClassWise` for every class; for two classes, whose one-against-rest
        problems are all the same, the first two.
    statistic : Statistic, optional
        ``Omnibus()`` by default.
    n_resamples : int
        Number of draws.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    progress : callable, optional
        Called with the number of finished draws and their total.

    Returns
    -------
    CalibrationTable
        Prints as a table.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or there is no lens.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> table = caltest.calibration_table(
    ...     y_true, y_prob, lenses=[caltest.Canonical(), caltest.Confidence()], n_resamples=99, rng=0)
    >>> table.pvalue, table.pvalue_corrected.tolist()
    (0.01, [0.02, 0.02])
    """
    prob, outcome = validate_problem(y_true, y_prob, classes)
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    if lenses is not None and not isinstance(lenses, list | tuple):
        msg = f"`lenses` must be a list of lenses, got {lenses!r}."
        raise ValueError(msg)
    given = _default_lenses(prob.shape[1]) if lenses is None else lenses
    looks: list[Lens] = [Canonical() if lens is None else lens for lens in given]
    if not looks:
        msg = "`lenses` must hold at least one lens, got none."
        raise ValueError(msg)
    base = induce(prob, outcome)
    views = [View.of(lens, prob, outcome, base) for lens in looks]
    chosen = chosen.settle(base)
    scheme = Consistency()
    found = exact_law(chosen, views[0].sample, scheme, "auto") if len(views) == 1 else None
    if found is not None:  # several rows need draws in common, one row does not
        row = conclude_by_law(
            chosen, views[0].sample, found, "exact", resampling=scheme, lens=lens_text(looks[0], classes)
        )
        return CalibrationTable((row,), row.pvalue)
    draws = scheme.draws(n_resamples, rng)
    observed = [evaluate_components(chosen, view.sample) for view in views]
    null = shared_null([Item(view, chosen) for view in views], base, draws, workers, progress)
    rows = tuple(
        conclude(chosen, view.sample, values, null[i], resampling=scheme, lens=lens_text(lens, classes), draws=draws)
        for i, (view, values, lens) in enumerate(zip(views, observed, looks, strict=True))
    )
    return CalibrationTable(rows, global_pvalue([view.sample for view in views], observed, null))


def global_pvalue(
    samples: Iterable[Sample], observed: Iterable[NDArray[np.float64]], null: Iterable[NDArray[np.float64]]
) -> float:
    """Return the exact min-p over rows: observed ``(n_components,)`` and null ``(n_components, B)`` on shared draws."""
    ranked = [rank_pvalues(*row)[1] for row in zip(samples, observed, null, strict=True)]
    excluded = any(sample.impossible.size for sample in samples)
    return 1 / len(ranked[0]) if excluded else float(combine_pvalues(np.stack(ranked))[0])


@dataclass(frozen=True, eq=False)
class View:
    """A lens on shared draws: row i of its sample is ``base_row[i]`` of the base, class c becomes ``seen[i, c]``."""

    sample: Sample
    base_row: NDArray[np.int64]
    seen: NDArray[Any] | None

    @classmethod
    def of(cls, lens: Lens, prob: NDArray[np.float64], outcome: NDArray[np.int64], base: Sample) -> View:
        """Look through a lens at predictions and outcomes of which ``base`` is the sample."""
        if isinstance(lens, Canonical):
            return cls(base, np.arange(base.n_samples), None)
        sample = induce(prob, outcome, lens=lens)
        place = np.empty(base.n_samples, dtype=np.int64)
        place[base.row] = np.arange(base.n_samples)
        seen = np.empty(prob.shape, dtype=sample.outcome.dtype)
        for c in range(prob.shape[1]):
            seen[:, c] = apply_lens(lens, prob, np.full(len(prob), c))[1][sample.row]
        return cls(sample, place[sample.row], seen)

    def take(self, position: NDArray[np.int64]) -> View:
        """Return the view of the rows at increasing positions of the sample."""
        seen = self.seen
        if seen is None:  # classes are seen as they are
            classes = np.arange(self.sample.n_outcomes, dtype=self.sample.outcome.dtype)
            seen = np.broadcast_to(classes, self.sample.prob.shape)
        return View(self.sample.take(position), self.base_row[position], np.ascontiguousarray(seen[position]))

    def outcomes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """Return what drawn classes ``(n_replicates, n_samples)`` of the base look like through the lens."""
        return drawn if self.seen is None else map_outcomes(drawn, self.seen, self.base_row)


@dataclass(frozen=True, eq=False)
class Item:
    """A statistic and what it looks at."""

    view: View
    statistic: Statistic


def shared_null(
    items: Sequence[Item],
    base: Sample,
    draws: Draws,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[NDArray[np.float64]]:
    """Return the components of every item on shared draws, ``(n_components, n_resamples)`` each."""

    def evaluate(part: Draws) -> NDArray[np.float64]:
        blocks = []
        for _, drawn in part.blocks(base):
            seen = {view: view.outcomes(drawn) for view in {item.view for item in items}}
            values = [item.statistic.evaluate_components(item.view.sample, seen[item.view]) for item in items]
            blocks.append(np.concatenate(values))
        return np.concatenate(blocks, axis=1)

    ends = np.cumsum([len(item.statistic.components) for item in items])
    return np.split(draws.map(evaluate, workers, progress), ends[:-1])


def _default_lenses(n_classes: int) -> list[Lens]:
    whole: list[Lens] = [Canonical(), Confidence()]
    return whole + [ClassWise(k) for k in range(n_classes)] if n_classes > 2 else whole


def _details(row: CalibrationTestResult) -> list[str]:
    head = f"{row.lens}, the parts of {row.name.partition('(')[0]}"
    width = max(len(head), *(len(part.name) + 2 for part in row.components))
    lines = [f"{head:<{width}} {'value':>10} {'noise floor':>12} {'p-value':>9}"]
    lines += [
        f"  {part.name:<{width - 2}} {part.statistic:>10.4g} {part.noise_floor:>12.4g} {part.pvalue:>9.4g}"
        for part in row.components
    ]
    return [*lines, ""]


def _sign(row: CalibrationTestResult) -> str:
    return {"over-confident": "over", "under-confident": "under"}.get(row.direction or "", "")
