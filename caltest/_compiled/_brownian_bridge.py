"""The cumulative residual in score order, and its bridge: what is left when its end is tied down to 0."""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def path_ends_and_bridges(outcomes, start, expected, time):
    """Return ``(n_replicates, 2)``: the path's end C, and max over blocks of |path - time * C|.

    Rows are sorted by score; block b of tied scores holds the rows ``start[b] : start[b + 1]``. ``expected
    (n_blocks,)`` is the expected number of events up to its end, ``time (n_blocks,)`` the share of the variance there.
    """
    n_replicates = outcomes.shape[0]
    n_blocks = start.size - 1
    path = np.empty(n_blocks)
    ends = np.empty((n_replicates, 2))
    for r in range(n_replicates):
        outcome = outcomes[r]
        events = 0
        for b in range(n_blocks):
            for i in range(start[b], start[b + 1]):
                events += outcome[i]
            path[b] = events
        end = path[n_blocks - 1] - expected[n_blocks - 1]
        # Counting and comparing apart: only the first loop has to go one row at a time.
        largest = 0.0
        for b in range(n_blocks):
            largest = max(largest, abs(path[b] - expected[b] - time[b] * end))
        ends[r, 0] = end
        ends[r, 1] = largest
    return ends
