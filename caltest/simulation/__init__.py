"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation._estimate import MiscalibrationEstimate
from caltest.simulation.dirichlet import DirichletModel, ResampledPredictions
from caltest.simulation.gaussian import GaussianMixture1D
from caltest.simulation.maps import Bumps, Favour, Identity, LabelNoise, Move, Permutation, Shift, Temperature
from caltest.simulation.mixtures import RandomMixture, posocco_mixtures
from caltest.simulation.trained import ClassifierTruth, TrainedClassifier

__all__ = [
    "Bumps",
    "ClassifierTruth",
    "DirichletModel",
    "Draw",
    "Favour",
    "GaussianMixture1D",
    "Identity",
    "LabelNoise",
    "MiscalibrationEstimate",
    "Model",
    "Move",
    "Permutation",
    "RandomMixture",
    "ResampledPredictions",
    "Rows",
    "Shift",
    "Temperature",
    "TrainedClassifier",
    "posocco_mixtures",
]
