from ._base import Result as Result
from ._interval import ConfidenceInterval as ConfidenceInterval
from ._note import Note as Note
from ._test_result import ComponentResult as ComponentResult
from ._test_result import TestResult as TestResult
from ._warnings import CalibrationWarning as CalibrationWarning
