r"""The difference of two debiased squared l2 errors of the same groups, and its variance, for many replicates.

An *entry* is a group in a cell (bin) of one of the models, and holds the sums :math:`R_{ek}` of the weighted residuals
of every outcome. Cells of the first model have the sign :math:`s_c = 1`, those of the second one -1. With the weight
W, the weights :math:`W_c` of cells and :math:`W_e` of entries, the factor :math:`c_c = W_c / (W_c^2 - \sum_e W_e^2)`
(0 in a cell of a single group) and the means :math:`m_c = \sum_e R_e / W_c`,

.. math:: D = \frac1W \sum_c s_c c_c \Bigl(\bigl|\sum_e R_e\bigr|^2 - \sum_e |R_e|^2\Bigr), \qquad
          u_e = (R_e - W_e m_c) \bigl(1 - W_e / W_c\bigr)^{-1/2}.

The variance of the part that is linear in the groups is :math:`L = \frac4{W^2} \sum_g (\sum_{e \in g} s_c u_e \cdot
m_c)^2`, that of the pairs of groups :math:`P = \frac2{W^2} \sum_{g \ne h} (\sum_c s_c c_c\, u_{gc} \cdot u_{hc})^2`.
The linear part contains the noise of the pairs twice, so that the variance is :math:`\max(P, L - P)`.
"""

import math

import numpy as np
from numba import uint64

from caltest._compiled._jit import inner, kernel


@inner
def _cross_of_events(start, joint, joint_weight, vector, cross):
    # sum over g and h of H_gh^2 from the sums over groups of products of two cells' vectors of one column
    values = vector.ravel()
    sums = cross.ravel()
    sums[:] = 0.0
    place = uint64(0)
    for g in range(start.size - 1):
        stop = uint64(start[g + 1])
        for e in range(uint64(start[g]), stop):
            own = values[e]
            for f in range(e, stop):
                sums[uint64(joint[place])] += own * values[f]
                place += uint64(1)
    total = 0.0
    for at in range(sums.size):
        total += joint_weight[at] * sums[at] * sums[at]
    return total


@inner
def _cross_by_cells(start, joint, joint_weight, vector, cross):
    # the same of several columns
    n_outcomes = vector.shape[1]
    cross[:] = 0.0
    place = uint64(0)
    for g in range(start.size - 1):
        stop = uint64(start[g + 1])
        for e in range(uint64(start[g]), stop):
            for f in range(e, stop):
                table = cross[uint64(joint[place])]
                place += uint64(1)
                other = vector[f]
                for k in range(n_outcomes):
                    own = vector[e, k]
                    row = table[k]
                    for j in range(n_outcomes):
                        row[j] += own * other[j]
    total = 0.0
    for at in range(joint_weight.size):
        squares = 0.0
        for k in range(n_outcomes):
            for j in range(n_outcomes):
                squares += cross[at, k, j] * cross[at, k, j]
        total += joint_weight[at] * squares
    return total


@inner
def _own_squares(start, cell, sign, vector):
    # sum_g H_gg^2
    total = 0.0
    for g in range(start.size - 1):
        mine = 0.0
        for e in range(start[g], start[g + 1]):
            for k in range(vector.shape[1]):
                mine += sign[cell[e]] * vector[e, k] * vector[e, k]
        total += mine * mine
    return total


@inner
def _cross_by_groups(by_cell, cell_start, group, sign, vector, cross):
    # sum over g and h of H_gh^2 - sum_g H_gg^2 from the inner products of groups, cross[0] (n_groups, n_groups)
    n_groups = cross.shape[1]
    cross[:] = 0.0
    for c in range(cell_start.size - 1):
        for x in range(cell_start[c], cell_start[c + 1]):
            e = by_cell[x]
            for y in range(cell_start[c], x):
                f = by_cell[y]
                product = 0.0
                for k in range(vector.shape[1]):
                    product += vector[e, k] * vector[f, k]
                cross[0, group[e], group[f]] += sign[c] * product
    total = 0.0
    for g in range(n_groups):
        for h in range(g):
            both = cross[0, g, h] + cross[0, h, g]
            total += 2.0 * both * both
    return total


