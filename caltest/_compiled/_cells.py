"""Counting outcomes in cells: the sums from which every binned statistic is made."""

import numpy as np
from numba import uint32, uint64

from caltest._compiled._jit import inner, kernel, reduction, unless_one

_LANES = 32
_MANY = 2048  # counters
_TILE = 2048  # values, a multiple of the lanes


@inner
def _counter(cells, i, outcome, n_outcomes, of_entries):
    # of the entry of an outcome, of which each has a cell, or of an outcome in the cell of its row
    if of_entries:
        return uint64(cells[uint64(i) * n_outcomes + uint64(outcome)])
    return uint64(cells[uint64(i)]) * n_outcomes + uint64(outcome)


def _count_outcomes_of_one(outcomes, cell, n_outcomes, n_counters):
    row, outcome = np.arange(len(cell)), outcomes[0]
    counter = cell[row, outcome] if cell.shape[1] > 1 else cell[:, 0].astype(np.int64) * n_outcomes + outcome
    return np.bincount(counter, minlength=n_counters)[None]


@unless_one(_count_outcomes_of_one)
@kernel
def count_outcomes(outcomes, cell, n_outcomes, n_counters):
    """Return ``(n_replicates, n_counters) int64``: how many rows fell to an outcome of each counter.

    With ``cell (n_samples, 1)`` the counters are ``cell * n_outcomes + outcome``, the outcomes in each cell. With
    ``cell (n_samples, n_outcomes)``, a cell for each entry, they are the cells of the entries that outcomes select.

    Four interleaved tables, because neighbouring rows often share a cell and an increment must wait for the previous
    one of the same address. Neighbours rarely share one of many counters, which have one table.
    """
    n_replicates, n_samples = outcomes.shape
    cells = cell.ravel()
    k = uint64(n_outcomes)
    each = cell.shape[1] > 1
    counts = np.zeros((n_replicates, n_counters), np.int64)
    table = np.empty((4, n_counters), np.int64)
    quads = n_samples // 4 * 4 if n_counters <= _MANY else 0
    for r in range(n_replicates):
        count = counts[r]
        outcome = outcomes[r]
        for i in range(quads, n_samples):
            count[_counter(cells, i, outcome[i], k, each)] += 1
        if quads == 0:
            continue
        table[:] = 0
        for i in range(0, quads, 4):
            table[0, _counter(cells, i, outcome[i], k, each)] += 1
            table[1, _counter(cells, i + 1, outcome[i + 1], k, each)] += 1
            table[2, _counter(cells, i + 2, outcome[i + 2], k, each)] += 1
            table[3, _counter(cells, i + 3, outcome[i + 3], k, each)] += 1
        for j in range(n_counters):
            count[j] += table[0, j] + table[1, j] + table[2, j] + table[3, j]
    return counts


@kernel
def weigh_outcomes(outcomes, cell, weight, n_outcomes, n_counters):
    """Return ``(n_replicates, n_counters) float64``: as `count_outcomes`, each row counting its weight."""
    n_replicates, n_samples = outcomes.shape
    cells = cell.ravel()
    sums = np.zeros((n_replicates, n_counters))
    for r in range(n_replicates):
        for i in range(n_samples):
            sums[r, _counter(cells, i, outcomes[r, i], uint64(n_outcomes), cell.shape[1] > 1)] += weight[i]
    return sums


def _count_events_of_one(outcomes, start):
    total = np.concatenate([[0], np.cumsum(outcomes[0], dtype=np.int64)])
    return np.diff(total[start])[None]


@unless_one(_count_events_of_one)
@kernel
def count_events(outcomes, start):
    """Return ``(n_replicates, n_cells) int64``: events (outcome 1) in the rows ``start[b] : start[b + 1]``.

    For two outcomes and rows sorted by cell: a sum of bytes, which vectorises.
    """
    n_replicates = outcomes.shape[0]
    n_cells = start.size - 1
    counts = np.empty((n_replicates, n_cells), np.int64)
    for r in range(n_replicates):
        for b in range(n_cells):
            outcome = outcomes[r, start[b] : start[b + 1]]
            total = uint32(0)
            for i in range(outcome.size):
                total += uint32(outcome[i])
            counts[r, b] = total
    return counts


def _sum_over_events_of_one(outcomes, value, start):
    # Both sums add one number after the other, as the kernel does.
    rows = slice(start[0], start[-1])
    size = np.diff(start)
    # The lane of a row counts from the first row of its cell; a cell has as many lanes before it as those before have.
    own = np.arange(start[0], start[-1]) - np.repeat(start[:-1], size) & _LANES - 1
    lane = own + np.repeat(np.arange(0, _LANES * size.size, _LANES), size)
    lanes = np.bincount(lane, outcomes[0, rows] * value[rows], minlength=size.size * _LANES)
    return np.cumsum(lanes.reshape(size.size, _LANES), axis=1)[None, :, -1]


