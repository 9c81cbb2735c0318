"""The picture of the GiViTI belt shows its numbers."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from caltest import hypothesis_tests, plotting


def test_it_draws_the_belts_the_curve_and_where_the_diagonal_is_outside():
    p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 100)
    y = (np.tile(np.arange(100), 5) < 100 * p**2).astype(int)
    belt = hypothesis_tests.giviti_belt(y, p)
    ax = plotting.plot_giviti_belt(belt)
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["polynomial of degree 1"].get_ydata() == pytest.approx(belt.curve)
    assert lines["outside the outer belt"].get_xdata() == pytest.approx(belt.too_high[0])
    outer, inner = (area.get_paths()[0].vertices for area in ax.collections[:2])
    assert [outer[:, 1].min(), outer[:, 1].max()] == pytest.approx([belt.lower.min(), belt.upper.max()])
    assert [inner[:, 1].min(), inner[:, 1].max()] == pytest.approx([belt.inner_lower.min(), belt.inner_upper.max()])
    assert ax.get_title().startswith("Calibration is rejected")
    assert plotting.plot_giviti_belt(belt, legend=False).get_legend() is None
    plt.close("all")
    with pytest.raises(TypeError, match="`belt` must be"):
        plotting.plot_giviti_belt(y)
