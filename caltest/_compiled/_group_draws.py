"""Sums of the residuals of groups in cells, of simulated labels that share a shock in each group, or of random signs.

Draws are the last axis of all arrays, so that every step is a vector operation over the draws of a block.
"""

import math

import numpy as np

from caltest._compiled._jit import inner, kernel


@inner
def _finish(sums, segment_group, segment_cell, mass, lever, count, factor, total, whole, found, value, variance):
    # T, and the sum over the groups of the squared lengths of their centred sums; `whole` is left as the mean residual.
    n_segments, n_columns, n_draws = sums.shape
    whole[:] = 0.0
    value[:] = 0.0
    variance[:] = 0.0
    found[:] = 0.0
    for s in range(n_segments):
        b = segment_cell[s]
        f = factor[b]
        for k in range(n_columns):
            for r in range(n_draws):
                x = sums[s, k, r]
                whole[b, k, r] += x
                value[r] -= f * x * x
    for b in range(len(count)):
        f = factor[b]
        for k in range(n_columns):
            for r in range(n_draws):
                x = whole[b, k, r]
                value[r] += f * x * x
                whole[b, k, r] = x / count[b]
    for s in range(n_segments):
        b = segment_cell[s]
        w = mass[s]
        factor_of_share = lever[s]
        last = s + 1 == n_segments or segment_group[s + 1] != segment_group[s]
        for k in range(n_columns):
            for r in range(n_draws):
                found[k, r] += (sums[s, k, r] - w * whole[b, k, r]) * factor_of_share
            if last:
                for r in range(n_draws):
                    variance[r] += found[k, r] * found[k, r]
                    found[k, r] = 0.0
    for r in range(n_draws):
        value[r] /= total


@inner
def _add_labels(z, bound, w, p, sums, first, second):
    # Add the label of one observation in every draw; of two outcomes without a branch.
    n_columns, n_draws = sums.shape
    if n_columns == 1:
        edge = bound[0]
        square = w * w
        change = square * (1.0 - 2.0 * p[0])
        for r in range(n_draws):
            y = 1.0 if z[r] < edge else 0.0
            sums[0, r] += y * w
            first[0, r] += y * square
            second[r] += y * change
        return
    for r in range(n_draws):
        y = 0
        while y < len(bound) and z[r] >= bound[y]:
            y += 1
        sums[y, r] += w
        first[y, r] += w * w
        second[r] += w * w * (1.0 - 2.0 * p[y])


@kernel
def shocked_sums(
    shock,
    noise,
    bound,
    correlation,
    prob,
    weight,
    start,
    segment_group,
    segment_cell,
    mass,
    lever,
    count,
    factor,
    total,
    square,
    keep,
    value,
    inflation,
):
    """Fill ``value`` and ``inflation``, both ``(n_correlations, n_draws)``, of simulated labels.

    The latent number of an observation is ``sqrt(r) * shock + sqrt(1 - r) * noise``, with the ``shock (n_groups,
    n_draws)`` of its group and its own ``noise (n_samples, n_draws)``, for each of the correlations r; its label is
    the number of entries of ``bound (n_samples, n_bounds)`` that are not above it, and falls into one of the columns of
    ``prob (n_samples, n_columns)``; of two outcomes there is only the first column. Observations are sorted by segment,
    a group in a cell, and segments by group. Value is T, inflation the variance of the sums of groups over that of
    independent observations.
    """
    n_columns = prob.shape[1]
    n_segments = len(mass)
    n_cells = len(count)
    n_draws = shock.shape[1]
    predicted = np.zeros((n_segments, n_columns))
    first_predicted = np.zeros((n_cells, n_columns))
    second_predicted = np.zeros(n_cells)
    for s in range(n_segments):
        b = segment_cell[s]
        for i in range(start[s], start[s + 1]):
            for k in range(n_columns):
                p = prob[i, k]
                predicted[s, k] += weight[i] * p
                first_predicted[b, k] += weight[i] * weight[i] * p
                second_predicted[b] += weight[i] * weight[i] * p * p
    sums = np.empty((n_segments, n_columns, n_draws))
    whole = np.empty((n_cells, n_columns, n_draws))
    first = np.empty((n_cells, n_columns, n_draws))
    second = np.empty((n_cells, n_draws))
    found = np.empty((n_columns, n_draws))
    z = np.empty(n_draws, np.float32)
    for c in range(len(correlation)):
        shared = np.float32(math.sqrt(correlation[c]))
        apart = np.float32(math.sqrt(1.0 - correlation[c]))
        for b in range(n_cells):
            second[b, :] = second_predicted[b]
            for k in range(n_columns):
                first[b, k, :] = -first_predicted[b, k]
        for s in range(n_segments):
            b = segment_cell[s]
            centre = shock[segment_group[s]]
            for k in range(n_columns):
                sums[s, k, :] = -predicted[s, k]
            for i in range(start[s], start[s + 1]):
                for r in range(n_draws):
                    z[r] = shared * centre[r] + apart * noise[i, r]
                _add_labels(z, bound[i], weight[i], prob[i], sums[s], first[b], second[b])
        variance = inflation[c]
        _finish(sums, segment_group, segment_cell, mass, lever, count, factor, total, whole, found, value[c], variance)
        own = np.zeros(n_draws)
        for b in range(n_cells):
            for r in range(n_draws):
                along = 0.0
                length = 0.0
                for k in range(n_columns):
                    along += whole[b, k, r] * first[b, k, r]
                    length += whole[b, k, r] * whole[b, k, r]
                own[r] += keep[b] * max(second[b, r] - 2.0 * along + length * square[b], 0.0)
        for r in range(n_draws):
            variance[r] = variance[r] / own[r] if own[r] > 0 else 0.0


