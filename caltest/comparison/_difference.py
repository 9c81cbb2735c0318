"""What is said of two models: the difference of their miscalibration, its interval and its p-value."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._u_statistics import Differences, critical_value
from caltest.resampling._distributions import SMALLEST_PVALUE, alpha_of

TARGET = (
    "sum_b w_b |mu_b|^2 of model A minus that of model B: squared l2 miscalibration, averaged within the cells of each "
    "model's own partition"
)
_NORMAL = "normal, variance from Hoeffding's decomposition (asymptotic, conservative near calibration)"
_BOOTSTRAP = "bootstrap samples of the rows (asymptotic, conservative near calibration)"


@dataclass(frozen=True)
class DifferenceResult:
    """Result of `paired_test` and `unpaired_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    difference : float
        Debiased squared l2 miscalibration of model A minus that of model B; positive where B is better calibrated.
    standard_error : float
        Its standard error.
    statistic : float
        ``difference / standard_error``; 0 for models that do not differ.
    pvalue : float
        Two-sided, of the hypothesis that both models are equally miscalibrated.
    low, high : float
        Interval for the difference of the squared miscalibrations.
    confidence_level : float
        Level of the interval.
    estimate_a, estimate_b : float
        Debiased squared l2 miscalibration of each model.
    paired : bool
        Whether both models were seen on the same rows.
    null_law : str
        Where p-value and interval come from.
    target : str
        What is compared.
    lens : str
        What was looked at.
    n_samples : tuple of int
        Rows of each model.
    """

    difference: float
    standard_error: float
    statistic: float
    pvalue: float
    low: float
    high: float
    confidence_level: float
    estimate_a: float
    estimate_b: float
    paired: bool
    null_law: str
    target: str
    lens: str
    n_samples: tuple[int, int]

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    @property
    def interpretation(self) -> str:
        """What the p-value says, in one sentence."""
        if self.pvalue > alpha_of(self.confidence_level):
            return "No evidence that one model is better calibrated than the other, which is no proof of equality."
        better, worse = ("B", "A") if self.difference > 0 else ("A", "B")
        return f"Model {better} is better calibrated than model {worse}, as far as these cells show it."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON; an infinite end becomes None."""
        found = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }
        return {**found, "n_samples": list(self.n_samples), "interpretation": self.interpretation}

    def __str__(self) -> str:
        lines = [_TITLE, "", *(f"  {label:<12} {text}" for label, text in self._facts())]
        lines += ["", *(f"  {label:<12} {text}" for label, text in self._findings()), ""]
        for words in (self.interpretation, f"Target: {self.target}."):
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(label)}</th><td>{escape(text)}</td></tr>"
            for label, text in (*self._facts(), *self._findings())
        )
        return f"<h4>{_TITLE}</h4><table>{rows}</table><p>{escape(self.interpretation)}</p><p>{escape(self.target)}</p>"

    def _facts(self) -> list[tuple[str, str]]:
        a, b = self.n_samples
        rows = f"{a} rows, the same for both models" if self.paired else f"{a} rows of model A, {b} others of model B"
        return [("lens", self.lens), ("data", rows), ("null law", self.null_law)]

    def _findings(self) -> list[tuple[str, str]]:
        return [
            ("model A", f"{self.estimate_a:.4g}"),
            ("model B", f"{self.estimate_b:.4g}"),
            (
                "difference",
                f"{self.difference:.4g}, {self.confidence_level:.0%} interval {self.low:.4g} to {self.high:.4g}",
            ),
            ("z", f"{self.statistic:.4g}"),
            ("p-value", f"{self.pvalue:.4g}"),
        ]


_TITLE = "Difference of squared l2 miscalibration, model A minus model B"


def difference_result(
    differences: Differences,
    pair: tuple[int, int],
    deviation: NDArray[np.float64] | None,
    **context: Any,
) -> DifferenceResult:
    """Return the result for a pair of models; bootstrap deviations ``(n_resamples,)`` instead of the normal law."""
    from scipy.special import ndtr, ndtri

    a, b = (float(differences.estimate[i]) for i in pair)
    error = math.sqrt(differences.variance[pair])
    difference = a - b if error > 0 else 0.0
    z = difference / error if error > 0 else 0.0
    level = context["confidence_level"]
    law, pvalue, reach = _NORMAL, float(2 * ndtr(-abs(z))), float(ndtri((1 + level) / 2)) * error
    if deviation is not None:
        law = f"{len(deviation)} {_BOOTSTRAP}"
        drawn = critical_value(np.abs(deviation), abs(difference), level)
        # Rows that show no variance show none when they are drawn again.
        pvalue, reach = np.maximum(drawn, (pvalue, reach)).tolist() if differences.few_rows[pair] else drawn
    if not differences.informative[pair]:
        reach = math.inf
    return DifferenceResult(
        difference,
        error,
        z,
        max(pvalue, SMALLEST_PVALUE),
        difference - reach,
        difference + reach,
        estimate_a=a,
        estimate_b=b,
        null_law=law,
        target=TARGET,
        **context,
    )
