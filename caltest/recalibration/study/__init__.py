"""Recalibration methods judged on held-out observations."""
