"""Classical tests of calibration that are known by their names."""
