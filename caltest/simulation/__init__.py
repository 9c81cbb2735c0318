"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation.gaussian import GaussianMixture1D
from caltest.simulation.power import PowerStudy, power_study
from caltest.simulation.sample_size import SampleSize, sample_size
from caltest.simulation.size import RejectionStudy, size_study

__all__ = [
    "Draw",
    "GaussianMixture1D",
    "Model",
    "PowerStudy",
    "RejectionStudy",
    "Rows",
    "SampleSize",
    "power_study",
    "sample_size",
    "size_study",
]
