"""Recalibration methods."""
