"""Drawing: from results to pictures, computing nothing."""

from caltest.plotting.reliability import plot_reliability

__all__ = ["plot_reliability"]
