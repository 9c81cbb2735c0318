"""Pictures of one test or example are closed before the next; examples that need PyTorch wait for it; marks; limits."""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

import pytest

os.environ["COLUMNS"] = "80"  # the width of printed examples, in any terminal

collect_ignore = [] if find_spec("torch") else ["caltest/torch", "docs/papers/training.md"]
"""Their examples run where PyTorch is installed, as in .ci/run before the slow tests."""

collect_ignore += ["docs/conf.py", "docs/_site", "docs/gallery", "docs/reference", "docs/examples"]
"""What builds the site, and what it makes. The scripts of the gallery run whenever it is built."""


SECONDS = {"slow": 3600, "nightly": 3600, "release": 0}
"""Time limits of marked tests, 0 for none; that of the others is in pyproject.toml. A test may have its own mark.

At the limit the process is ended by a thread, which compiled code cannot hold up, and pytest-xdist starts another one.
"""


SLOW_EXAMPLES = {
    "choosing-a-test.md",
    "clinical.md",
    "comparing-models.md",
    "credit.md",
    "cross-validation.md",
    "curves.md",
    "estimator-bias.md",
    "estimators-compared.md",
    "extending.md",
    "fairness.md",
    "forecasts.md",
    "how-many-observations.md",
    "how-much.md",
    "language-models.md",
    "leaderboard.md",
    "metric-disagreement.md",
    "monitoring.md",
    "reading-a-p-value.md",
    "reading-the-answer.md",
    "recalibration.md",
    "scikit-learn.md",
    "several-labels.md",
    "streaming.md",
    "weather.md",
    "where-miscalibrated.md",
    "which-estimator.md",
    "caltest.clinical._optimism.optimism_corrected",
    "caltest.clinical._sites.calibration_by_site",
    "caltest.estimation.curves._smooth_reliability_curve.smooth_reliability_curve",
    "caltest.estimation.curves._temperature_curve.temperature_curve",
    "caltest.hypothesis_tests._gce_table.gce_table",
    "caltest.hypothesis_tests._subgroups.subgroup_tests",
    "caltest.page._leaderboard.write_leaderboard",
    "caltest.page._page.write_page",
    "caltest.plotting._null_distribution.plot_null_distribution",
    "caltest.plotting._replications.plot_approximation",
    "caltest.plotting._replications.plot_metric_agreement",
    "caltest.plotting._smooth.plot_smooth_reliability",
    "caltest.plotting._studies.plot_power_study",
    "caltest.recalibration.maps._automatic_calibration.AutomaticCalibration",
    "caltest.recalibration.maps._linear_scaling.DirichletCalibration",
    "caltest.recalibration.study._study.recalibration_study",
    "caltest.simulation.replications._agreement.metric_agreement",
    "caltest.simulation.replications._approximation.approximation_study",
    "caltest.simulation.replications._temperature.best_temperatures",
    "caltest.simulation.studies._power.power_study",
    "caltest.simulation.studies._sample_size.SampleSize",
    "caltest.simulation.studies._sample_size.sample_size",
    "caltest.simulation.studies._size.size_study",
    "caltest.streaming.states._state.CalibrationState.test",
}
"""Pages and docstrings whose examples take more than 0.3 s, which run with the slow tests."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Mark examples that take long, and give marked tests their time limits."""
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        limits = [seconds for mark, seconds in SECONDS.items() if item.get_closest_marker(mark)]
        if limits and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(min(limits)))


def pytest_sessionstart(session):
    """Let every second worker go through compiled functions and test files from the last one on: workers share them.

    In a clean checkout pytest rewrites the assertions of each file, which takes longer than to import it, and Numba
    compiles each kernel at its first call. Workers in the same order would all rewrite and compile all of them.
    """
    gc.disable()  # until the tests are collected, which stay
    if "PYTEST_XDIST_WORKER" not in os.environ or session.config.args != session.config.getini("testpaths"):
        return
    is_second = os.environ["PYTEST_XDIST_WORKER"][-1] in "13579"
    first_calls = import_module("tests.house.first_calls")
    first_calls.make(first_calls.CALLS[::-1] if is_second else first_calls.CALLS)
    if is_second:
        for file in sorted(session.config.rootpath.glob("tests/**/test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # collection imports it again, and reports it
                import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish(session):
    """Search for unreachable cycles less often, and never among modules and collected tests, which stay."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
