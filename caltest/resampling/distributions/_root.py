"""The zero of a function between two points, without the time that importing scipy.optimize takes."""

from __future__ import annotations

import math
from collections.abc import Callable

_MOST_STEPS = 200  # halving a range alone reaches any precision in fewer


def root_between(function: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Return where a continuous function is 0, between two points at which it has opposite signs.

    Chandrupatla's method (1997, Advances in Engineering Software 28): inverse quadratic interpolation where the last
    three points allow it, otherwise halves. The command line needs one such root in most calls, and to import
    scipy.optimize for it took longer than to find all of them.

    Parameters
    ----------
    function : callable
        The function.
    low, high : float
        The two points.
    precision : float
        Largest distance of the answer from the zero, beside rounding.

    Returns
    -------
    float
        The zero.

    Examples
    --------
    >>> round(root_between(lambda x: x * x - 2, 0.0, 2.0, 1e-12), 10)
    1.4142135624
    """
    a, b = low, high
    of_a, of_b = float(function(a)), float(function(b))
    c, of_c, share = a, of_a, 0.5
    for _ in range(_MOST_STEPS):
        x = a + share * (b - a)
        of_x = float(function(x))
        if (of_x > 0) == (of_a > 0):
            c, of_c = a, of_a
        else:
            c, of_c, b, of_b = b, of_b, a, of_a
        a, of_a = x, of_x
        best, of_best = (a, of_a) if abs(of_a) < abs(of_b) else (b, of_b)
        least = (2 * math.ulp(best) + precision / 2) / abs(b - a) if b != a else 1.0
        if least > 0.5 or of_best == 0:
            return best
        share = 0.5
        if math.isfinite(of_c) and math.isfinite(of_a) and math.isfinite(of_b):
            across, upwards = (a - b) / (c - b), (of_a - of_b) / (of_c - of_b)
            if upwards**2 < across and (1 - upwards) ** 2 < 1 - across:
                share = of_a / (of_b - of_a) * of_c / (of_b - of_c)
                share += (c - a) / (b - a) * of_a / (of_c - of_a) * of_b / (of_c - of_b)
        share = min(max(share, least), 1 - least)
    return best
