from ._test_result import CalibrationTestResult as CalibrationTestResult
from ._test_result import ComponentResult as ComponentResult
from ._warnings import CalibrationWarning as CalibrationWarning
