"""Results that decide by one p-value, but are not about what is wrong with the predictions of one model.

A study speaks of several models and their changes, a graph and a band of a picture, and an estimate of one number:
none of them is made of findings, so that their conclusion is the sentence of the verdict.
"""

from __future__ import annotations

import math
from typing import Any

from caltest.results._verdict import Verdict


class Judged:
    """What results have in common that decide by one p-value, and say their conclusion themselves."""

    @property
    def verdict(self: Any) -> Verdict:
        """The decision, what is wrong and what changes the reading."""
        return Verdict(
            pvalue=float(self.pvalue),
            alpha=self.alpha,
            smallest_possible_pvalue=getattr(self, "smallest_possible_pvalue", 0.0),
            n_expected=getattr(self, "n_expected", math.inf),
            n_samples=self.n_samples,
            cautions=getattr(self, "notes", ()),
            said=self.conclusion,
        )
