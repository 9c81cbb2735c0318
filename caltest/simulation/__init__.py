"""Studies with known truth: models whose calibration is known exactly, to learn what estimates and tests are worth."""

from caltest.simulation._base import Draw, Model, Rows
from caltest.simulation.agreement import MetricAgreement, metric_agreement
from caltest.simulation.gaussian import GaussianMixture1D
from caltest.simulation.label_noise import LabelNoiseStudy, label_noise_study
from caltest.simulation.temperature import BestTemperatures, best_temperatures

__all__ = [
    "BestTemperatures",
    "Draw",
    "GaussianMixture1D",
    "LabelNoiseStudy",
    "MetricAgreement",
    "Model",
    "Rows",
    "best_temperatures",
    "label_noise_study",
    "metric_agreement",
]