@inner
def _contrast(sums, design, whole, vector, cross):
    # D, P and L of one table of sums
    start, group, cell, mass, lever, count, factor, sign, joint, joint_weight, by_cell, cell_start, total = design
    n_outcomes = sums.shape[1]
    whole[:] = 0.0
    value = 0.0
    for e in range(cell.size):
        c = cell[e]
        squares = 0.0
        for k in range(n_outcomes):
            whole[c, k] += sums[e, k]
            squares += sums[e, k] * sums[e, k]
        value -= sign[c] * factor[c] * squares
    for c in range(count.size):
        for k in range(n_outcomes):
            value += sign[c] * factor[c] * whole[c, k] * whole[c, k]
            whole[c, k] /= count[c]
    linear = 0.0
    for g in range(start.size - 1):
        score = 0.0
        for e in range(start[g], start[g + 1]):
            c = cell[e]
            root = math.sqrt(factor[c])
            for k in range(n_outcomes):
                centred = (sums[e, k] - mass[e] * whole[c, k]) * lever[e]
                vector[e, k] = root * centred
                if factor[c] > 0.0:
                    score += sign[c] * centred * whole[c, k]
        linear += score * score
    if joint.size > 0:
        if n_outcomes == 1:
            pairs = _cross_of_events(start, joint, joint_weight, vector, cross)
        else:
            pairs = _cross_by_cells(start, joint, joint_weight, vector, cross)
        pairs -= _own_squares(start, cell, sign, vector)
    else:
        pairs = _cross_by_groups(by_cell, cell_start, group, sign, vector, cross)
    return value / total, 2.0 * max(pairs, 0.0) / total**2, 4.0 * linear / total**2


@kernel
def contrast_sums(sums, design, whole, vector, cross, out):
    """Fill ``out (n_replicates, 3)`` with D, P and L of ``sums (n_replicates, n_entries, n_outcomes)``.

    ``design`` is that of `caltest.comparison._group_contrast.Contrast`; the other arrays are memory to work in.
    """
    for r in range(sums.shape[0]):
        out[r, 0], out[r, 1], out[r, 2] = _contrast(sums[r], design, whole, vector, cross)


@kernel
def contrast_labels(
    shock, noise, shared, own, group, bound, entry, weight, outcome, expected, design, whole, vector, cross, out
):
    """Fill ``out (n_replicates, 3)`` with D, P and L of simulated labels.

    The latent number of an observation is ``shared * shock + own * noise``, with the ``shock (n_replicates, n_groups)``
    of its ``group`` and its ``noise (n_replicates, n_samples)``; its label is the number of entries of ``bound
    (n_samples, n_labels - 1)`` that are not above it. ``entry (n_models, n_samples)`` is the entry of each observation,
    ``outcome (n_models, n_labels)`` the column of the sums to which a label belongs, -1 if to none, and ``expected
    (n_entries, n_outcomes)`` the sums of the predictions.
    """
    sums = np.empty(expected.shape)
    label = np.empty(weight.size, np.int64)
    for r in range(noise.shape[0]):
        for i in range(weight.size):
            z = shared * shock[r, group[i]] + own * noise[r, i]
            number = 0
            for k in range(bound.shape[1]):
                number += bound[i, k] <= z
            label[i] = number
        for e in range(expected.shape[0]):
            for k in range(expected.shape[1]):
                sums[e, k] = -expected[e, k]
        for m in range(entry.shape[0]):
            for i in range(weight.size):
                k = outcome[m, label[i]]
                if k >= 0:
                    sums[entry[m, i], k] += weight[i]
        out[r, 0], out[r, 1], out[r, 2] = _contrast(sums, design, whole, vector, cross)


@kernel
def contrast_signs(shock, centre, deviation, group, design, whole, vector, cross, out):
    """Fill ``out (n_replicates, 3)`` with D, P and L of sums ``centre + sign * deviation``.

    The sign of a group is that of its ``shock (n_replicates, n_groups)``; sums are ``(n_entries, n_outcomes)``.
    """
    sums = np.empty(centre.shape)
    for r in range(shock.shape[0]):
        for e in range(centre.shape[0]):
            for k in range(centre.shape[1]):
                size = deviation[e, k]
                sums[e, k] = centre[e, k] + (size if shock[r, group[e]] >= 0.0 else -size)
        out[r, 0], out[r, 1], out[r, 2] = _contrast(sums, design, whole, vector, cross)
