"""The warning of the package."""


class CalibrationWarning(UserWarning):
    """A result that must be read with care."""
