"""Where the miscalibration is: curves, bars and bands."""
