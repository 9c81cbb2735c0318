"""Pictures of one test or example are closed before the next; examples that need PyTorch wait for it; time limits."""

import sys
from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("torch") else ["caltest/torch", "docs/training.md"]
"""Their examples run where PyTorch is installed, as in .ci/run before the slow tests."""


SECONDS = {"slow": 3600, "release": 0}
"""Time limits of marked tests, 0 for none; that of the others is in pyproject.toml. A test may have its own mark.

At the limit the process is ended by a thread, which compiled code cannot hold up, and pytest-xdist starts another one.
"""


def pytest_collection_modifyitems(items):
    """Give marked tests their time limits."""
    for item in items:
        limits = [seconds for mark, seconds in SECONDS.items() if item.get_closest_marker(mark)]
        if limits and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(min(limits)))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
