"""The classical tests of calibration, each with its own result."""
