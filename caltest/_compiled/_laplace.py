"""Quadratic forms of the Laplace kernel on a line, in linear time.

For sorted scores the kernel is the covariance of an Ornstein-Uhlenbeck path, X_0 = e_0 and X_i = d_i X_{i-1} +
sqrt(1 - d_i^2) e_i with d_i = exp(-rate (s_i - s_{i-1})), so that r'Kr is the variance of sum r_i X_i: a sum of
squares, one for each innovation e_i. Nothing cancels, and it is never negative.
"""

import numpy as np

from caltest._compiled._jit import kernel

_LANES = 8


@kernel
def laplace_forms(outcomes, weight, offset, decay, gain):
    """Return ``(n_replicates,)``: r'Kr for ``r_i = offset[i] + weight[i] * outcome[i]``, rows sorted by score.

    ``decay[i] (n_samples,)`` is the kernel between rows i - 1 and i, ``gain[i]`` is ``1 - decay[i] ** 2``; ``decay[0]``
    is 0. Replicates are taken eight at a time, because each step waits for the one before.
    """
    n_replicates, n_samples = outcomes.shape
    forms = np.empty(n_replicates)
    tail = np.empty(_LANES)
    total = np.empty(_LANES)
    drawn = np.empty(_LANES)
    for first in range(0, n_replicates, _LANES):
        tail[:] = 0.0
        total[:] = 0.0
        carried = 0.0
        for i in range(n_samples - 1, -1, -1):
            for lane in range(_LANES):
                drawn[lane] = outcomes[min(first + lane, n_replicates - 1), i]
            for lane in range(_LANES):
                tail[lane] = carried * tail[lane] + (offset[i] + weight[i] * drawn[lane])
                total[lane] += gain[i] * (tail[lane] * tail[lane])
            carried = decay[i]
        for lane in range(min(_LANES, n_replicates - first)):
            forms[first + lane] = total[lane]
    return forms
