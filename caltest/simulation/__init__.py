"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation._estimate import MiscalibrationEstimate
from caltest.simulation.agreement import MetricAgreement, metric_agreement
from caltest.simulation.approximation import ApproximationStudy, approximation_study
from caltest.simulation.bias import BiasStudy, bias_study
from caltest.simulation.coverage import CoverageStudy, coverage_study
from caltest.simulation.dirichlet import DirichletModel, ResampledPredictions
from caltest.simulation.gaussian import GaussianMixture1D
from caltest.simulation.label_noise import LabelNoiseStudy, label_noise_study
from caltest.simulation.maps import Bumps, Favour, Identity, LabelNoise, Move, Permutation, Shift, Temperature
from caltest.simulation.mixtures import RandomMixture, posocco_mixtures
from caltest.simulation.temperature import BestTemperatures, best_temperatures
from caltest.simulation.trained import ClassifierTruth, TrainedClassifier

__all__ = [
    "ApproximationStudy",
    "BestTemperatures",
    "BiasStudy",
    "Bumps",
    "ClassifierTruth",
    "CoverageStudy",
    "DirichletModel",
    "Draw",
    "Favour",
    "GaussianMixture1D",
    "Identity",
    "LabelNoise",
    "LabelNoiseStudy",
    "MetricAgreement",
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
    "approximation_study",
    "best_temperatures",
    "bias_study",
    "coverage_study",
    "label_noise_study",
    "metric_agreement",
    "posocco_mixtures",
]
