"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation.dirichlet import DirichletModel, ResampledPredictions
from caltest.simulation.gaussian import GaussianMixture1D
from caltest.simulation.maps import Bumps, Favour, Identity, LabelNoise, Move, Permutation, Shift, Temperature

__all__ = [
    "Bumps",
    "DirichletModel",
    "Draw",
    "Favour",
    "GaussianMixture1D",
    "Identity",
    "LabelNoise",
    "Model",
    "Move",
    "Permutation",
    "ResampledPredictions",
    "Rows",
    "Shift",
    "Temperature",
]
