"""How the classical tests find a p-value: by draws or an exact law, as `calibration_test` does, or by a limit law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import run_test
from caltest.hypothesis_tests._diagnostics import conditions_text, hypothesis_text, impossible_notes, lens_text
from caltest.predictions._lenses import Confidence, Lens
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions._validation import SeedLike, validate_choice
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.resampling._draws import Draws
from caltest.resampling._schemes import Consistency
from caltest.results._test_result import ComponentResult
from caltest.statistics import Statistic
from caltest.statistics._base import require_two_outcomes

"""A p-value is never reported as 0."""


def two_outcome_problem(
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None, lens: Lens | None, name: str
) -> tuple[Sample, str]:
    """Return the sample and the lens in words; without a lens the event of two classes, the confidence of more."""
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens)
    if lens is None and sample.n_outcomes > 2:
        lens = Confidence()
        sample = make_sample(y_true, y_prob, classes=classes, lens=lens)
    require_two_outcomes(sample, name)
    return sample, lens_text(lens, classes)


def redrawn(
    statistic: Statistic, sample: Sample, *, lens: str, method: str, draws: Draws, workers: int
) -> tuple[dict[str, Any], tuple[ComponentResult, ...]]:
    """Return the common fields of a result whose null law is exact or made of draws, and the components."""
    found = run_test(
        statistic, sample, resampling=Consistency(), draws=draws, method=method, workers=workers, lens=lens
    )
    names = "statistic pvalue method null_law accuracy hypothesis conditions notes lens n_samples n_outcomes"
    return {name: getattr(found, name) for name in [*names.split(), "impossible_rows"]}, found.components


def asymptotic(
    statistic: float, tail: Callable[[float], float], sample: Sample, *, lens: str, law: str, method: str
) -> dict[str, Any]:
    """Return the common fields of a result whose null law is a limit."""
    pvalue = 0.0 if sample.impossible.size else float(tail(statistic))
    return {
        "statistic": float(statistic),
        "pvalue": max(pvalue, SMALLEST_PVALUE),
        "method": method,
        "null_law": f"{law}, predictions fixed (asymptotic: not exact in small samples)",
        "accuracy": "asymptotic",
        "hypothesis": hypothesis_text(Consistency()),
        "conditions": (*conditions_text(Consistency()), "there are many rows whose predictions are far from 0 and 1."),
        "notes": tuple(impossible_notes(sample)),
        "lens": lens,
        "n_samples": sample.n_samples,
        "n_outcomes": sample.n_outcomes,
        "impossible_rows": sample.impossible,
    }


def validate_draws(method: str, allowed: Sequence[str], n_resamples: int, rng: SeedLike) -> Draws:
    """Return the draws of a test; everything is checked, whether the method draws or not."""
    validate_choice(method, "method", allowed)
    return Consistency().draws(n_resamples, rng)
