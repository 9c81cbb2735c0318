"""Tests that a study applies to the same data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions._validation import validate_choice, validate_count
from caltest.predictions._view import LensView
from caltest.resampling._evaluation import Question
from caltest.resampling._run import METHODS, run, settle
from caltest.resampling._schemes import Consistency, validate_resampling
from caltest.resampling._summaries import CellCounts, EntryCounts
from caltest.simulation.studies._run import accepted, named
from caltest.statistics import Statistic

Test = Statistic | Callable[..., Any]
"""What is tested with: a statistic, or a function ``(y_true, y_prob, lens=, rng=)`` whose result has a ``pvalue``."""


@dataclass(frozen=True)
class Battery:
    """Tests that are applied to the same data sets; see `size_study`."""

    tests: dict[str, Test]
    n_resamples: int
    resampling: Consistency
    method: str

    @classmethod
    def of(cls, tests: Any, n_resamples: int, resampling: Consistency | None, method: str) -> Battery:
        """Check what the user passed."""
        chosen = named(tests, "tests")
        for test in chosen.values():
            if not isinstance(test, Statistic) and not (callable(test) and not isinstance(test, type)):
                msg = f"`tests` must hold statistics or functions of (y_true, y_prob, lens=, rng=), got {test!r}."
                raise TypeError(msg)
        return cls(
            chosen,
            validate_count(n_resamples, "n_resamples"),
            validate_resampling(Consistency() if resampling is None else resampling),
            validate_choice(method, "method", METHODS),
        )

    def pvalues(self, y_true: NDArray[np.int64], y_prob: NDArray[np.float64], lens: LensLike, seed: int) -> list[float]:
        """Return the p-value of every test through a lens; each is that of the public function with this seed."""
        found: dict[str, float] = {}
        statistics = {name: test for name, test in self.tests.items() if isinstance(test, Statistic)}
        if statistics:
            found |= self._pvalues_of(statistics, make_sample(y_true, y_prob, lens=lens), seed)
        for name, test in self.tests.items():
            if name not in found:
                options = accepted(test, {"lens": lens, "rng": seed})  # type: ignore[arg-type]
                found[name] = _pvalue(test(y_true, y_prob, **options), name)  # type: ignore[operator]
        return [found[name] for name in self.tests]

    def _pvalues_of(self, statistics: dict[str, Statistic], observed: Sample, seed: int) -> dict[str, float]:
        """Return the p-value of every statistic; those that are evaluated on labels share the draws of the labels."""
        sample = self.resampling.under_null(observed)
        view = LensView(sample)
        shared = [name for name, statistic in statistics.items() if self._draws_labels(statistic, sample)]
        alone = [[name] for name in statistics if name not in shared]
        found: dict[str, float] = {}
        for names in (*alone, shared) if shared else alone:
            answer = run(
                [Question(statistics[name], view) for name in names],
                sample,
                self.resampling,
                n_resamples=self.n_resamples,
                method=self.method if len(names) == 1 else "monte-carlo",
                rng=seed,
            )
            found |= {name: finding.pvalue for name, finding in zip(names, answer.findings, strict=True)}
        return found

    def _draws_labels(self, statistic: Statistic, sample: Sample) -> bool:
        """Return whether the null distribution comes from simulated labels: neither from counts nor from a formula."""
        counted = isinstance(settle(statistic, sample).summary(sample), CellCounts | EntryCounts)
        if counted or self.method not in {"auto", "monte-carlo"}:
            return False
        computed = self.method == "auto" and not self.resampling.resample_predictions
        return not computed or type(statistic).exact_distribution is Statistic.exact_distribution


def _pvalue(found: Any, name: str) -> float:
    """Return the p-value of what a test returned."""
    if hasattr(found, "pvalue"):
        return float(found.pvalue)
    msg = f"`tests` must return results with a `pvalue`, got {type(found).__name__} from {name!r}."
    raise TypeError(msg)
