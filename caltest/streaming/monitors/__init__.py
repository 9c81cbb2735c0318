"""Calibration watched as outcomes arrive."""
