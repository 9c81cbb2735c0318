"""Sums of the rows that fell to each outcome: the score of matrix scaling."""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def largest_scores(outcomes, table, centre, expected, scale):
    """Return ``(n_replicates,)``: the largest absolute standardised score of a pair of an outcome and a column.

    ``table (n_samples, n_columns)`` holds the weight of each row in its first column and weighted values in the others.
    With its sums A over the rows that fell to outcome j, the score of the pair (j, k) is ``(A[j, k] - centre[j, k] *
    A[j, 0] - expected[j, k]) * scale[j, k]``; all three are ``(n_outcomes, n_columns)``.
    """
    n_replicates, n_samples = outcomes.shape
    n_outcomes, n_columns = centre.shape
    largest = np.zeros(n_replicates)
    total = np.empty((n_outcomes, n_columns))
    for r in range(n_replicates):
        outcome = outcomes[r]
        total[:] = 0.0
        for i in range(n_samples):
            row = total[outcome[i]]
            values = table[i]
            for k in range(n_columns):
                row[k] += values[k]
        high = 0.0
        for j in range(n_outcomes):
            for k in range(n_columns):
                score = (total[j, k] - centre[j, k] * total[j, 0] - expected[j, k]) * scale[j, k]
                high = max(high, abs(score))
        largest[r] = high
    return largest
