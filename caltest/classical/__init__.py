"""The classical tests of calibration, each with a result of its own."""

from caltest.classical.bridge import BridgeResult, bridge_test
from caltest.classical.cox import CoxResult, cox_test
from caltest.classical.hosmer_lemeshow import HosmerLemeshowResult, hosmer_lemeshow_test
from caltest.classical.spiegelhalter import SpiegelhalterResult, spiegelhalter_test
from caltest.classical.tcal import TCalResult, tcal_test

__all__ = [
    "BridgeResult",
    "CoxResult",
    "HosmerLemeshowResult",
    "SpiegelhalterResult",
    "TCalResult",
    "bridge_test",
    "cox_test",
    "hosmer_lemeshow_test",
    "spiegelhalter_test",
    "tcal_test",
]
