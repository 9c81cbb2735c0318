"""The largest sum of residuals times a Lipschitz function that is at most 1, by dynamic programming over its dual."""

import numpy as np

from caltest._compiled._jit import inner, kernel


@inner
def _push(place, mass, size, new_place, new_mass):
    i = size
    while i > 0:
        above = (i - 1) >> 1
        if place[above] >= new_place:
            break
        place[i] = place[above]
        mass[i] = mass[above]
        i = above
    place[i] = new_place
    mass[i] = new_mass


@inner
def _drop_largest(place, mass, size):
    # The hole sinks to a leaf along the larger children, and the last element rises from there: half the comparisons.
    size -= 1
    i = 0
    child = 1
    while child < size:
        if child + 1 < size:
            child += int(place[child + 1] > place[child])
        place[i] = place[child]
        mass[i] = mass[child]
        i = child
        child = 2 * i + 1
    _push(place, mass, i, place[size], mass[size])


@kernel
def lipschitz_suprema(path, gap):
    r"""Return ``max sum_i (path[r, i] - path[r, i - 1]) w_i`` over w with ``|w_i| <= 1`` and steps up to ``gap``.

    ``path (n_replicates, n_points)`` are cumulative sums from 0 on, ``gap (n_points - 1,)`` the distances of points,
    whose sum is at most 1. The dual is a median filter with a penalty on total variation,

    .. math:: \min_x \sum_{i < m} \mathrm{gap}_i |x_i - \mathrm{path}_i| + \sum_{i \le m} |x_i - x_{i - 1}|

    with :math:`x_0 = 0` and :math:`x_m = \mathrm{path}_m`. The best value as a function of the last x is convex and
    piecewise linear with slopes from -1 to 1: a step adds a kink of mass ``2 gap`` at the path and takes ``gap`` from
    the outermost kinks of either side. At 0 it has a kink of mass 2, which the gaps cannot exhaust. So kinks above 0
    are only taken from above, those below from below, and two heaps hold them.
    """
    n_replicates, n_points = path.shape
    place = np.empty((2, n_points))
    mass = np.empty((2, n_points))
    found = np.empty(n_replicates)
    size = np.zeros(2, np.int64)
    beyond = np.zeros(2)  # what the two outer lines are at 0
    for r in range(n_replicates):
        size[:] = 0
        beyond[:] = 0.0
        for i in range(n_points - 1):
            width = gap[i]
            height = path[r, i]
            for side in range(2):
                kinks = place[side]
                masses = mass[side]
                number = size[side]
                away = height if side == 0 else -height
                if away > 0.0:
                    _push(kinks, masses, number, away, 2 * width)
                    number += 1
                taken = -width * away
                left = width
                while number > 0 and left > 0.0:
                    if masses[0] > left:
                        masses[0] -= left
                        taken += left * kinks[0]
                        break
                    left -= masses[0]
                    taken += masses[0] * kinks[0]
                    _drop_largest(kinks, masses, number)
                    number -= 1
                size[side] = number
                beyond[side] += taken
        last = path[r, n_points - 1]
        side = 0 if last >= 0 else 1
        last = abs(last)
        total = beyond[side] + last
        for j in range(size[side]):
            total += mass[side, j] * max(place[side, j] - last, 0.0)
        found[r] = total
    return found