@unless_one(_sum_over_events_of_one)
@kernel
def sum_over_events(outcomes, value, start):
    """Return ``(n_replicates, n_cells)``: the sum of ``value`` over the events in the rows ``start[b] : start[b + 1]``.

    As `count_events`, each row counting its value. Every lane is summed in row order, so that the loop over lanes is
    one vector operation. A tile of values stays in the first-level cache while every replicate passes over it.
    """
    n_replicates = outcomes.shape[0]
    n_cells = start.size - 1
    sums = np.empty((n_replicates, n_cells))
    lanes = np.empty((n_replicates, _LANES))
    for b in range(n_cells):
        lanes[:] = 0.0
        for begin in range(start[b], start[b + 1], _TILE):
            size = min(_TILE, start[b + 1] - begin)
            term = value[begin : begin + size]
            full = size // _LANES * _LANES
            for r in range(n_replicates):
                outcome = outcomes[r, begin : begin + size]
                lane_sums = lanes[r]
                for i in range(0, full, _LANES):
                    for lane in range(_LANES):
                        lane_sums[lane] += outcome[i + lane] * term[i + lane]
                for i in range(full, size):
                    lane_sums[i - full] += outcome[i] * term[i]
        for r in range(n_replicates):
            total = 0.0
            for lane in range(_LANES):
                total += lanes[r, lane]
            sums[r, b] = total
    return sums


@reduction
def _weigh(drawn, column):
    total = 0.0
    for i in range(column.size):
        total += float(drawn[i] & np.uint16(255)) * column[i]
    return total


@kernel
def sum_multiplicities(drawn, columns, start):
    """Return counts, sums of probabilities and outcome counts in the cells of every resample of two outcomes.

    Shapes ``(n_replicates, n_cells)``, ``(n_replicates, n_cells, 2)`` twice. ``drawn (n_replicates, n_samples)`` says
    how often each row was drawn + 256 times how often with the event, ``columns (2, n_samples)`` are probabilities;
    replicate r has its own cells, the rows ``start[r, b] : start[r, b + 1]``.
    """
    n_replicates = drawn.shape[0]
    n_cells = start.shape[1] - 1
    counts = np.empty((n_replicates, n_cells))
    sums = np.empty((n_replicates, n_cells, 2))
    observed = np.empty((n_replicates, n_cells, 2))
    for r in range(n_replicates):
        for b in range(n_cells):
            cell = drawn[r, start[r, b] : start[r, b + 1]]
            count = uint32(0)
            happened = uint32(0)
            for i in range(cell.size):
                count += uint32(cell[i] & np.uint16(255))
                happened += uint32(cell[i] >> np.uint16(8))
            counts[r, b] = count
            for k in range(2):
                sums[r, b, k] = _weigh(cell, columns[k, start[r, b] : start[r, b + 1]])
            observed[r, b, 0] = count - happened
            observed[r, b, 1] = happened
    return counts, sums, observed


@kernel
def dyadic_errors(outcomes, change, start, expected, squares, inverse):
    """Return ``(n_scales, n_replicates)``: sums over cells of (residual^2 - sum of squared residuals) / rows.

    For two outcomes and rows sorted by probability. The finest scale has m cells, the next coarser m / 2, down to 2;
    finest cell b holds the rows ``start[b] : start[b + 1]``. ``expected`` and ``squares (m,)`` are the expected events
    and the sum of squared residuals if no event happened there; an event of row i adds ``change[i]`` to the latter.
    ``inverse`` holds 1 / rows of the cells, 0 if empty, of all scales one after the other, the finest first.
    """
    n_replicates = outcomes.shape[0]
    m = start.size - 1
    n_scales = 0
    while 2 << n_scales <= m:
        n_scales += 1
    residual = np.empty(m)
    square = np.empty(m)
    errors = np.empty((n_scales, n_replicates))
    for r in range(n_replicates):
        outcome = outcomes[r]
        for b in range(m):
            events = 0
            added = 0.0
            for i in range(start[b], start[b + 1]):
                events += outcome[i]
                added += outcome[i] * change[i]
            residual[b] = events - expected[b]
            square[b] = squares[b] + added
        size = m
        offset = 0
        for scale in range(n_scales - 1, -1, -1):
            s0 = s1 = 0.0
            for b in range(0, size, 2):
                s0 += (residual[b] * residual[b] - square[b]) * inverse[offset + b]
                s1 += (residual[b + 1] * residual[b + 1] - square[b + 1]) * inverse[offset + b + 1]
            errors[scale, r] = s0 + s1
            offset += size
            size //= 2
            for b in range(size):
                residual[b] = residual[2 * b] + residual[2 * b + 1]
                square[b] = square[2 * b] + square[2 * b + 1]
    return errors
