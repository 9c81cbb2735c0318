"""The monotonic sweep: the largest number of equal-mass cells whose frequencies of the event increase."""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def _end_of_cell(first, j, n_cells, block):
    """Return where the cell that starts at row ``first`` ends, and the number of the cut that ends it.

    ``n_cells`` cells of the n sorted rows are cut as ``numpy.array_split`` cuts them, cut j before row
    ``j * size + min(j, larger)``; a cut moves on to the start of a block of ties, ``block[row]``, and cells that are
    left empty by that are passed over without looking at their cuts. ``j`` is the last cut used.
    """
    n = block.size - 1
    size = n // n_cells
    larger = n - size * n_cells
    j += 1
    if j * size + min(j, larger) <= first:
        if first < larger * (size + 1):
            j = first // (size + 1) + 1
        else:
            j = larger + (first - larger * (size + 1)) // size + 1
    if j >= n_cells:
        return n, n_cells
    return block[j * size + min(j, larger)], j


@kernel
def _is_monotone(n_cells, happened, mass, block, slack):
    n = block.size - 1
    events = 0.0
    rows = 0.0
    first = 0
    j = 0
    while first < n:
        end, j = _end_of_cell(first, j, n_cells, block)
        new_events = happened[end] - happened[first]
        new_rows = mass[end] - mass[first]
        if new_rows > 0:
            # Frequencies, compared without dividing: whole numbers make no rounding error.
            if events * new_rows - new_events * rows > slack * rows * new_rows:
                return False
            events = new_events
            rows = new_rows
        first = end
    return True


@kernel
def sweep(outcomes, expected, mass, block, weighted, squared):
    """Return for every replicate the number of cells and the mean absolute (or root mean square) gap in them.

    Rows are sorted by the event's probability. ``expected`` and ``mass (n_samples + 1,)`` are cumulative sums of the
    probabilities and of the weights, ``block (n_samples + 1,)`` the first start of a block of ties at or after each
    row. The number of cells grows by one until frequencies decrease somewhere.
    """
    n_replicates, n = outcomes.shape
    n_cells = np.empty(n_replicates, np.int64)
    values = np.empty(n_replicates)
    happened = np.empty(n + 1)
    happened[0] = 0.0
    slack = 1e-12 if weighted else 0.0
    for r in range(n_replicates):
        outcome = outcomes[r]
        if weighted:
            total = 0.0
            for i in range(n):
                total += outcome[i] * (mass[i + 1] - mass[i])
                happened[i + 1] = total
        else:
            count = 0
            for i in range(n):
                count += outcome[i]
                happened[i + 1] = count
        # Cells are unions of blocks: if the blocks are in order, so are the cells, however many.
        chosen = n
        if not _is_monotone(n, happened, mass, block, slack):
            chosen = 1
            while _is_monotone(chosen + 1, happened, mass, block, slack):
                chosen += 1
        value = 0.0
        first = 0
        j = 0
        while first < n:
            end, j = _end_of_cell(first, j, chosen, block)
            gap = abs((happened[end] - happened[first]) - (expected[end] - expected[first]))
            rows = mass[end] - mass[first]
            if squared:
                if rows > 0:
                    value += gap * gap / rows
            else:
                value += gap
            first = end
        n_cells[r] = chosen
        values[r] = np.sqrt(value / mass[n]) if squared else value / mass[n]
    return n_cells, values
