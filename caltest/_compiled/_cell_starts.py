"""Where cells that depend on the predictions begin, in many rows of increasing values.

Of each row of ``values (n_rows, n_entries)`` the entries from ``first (n_rows,)`` on count.
"""

import numpy as np

from caltest._compiled._jit import inner, kernel


@kernel
def equal_mass_starts(values, first, n_cells):
    """Return ``(n_rows, n_cells + 1)``: where cells of equal mass begin, and the end of the row.

    Sizes differ by at most one, the larger cells first; a cut moves on to the next block of ties, and cells that become
    empty are the last ones.
    """
    n_rows, n_entries = values.shape
    starts = np.full((n_rows, n_cells + 1), n_entries)
    for r in range(n_rows):
        row = values[r]
        size = (n_entries - first[r]) // n_cells
        larger = n_entries - first[r] - size * n_cells
        found = 0
        end = first[r]
        for c in range(n_cells):
            cut = max(end, first[r] + c * size + min(c, larger))
            while first[r] < cut < n_entries and row[cut] == row[cut - 1]:
                cut += 1
            if cut == n_entries:
                break
            if cut > end or c == 0:
                starts[r, found] = cut
                found += 1
            end = cut
    return starts


@inner
def _first_of(row, value, low, high):
    # The first of the places from low to high whose value is not below the given one.
    while low < high:
        middle = (low + high) // 2
        if row[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def rank_starts(values, first, n_cells):
    """Return ``(n_rows, n_cells + 2)``: where the equal-mass cells of Nixon et al. begin, and the end of the row.

    Cell c begins at the first of the ties of the value of rank round(c n / n_cells), halves to even, at most n - 1, and
    one more cell at 1.
    """
    n_rows, n_entries = values.shape
    starts = np.full((n_rows, n_cells + 2), n_entries)
    for r in range(n_rows):
        row = values[r]
        step = (n_entries - first[r]) / n_cells
        starts[r, 0] = first[r]
        if first[r] == n_entries:
            continue
        for c in range(1, n_cells):
            place = min(first[r] + np.int64(np.rint(c * step)), n_entries - 1)
            if place > first[r] and row[place - 1] == row[place]:
                place = _first_of(row, row[place], starts[r, c - 1], place)
            starts[r, c] = place
        last = _first_of(row, 1.0, first[r], n_entries)
        place = n_cells
        while starts[r, place - 1] > last:  # values above 1 by rounding
            starts[r, place] = starts[r, place - 1]
            place -= 1
        starts[r, place] = last
    return starts
