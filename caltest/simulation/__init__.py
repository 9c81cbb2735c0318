"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation.bias import BiasStudy, bias_study
from caltest.simulation.coverage import CoverageStudy, coverage_study
from caltest.simulation.gaussian import GaussianMixture1D

__all__ = ["BiasStudy", "CoverageStudy", "Draw", "GaussianMixture1D", "Model", "Rows", "bias_study", "coverage_study"]
