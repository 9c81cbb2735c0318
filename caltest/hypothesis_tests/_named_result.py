"""Results of tests that are known by a name, such as Cox's test."""

from __future__ import annotations

from dataclasses import dataclass, replace

from caltest.results import TestResult
from caltest.results._description import Description


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NamedTestResult(TestResult):
    """Result of a test that is known by its name: a `TestResult` whose title and tables are those of the test."""

    def _describe(self) -> Description:
        about = f"{self.lens_name}, {self.n_samples} observations, {self.n_outcomes} outcomes"
        return replace(super()._describe(), title=f"{self.title} ({about})")

    def _remarks(self) -> list[str]:
        """Leave out the derived numbers, which are in the tables and sentences of the test."""
        return super()._remarks()[sum(bool(part.derived) for part in self.components) :]

    def _size(self) -> list[str]:
        """Say how large the miscalibration is."""
        return [] if self.l2_error is None else [self.l2_error.conclusion]
