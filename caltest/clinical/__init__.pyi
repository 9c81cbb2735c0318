from ._clinical_calibration import clinical_calibration as clinical_calibration
from ._clinical_curve import ClinicalCurve as ClinicalCurve
from ._clinical_result import ClinicalCalibration as ClinicalCalibration
from ._measure import Measure as Measure
from ._net_benefit import NetBenefit as NetBenefit
