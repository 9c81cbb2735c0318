"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation.gaussian import GaussianMixture1D

__all__ = ["Draw", "GaussianMixture1D", "Model", "Rows"]
