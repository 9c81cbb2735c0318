"""Drawing: from results to pictures, computing nothing."""

from caltest.plotting.agreement import plot_metric_agreement
from caltest.plotting.approximation import plot_approximation
from caltest.plotting.band import plot_calibration_band
from caltest.plotting.bias import plot_bias_study
from caltest.plotting.comparison import plot_comparison
from caltest.plotting.label_noise import plot_label_noise
from caltest.plotting.reliability import plot_reliability
from caltest.plotting.smooth import plot_smooth_reliability
from caltest.plotting.training import plot_training

__all__ = [
    "plot_approximation",
    "plot_bias_study",
    "plot_calibration_band",
    "plot_comparison",
    "plot_label_noise",
    "plot_metric_agreement",
    "plot_reliability",
    "plot_smooth_reliability",
    "plot_training",
]
