"""Models whose calibration is known."""
