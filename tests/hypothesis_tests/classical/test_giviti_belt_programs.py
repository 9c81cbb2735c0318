"""Belts that the functions of givitiR found on public data; what it prints is in docs/clinical-programs.md."""

import numpy as np
import pytest
from scipy.special import logit

from caltest.hypothesis_tests import giviti_belt
from tests.clinical.test_clinical_calibration_programs import printed, problem
from tests.reference.cases import mostly_slow

FITTED = ("pima", "external"), ("pima", "internal"), ("melanoma", "external"), ("birthwt", "external")
FITTED = (*FITTED, ("birthwt", "internal"))


@pytest.mark.parametrize(("name", "kind"), mostly_slow(FITTED))
def test_its_own_functions(name, kind):
    """Degree, statistic, p-value and belts of ``givitiCalibrationBelt``, by ``tests/reference/programs.R``.

    Its table prints two decimals of where the belt leaves the diagonal. Its root finder stops at steps of 0.01 in each
    coefficient, so that its belts have errors of up to 0.01 times the sum of the powers of the logit.
    """
    wanted, found = printed(name, f"givitiR {kind}", "programs.csv"), giviti_belt(*problem(name), kind=kind)
    assert found.selected_degree == wanted.pop("degree")
    assert found.statistic == pytest.approx(wanted.pop("statistic"), abs=1e-8)
    assert found.pvalue == pytest.approx(wanted.pop("pvalue"), rel=1e-7)
    for side, stretches in {"over": found.too_low, "under": found.too_high}.items():
        ends = [wanted.pop(key) for key in sorted(wanted) if key.startswith(side)]
        assert [f"{end:.2f}" for end in np.ravel(stretches)] == [f"{end:.2f}" for end in ends]
    belts = {("lower", "0.95"): found.lower, ("upper", "0.95"): found.upper}
    belts |= {("lower", "0.8"): found.inner_lower, ("upper", "0.8"): found.inner_upper}
    assert len(wanted) == 40
    for key, bound in wanted.items():
        side, level, _, at = key.split()
        x = logit(float(at))
        ours = np.interp(x, logit(found.prediction), logit(belts[side, level]))
        assert abs(ours - logit(bound)) <= 0.01 * (abs(x) ** np.arange(found.selected_degree + 1)).sum(), key
