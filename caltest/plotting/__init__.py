"""Drawing: from results to pictures, computing nothing."""

from caltest.plotting.bias import plot_bias_study
from caltest.plotting.rejection import plot_power_study, plot_size_study
from caltest.plotting.reliability import plot_reliability
from caltest.plotting.smooth import plot_smooth_reliability

__all__ = ["plot_bias_study", "plot_power_study", "plot_reliability", "plot_size_study", "plot_smooth_reliability"]
