"""How large the miscalibration is, with intervals."""
