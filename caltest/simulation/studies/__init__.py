"""Studies of bias, coverage, size and power by simulation."""