@kernel
def signed_sums_of_groups(
    shock, base, shift, segment_group, segment_cell, mass, lever, count, factor, total, value, variance
):
    """Fill ``value`` and ``variance``, both ``(n_draws,)``, of sums of groups whose signs are those of ``shock``.

    The sums of a segment are ``base (n_segments, n_columns)`` times the sign of its group, plus its mass times the
    ``shift (n_cells, n_columns)`` of its cell.
    """
    n_segments, n_columns = base.shape
    n_draws = shock.shape[1]
    sums = np.empty((n_segments, n_columns, n_draws))
    whole = np.empty((len(count), n_columns, n_draws))
    found = np.empty((n_columns, n_draws))
    for s in range(n_segments):
        sign = shock[segment_group[s]]
        for k in range(n_columns):
            middle = mass[s] * shift[segment_cell[s], k]
            length = base[s, k]
            for r in range(n_draws):
                sums[s, k, r] = middle + (-length if sign[r] < 0 else length)
    _finish(sums, segment_group, segment_cell, mass, lever, count, factor, total, whole, found, value, variance)


@kernel
def independent_sums(noise, bound, prob, weight, cell, count, factor, total, value):
    """Fill ``value (n_draws,)``, T of simulated labels of independent weighted observations, as in `shocked_sums`."""
    n_samples, n_columns = prob.shape
    n_cells = len(count)
    n_draws = noise.shape[1]
    predicted = np.zeros((n_cells, n_columns))
    squares = 0.0
    for i in range(n_samples):
        for k in range(n_columns):
            predicted[cell[i], k] += weight[i] * prob[i, k]
            squares += factor[cell[i]] * (weight[i] * prob[i, k]) ** 2
    whole = np.empty((n_cells, n_columns, n_draws))
    squared = np.zeros((n_cells, n_columns, n_draws))
    own = np.zeros((n_cells, n_draws))
    for b in range(n_cells):
        for k in range(n_columns):
            whole[b, k, :] = -predicted[b, k]
    for i in range(n_samples):
        _add_labels(noise[i], bound[i], weight[i], prob[i], whole[cell[i]], squared[cell[i]], own[cell[i]])
    value[:] = -squares
    for b in range(n_cells):
        for r in range(n_draws):
            value[r] -= factor[b] * own[b, r]
        for k in range(n_columns):
            for r in range(n_draws):
                value[r] += factor[b] * whole[b, k, r] * whole[b, k, r]
    for r in range(n_draws):
        value[r] /= total


@kernel
def correlation_terms(bound, weight, start, segment_group, n_columns, terms):
    """Add to ``terms (n_terms,)`` what each power of the latent correlation adds to the pairs of the same group.

    The sum over pairs i != j of a group, and over the first columns, of the covariances of the weighted labels: that of
    two normal numbers of correlation r that lie below a and below b is the sum over m of r^m h_m(a) h_m(b), with
    h_m(a) = phi(a) He_{m-1}(a) / sqrt(m!) (Mehler).
    """
    n_bounds = bound.shape[1]
    n_terms = len(terms)
    below = np.zeros((n_bounds + 1, n_terms))  # of each bound, the last one is infinite
    sums = np.zeros((n_columns, n_terms))
    for s in range(len(segment_group)):
        for i in range(start[s], start[s + 1]):
            for c in range(n_bounds):
                a = np.float64(bound[i, c])
                if abs(a) > 38.0:  # the density is 0
                    below[c, :] = 0.0
                    continue
                low = 0.0
                high = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
                for m in range(n_terms):
                    below[c, m] = high / math.sqrt(m + 1.0)
                    low, high = high, (a * high - math.sqrt(float(m)) * low) / math.sqrt(m + 1.0)
            for k in range(n_columns):
                for m in range(n_terms):
                    term = weight[i] * (below[k, m] - (below[k - 1, m] if k > 0 else 0.0))
                    sums[k, m] += term
                    terms[m] -= term * term
        if s + 1 == len(segment_group) or segment_group[s + 1] != segment_group[s]:
            for k in range(n_columns):
                for m in range(n_terms):
                    terms[m] += sums[k, m] * sums[k, m]
                    sums[k, m] = 0.0
