"""Sums of the residuals of groups: with random signs, and of simulated labels that share an effect."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32, uint64

from caltest._compiled._jit import inner, kernel

LANES = 32  # replicates of a word
_TILE = 256  # rows: words are looked up before they are used, so that no row waits for the memory


@kernel
def pack_signs(signs, words):
    """Fill ``words (n_words, n_groups) uint32``: bit r of word w tells whether sign LANES * w + r is positive."""
    words[:] = 0
    for r in range(signs.shape[0]):
        word = words[r // LANES]
        shift = uint32(r % LANES)
        for g in range(signs.shape[1]):
            word[g] |= uint32(signs[r, g] > 0) << shift


@kernel
def add_signed_terms(words, group, cell, terms, sums):
    """Add ``terms (n_rows, n_terms)`` times the signs of their groups to ``sums (n_words, n_cells, n_terms, LANES)``.

    Rows are added one after the other, so that rounding does not depend on how many replicates are evaluated at once.
    """
    tile = np.empty(_TILE, np.uint32)
    for w in range(words.shape[0]):
        for start in range(0, group.size, _TILE):
            size = min(_TILE, group.size - start)
            for i in range(size):
                tile[i] = words[w, uint64(group[start + i])]
            for i in range(size):
                bits = np.int64(tile[i])
                b = uint64(cell[start + i])
                for k in range(terms.shape[1]):
                    twice = 2 * terms[start + i, k]
                    minus = -terms[start + i, k]
                    for r in range(LANES):
                        sums[w, b, k, r] += float64((bits >> r) & 1) * twice + minus


@kernel
def follow_signed_paths(words, group, residual, is_end, state):
    """Move paths on by ``residual (n_rows,)`` times the signs of their ``group``; they are read where ``is_end``.

    ``state (n_words, 3, LANES)`` holds the largest and the smallest value, the start at 0 included, and the last one.
    """
    tile = np.empty(_TILE, np.uint32)
    high, low, last = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for w in range(words.shape[0]):
        for r in range(LANES):  # copies of slices take seconds to compile
            high[r], low[r], last[r] = state[w, 0, r], state[w, 1, r], state[w, 2, r]
        for start in range(0, group.size, _TILE):
            size = min(_TILE, group.size - start)
            for i in range(size):
                tile[i] = words[w, uint64(group[start + i])]
            for i in range(size):
                bits = np.int64(tile[i])
                twice = 2 * residual[start + i]
                minus = -residual[start + i]
                is_read = is_end[start + i]
                for r in range(LANES):
                    value = last[r] + (float64((bits >> r) & 1) * twice + minus)
                    last[r] = value
                    high[r] = value if (value > high[r]) & is_read else high[r]
                    low[r] = value if (value < low[r]) & is_read else low[r]
        for r in range(LANES):
            state[w, 0, r], state[w, 1, r], state[w, 2, r] = high[r], low[r], last[r]


ROUNDING = 1e-12
"""A sum of squares that is smaller than this share of its terms is 0."""


class Layout(NamedTuple):
    """What does not depend on the labels.

    Attributes
    ----------
    start, group_start : arrays of shape (n_segments + 1,), (n_groups + 1,)
        First observation of each segment, first segment of each group.
    cell : array of shape (n_segments,)
        Cell of each segment.
    lever, lever_mass : arrays of shape (n_segments,)
        One over the root of one minus the share of the segment in its cell, and that times its weight.
    mass, count, factor : arrays of shape (n_segments,), (n_cells,), (n_cells,)
        Weight of each segment and of each cell, and the factor of the pairs of a cell.
    cross : array of shape (n_cells, n_cells)
        Sums over the groups of the products of ``lever_mass`` in two cells.
    predicted : array of shape (n_segments, n_columns)
        Weighted sums of predictions.
    """

    start: Any
    group_start: Any
    cell: Any
    lever: Any
    lever_mass: Any
    mass: Any
    count: Any
    factor: Any
    cross: Any
    predicted: Any


@inner
def _add_segment(u, factor, lever, of_group, of_cell, value):
    # Add the sums of a segment, (n_columns, n_draws), to those of its group and of its cell, and its square to T.
    for k in range(u.shape[0]):
        for r in range(u.shape[1]):
            x = u[k, r]
            of_cell[k, r] += x
            of_group[k, r] += lever * x
            value[r] -= factor * x * x


@inner
def _end_group(first, last, layout, of_group, along, variance):
    # The squared length of the sum of a group, and its products with the weights of the group in each cell.
    n_columns, n_draws = of_group.shape
    for s in range(first, last):
        b = layout.cell[s]
        w = layout.lever_mass[s]
        for k in range(n_columns):
            for r in range(n_draws):
                along[b, k, r] += w * of_group[k, r]
    for k in range(n_columns):
        for r in range(n_draws):
            variance[r] += of_group[k, r] * of_group[k, r]
            of_group[k, r] = 0.0


@inner
def _finish(layout, whole, along, value, variance):
    # T, and the sum over the groups of the squared lengths of their centred sums; `whole` becomes the mean residual.
    n_cells, n_columns, n_draws = whole.shape
    total = layout.count.sum()
    for b in range(n_cells):
        f = layout.factor[b]
        for k in range(n_columns):
            for r in range(n_draws):
                x = whole[b, k, r]
                value[r] += f * x * x
                x /= layout.count[b]
                variance[r] -= 2.0 * x * along[b, k, r]
                whole[b, k, r] = x
    for b in range(n_cells):
        for a in range(n_cells):
            c = layout.cross[a, b]
            for k in range(n_columns):
                for r in range(n_draws):
                    variance[r] += c * whole[a, k, r] * whole[b, k, r]
    for r in range(n_draws):
        value[r] /= total
        variance[r] = max(variance[r], 0.0)


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
def shocked_sums(layout, shock, noise, bound, correlation, prob, weight, square, keep, value, inflation):
    """Fill ``value`` and ``inflation``, both ``(n_correlations, n_draws)``, of simulated labels.

    The latent number of an observation is ``sqrt(r) * shock + sqrt(1 - r) * noise``, with the ``shock (n_groups,
    n_draws)`` of its group and its own ``noise (n_samples, n_draws)``, for each of the correlations r; its label is
    the number of entries of ``bound (n_samples, n_bounds)`` that are not above it, and falls into one of the columns of
    ``prob (n_samples, n_columns)``; of two outcomes there is only the first column. Value is T, inflation the variance
    of the sums of groups over that of independent observations, for which ``square (n_cells,)`` holds sums of squared
    weights and ``keep (n_cells,)`` corrects for their mean.
    """
    n_columns = prob.shape[1]
    n_cells = len(layout.count)
    n_draws = shock.shape[1]
    first_predicted = np.zeros((n_cells, n_columns))
    second_predicted = np.zeros(n_cells)
    for s in range(len(layout.cell)):
        b = layout.cell[s]
        for i in range(layout.start[s], layout.start[s + 1]):
            for k in range(n_columns):
                p = prob[i, k]
                first_predicted[b, k] += weight[i] * weight[i] * p
                second_predicted[b] += weight[i] * weight[i] * p * p
    u = np.empty((n_columns, n_draws))
    whole = np.empty((n_cells, n_columns, n_draws))
    along = np.empty((n_cells, n_columns, n_draws))
    first = np.empty((n_cells, n_columns, n_draws))
    second = np.empty((n_cells, n_draws))
    of_group = np.zeros((n_columns, n_draws))
    z = np.empty(n_draws, np.float32)
    for c in range(len(correlation)):
        shared = np.float32(math.sqrt(correlation[c]))
        apart = np.float32(math.sqrt(1.0 - correlation[c]))
        whole[:] = 0.0
        along[:] = 0.0
        value[c, :] = 0.0
        inflation[c, :] = 0.0
        for b in range(n_cells):
            second[b, :] = second_predicted[b]
            for k in range(n_columns):
                first[b, k, :] = -first_predicted[b, k]
        for g in range(len(shock)):
            centre = shock[g]
            for s in range(layout.group_start[g], layout.group_start[g + 1]):
                b = layout.cell[s]
                for k in range(n_columns):
                    u[k, :] = -layout.predicted[s, k]
                for i in range(layout.start[s], layout.start[s + 1]):
                    for r in range(n_draws):
                        z[r] = shared * centre[r] + apart * noise[i, r]
                    _add_labels(z, bound[i], weight[i], prob[i], u, first[b], second[b])
                _add_segment(u, layout.factor[b], layout.lever[s], of_group, whole[b], value[c])
            _end_group(layout.group_start[g], layout.group_start[g + 1], layout, of_group, along, inflation[c])
        _finish(layout, whole, along, value[c], inflation[c])
        own = np.zeros(n_draws)
        largest = np.zeros(n_draws)
        for b in range(n_cells):
            for r in range(n_draws):
                change = 0.0
                length = 0.0
                terms = second_predicted[b]
                for k in range(n_columns):
                    change += whole[b, k, r] * first[b, k, r]
                    length += whole[b, k, r] * whole[b, k, r]
                    terms += first[b, k, r] + first_predicted[b, k]
                own[r] += keep[b] * max(second[b, r] - 2.0 * change + length * square[b], 0.0)
                largest[r] += keep[b] * (terms + length * square[b])
        for r in range(n_draws):  # equal residuals differ by rounding alone
            inflation[c, r] = inflation[c, r] / own[r] if own[r] > ROUNDING * largest[r] else 0.0


@kernel
def signed_sums_of_groups(layout, shock, base, pattern, value, along, variance):
    """Fill ``value``, ``variance (n_draws,)`` and ``along (n_patterns, n_draws)`` of random signs of groups.

    The sums of a segment are ``base (n_segments, n_columns)`` with the sign of the ``shock`` of its group, plus its
    mass times the mean residual of its cell: a number c times one of the patterns ``(n_patterns, n_cells, n_columns)``,
    of the squared error theta. Then T is ``value + c * along + theta``. The variance of the sums of groups does not
    depend on c.
    """
    n_columns = base.shape[1]
    n_draws = shock.shape[1]
    n_cells = len(layout.count)
    u = np.empty((n_columns, n_draws))
    whole = np.zeros((n_cells, n_columns, n_draws))
    by_mass = np.zeros((n_cells, n_columns, n_draws))
    centre = np.zeros((n_cells, n_columns, n_draws))
    of_group = np.zeros((n_columns, n_draws))
    value[:] = 0.0
    variance[:] = 0.0
    along[:] = 0.0
    for g in range(len(shock)):
        sign = shock[g]
        for s in range(layout.group_start[g], layout.group_start[g + 1]):
            b = layout.cell[s]
            for k in range(n_columns):
                length = base[s, k]
                for r in range(n_draws):
                    u[k, r] = -length if sign[r] < 0 else length
                for r in range(n_draws):
                    by_mass[b, k, r] += layout.mass[s] * u[k, r]
            _add_segment(u, layout.factor[b], layout.lever[s], of_group, whole[b], value)
        _end_group(layout.group_start[g], layout.group_start[g + 1], layout, of_group, centre, variance)
    total = layout.count.sum()
    for j in range(len(pattern)):
        for b in range(n_cells):
            for k in range(n_columns):
                scale = 2.0 * layout.factor[b] * pattern[j, b, k] / total
                for r in range(n_draws):
                    along[j, r] += scale * (layout.count[b] * whole[b, k, r] - by_mass[b, k, r])
    _finish(layout, whole, centre, value, variance)


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
