"""Counting outcomes in cells: the sums from which every binned statistic is made."""

import numpy as np
from numba import uint32, uint64

from caltest._compiled._jit import kernel, kernel_unless_one, reduction

_LANES = 32
_MANY = 2048  # counters
_TILE = 2048  # values, a multiple of the lanes


def _count_outcomes_of_one(outcomes, cell, n_cells, n_outcomes):
    return np.bincount(cell * n_outcomes + outcomes[0], minlength=n_cells * n_outcomes)[None]


@kernel_unless_one(_count_outcomes_of_one)
def count_outcomes(outcomes, cell, n_cells, n_outcomes):
    """Return ``(n_replicates, n_cells * n_outcomes) int64``: rows of each cell that fell to each outcome.

    Four interleaved tables, because neighbouring rows often share a cell and an increment must wait for the previous
    one of the same address. Neighbours rarely share one of many counters, which have one table.
    """
    n_replicates, n_samples = outcomes.shape
    counts = np.empty((n_replicates, n_cells * n_outcomes), np.int64)
    if n_cells * n_outcomes > _MANY:
        for r in range(n_replicates):
            count = counts[r]
            outcome = outcomes[r]
            count[:] = 0
            for i in range(n_samples):
                count[uint64(cell[i] * n_outcomes + outcome[i])] += 1
        return counts
    table = np.empty((4, n_cells * n_outcomes), np.int64)
    quads = n_samples // 4 * 4
    for r in range(n_replicates):
        outcome = outcomes[r]
        table[:] = 0
        for i in range(0, quads, 4):
            table[0, cell[i] * n_outcomes + outcome[i]] += 1
            table[1, cell[i + 1] * n_outcomes + outcome[i + 1]] += 1
            table[2, cell[i + 2] * n_outcomes + outcome[i + 2]] += 1
            table[3, cell[i + 3] * n_outcomes + outcome[i + 3]] += 1
        for i in range(quads, n_samples):
            table[0, cell[i] * n_outcomes + outcome[i]] += 1
        for j in range(n_cells * n_outcomes):
            counts[r, j] = table[0, j] + table[1, j] + table[2, j] + table[3, j]
    return counts


def _count_events_of_one(outcomes, start):
    total = np.concatenate([[0], np.cumsum(outcomes[0], dtype=np.int64)])
    return np.diff(total[start])[None]


@kernel_unless_one(_count_events_of_one)
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
    n_cells = start.size - 1
    row = np.arange(start[0], start[-1])
    cell = np.repeat(np.arange(n_cells), np.diff(start))
    lane = _LANES * cell + (row - start[cell]) % _LANES
    lanes = np.bincount(lane, outcomes[0, row] * value[row], minlength=n_cells * _LANES)
    return np.cumsum(lanes.reshape(n_cells, _LANES), axis=1)[None, :, -1]


@kernel_unless_one(_sum_over_events_of_one)
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


@kernel
def weigh_outcomes(outcomes, cell, weight, n_cells, n_outcomes):
    """Return ``(n_replicates, n_cells, n_outcomes) float64``: as `count_outcomes`, each row counting its weight."""
    n_replicates, n_samples = outcomes.shape
    sums = np.zeros((n_replicates, n_cells, n_outcomes))
    for r in range(n_replicates):
        for i in range(n_samples):
            sums[r, cell[i], outcomes[r, i]] += weight[i]
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


def _count_entries_of_one(outcomes, cell, n_cells):
    return np.bincount(cell[np.arange(len(cell)), outcomes[0]], minlength=n_cells)[None]


@kernel_unless_one(_count_entries_of_one)
def count_entries(outcomes, cell, n_cells):
    """Return ``(n_replicates, n_cells) int64``: rows whose outcome selects an entry of each cell.

    ``cell (n_samples, n_outcomes)`` are numbers 0 to ``n_cells - 1``. Four interleaved tables, because neighbouring
    rows often select the same cell and an increment must wait for the previous one of the same address.
    """
    n_replicates, n_samples = outcomes.shape
    k = uint64(cell.shape[1])
    cells = cell.ravel()
    counts = np.empty((n_replicates, n_cells), np.int64)
    table = np.empty((4, n_cells), np.int64)
    quads = n_samples // 4 * 4
    for r in range(n_replicates):
        outcome = outcomes[r]
        table[:] = 0
        for i in range(0, quads, 4):
            entry = uint64(i) * k
            table[0, uint64(cells[entry + outcome[i]])] += 1
            table[1, uint64(cells[entry + k + outcome[i + 1]])] += 1
            table[2, uint64(cells[entry + uint64(2) * k + outcome[i + 2]])] += 1
            table[3, uint64(cells[entry + uint64(3) * k + outcome[i + 3]])] += 1
        for i in range(quads, n_samples):
            table[0, uint64(cells[uint64(i) * k + outcome[i]])] += 1
        for j in range(n_cells):
            counts[r, j] = table[0, j] + table[1, j] + table[2, j] + table[3, j]
    return counts


@kernel
def weigh_entries(outcomes, cell, weight, n_cells):
    """Return ``(n_replicates, n_cells) float64``: as `count_entries`, each row counting its weight."""
    n_replicates, n_samples = outcomes.shape
    sums = np.zeros((n_replicates, n_cells))
    for r in range(n_replicates):
        for i in range(n_samples):
            sums[r, cell[i, outcomes[r, i]]] += weight[i]
    return sums


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
