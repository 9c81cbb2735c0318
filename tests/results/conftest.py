"""What tests of results share: how a result is shown does not depend on how exactly it was simulated."""

import pytest


@pytest.fixture(autouse=True)
def quick(few_data_sets):
    """Verdicts of the examples are found from few data sets."""
