"""Comparing models by evidence: what the data say of the difference of their miscalibration."""

from caltest.comparison.difference import DifferenceResult
from caltest.comparison.models import compare_models
from caltest.comparison.paired import paired_test, unpaired_test
from caltest.comparison.result import ModelComparison

__all__ = ["DifferenceResult", "ModelComparison", "compare_models", "paired_test", "unpaired_test"]
